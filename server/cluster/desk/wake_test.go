package desk

import (
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

// A change wakes the provisioners of its project. An event that names nothing, or that was lost, wakes all.
func TestAChangeWakesItsProject(t *testing.T) {
	env, own, other := uuid.New(), uuid.New(), uuid.New()
	for _, c := range []struct {
		name  string
		event bus.Event
		both  bool
	}{
		{"a change", bus.Event{Environment: env, Topic: bus.Cluster}, false},
		{"a change of something unknown", bus.Event{Topic: bus.Cluster}, true},
		{"lost events", bus.Event{Environment: env, Topic: bus.Lagged}, true},
	} {
		d := &Desk{waiting: map[uuid.UUID]chan struct{}{}}
		d.cache.projects = map[intent.EnvironmentID]intent.ProjectID{env: own}
		here, there := d.wait(own), d.wait(other)
		d.wake(t.Context(), c.event)
		if !isClosed(here) {
			t.Errorf("%s does not wake the project's provisioners", c.name)
		}
		if isClosed(there) != c.both {
			t.Errorf("%s wakes those of another project: %t, want %t", c.name, !c.both, c.both)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
