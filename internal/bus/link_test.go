package bus_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
)

// Only what a process may send is accepted.
func TestParseEvent(t *testing.T) {
	env, id := uuid.NewString(), uuid.NewString()
	for _, c := range []struct {
		environment, topic, id string
		ok                     bool
	}{
		{env, "resource", "std::File[a,path=/ü]", true},
		{env, "compile", id, true},
		{env, "compile", "", true},
		{env, "version", "42", true},
		{uuid.Nil.String(), "people", "", true},
		{env, "request", "", true},
		{env, "lagged", "", true},
		{env, "command", strings.Repeat("a", bus.MaxID), true},
		{env, "command", strings.Repeat("a", bus.MaxID+1), false},
		{env, "command", "a\nb", false},
		{env, "command", "\xff", false},
		{env, "compile", "{" + id + "}", false},
		{env, "compile", strings.ToUpper(id[:8]) + "x", false},
		{env, "version", "-1", false},
		{env, "version", strings.Repeat("1", 21), false},
		{env, "request", "x", false},
		{env, "Request", "", false},
		{env, "", "", false},
		{"", "request", "", false},
		{"ABCDEF00-0000-4000-8000-000000000000", "request", "", false},
		{"urn:uuid:" + env, "request", "", false},
		{strings.ReplaceAll(env, "-", ""), "request", "", false},
	} {
		e, err := bus.ParseEvent(c.environment, c.topic, []byte(c.id))
		if (err == nil) != c.ok {
			t.Errorf("%q %q %.40q: %v", c.environment, c.topic, c.id, err)
		}
		if err == nil && (e.Environment.String() != c.environment || e.ID != c.id || e.Portable() != e) {
			t.Errorf("%q %q %.40q became %v", c.environment, c.topic, c.id, e)
		}
	}
}

// Whatever bytes come, an event that is accepted is one that this process could have sent.
func FuzzParseEvent(f *testing.F) {
	f.Add(uuid.NewString(), "resource", []byte("std::File[a,path=/x]"))
	f.Add(uuid.NewString(), "version", []byte("7"))
	f.Fuzz(func(t *testing.T, environment, topic string, id []byte) {
		e, err := bus.ParseEvent(environment, topic, id)
		if err == nil && (e.Portable() != e || len(e.ID) > bus.MaxID) {
			t.Errorf("%q %q %q became %v", environment, topic, id, e)
		}
	})
}
