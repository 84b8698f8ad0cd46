package control_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// tidied is a store that notes how many days of what are kept.
type tidied struct {
	*store.Store
	mu   sync.Mutex
	days map[string]int
}

func (s *tidied) note(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.days[what] = n
}

func (s *tidied) since(what string, before time.Time) {
	s.note(what, int((time.Since(before)+time.Hour)/(24*time.Hour)))
}

func (s *tidied) DeleteActionsBefore(ctx context.Context, env intent.EnvironmentID, before time.Time) (int, error) {
	s.since("resource_action_logs_retention", before)
	return s.Store.DeleteActionsBefore(ctx, env, before)
}

func (s *tidied) DeleteDriftBefore(ctx context.Context, env intent.EnvironmentID, before time.Time) (int, error) {
	s.since("drift_retention", before)
	return s.Store.DeleteDriftBefore(ctx, env, before)
}

func (s *tidied) DeleteNotificationsBefore(
	ctx context.Context,
	env intent.EnvironmentID,
	before time.Time,
) (int, error) {
	s.since("notification_retention", before)
	return s.Store.DeleteNotificationsBefore(ctx, env, before)
}

func (s *tidied) DeleteDeliveriesBefore(ctx context.Context, env intent.EnvironmentID, before time.Time) (int, error) {
	s.since("delivery_retention", before)
	return s.Store.DeleteDeliveriesBefore(ctx, env, before)
}

func (s *tidied) PruneVersions(ctx context.Context, env intent.EnvironmentID, keep int) (int, error) {
	s.note("available_versions_to_keep", keep)
	return s.Store.PruneVersions(ctx, env, keep)
}

// Each kind of record is kept for as long as its own setting says; of a halted
// environment everything is.
func TestRecordsGoByTheirSettings(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	seen := &tidied{Store: s.store, days: map[string]int{}}
	s.Stop()
	s.records = seen
	s.Control = s.control()
	want := map[string]int{
		"resource_action_logs_retention": 11, "drift_retention": 12, "notification_retention": 13, "delivery_retention": 14, "available_versions_to_keep": 15,
	}
	for name, value := range want {
		if err := s.SetSetting(t.Context(), s.env, name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(seen.days, want) {
		t.Errorf("kept: %v, want %v", seen.days, want)
	}
	clear(seen.days)
	if err := s.Halt(t.Context(), s.env); err != nil {
		t.Fatal(err)
	}
	if err := s.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen.days) > 0 {
		t.Errorf("of a halted environment: %v", seen.days)
	}
}
