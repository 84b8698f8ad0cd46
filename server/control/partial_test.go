package control_test

import (
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// A request for a partial compile replaces the set of the model and keeps the
// others; one that breaks a rule says so and changes nothing. It does not count
// as a compile of its commit: a notice of that commit compiles all of it.
func TestPartialCompile(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	note := func(set, value string) export.Resource {
		return export.Resource{
			ID:            intent.ResourceID{Type: "lab::Note", Agent: "a", Attribute: "n", Value: set},
			ResourceSet:   set,
			Attributes:    []byte(`{"v":"` + value + `"}`),
			AttributeHash: value,
		}
	}
	ask := func(tip string, r control.CompileRequest, resources ...export.Resource) (intent.Compile, string) {
		t.Helper()
		s.parts.mu.Lock()
		s.parts.tip, s.parts.exported = tip, resources
		s.parts.mu.Unlock()
		if r.Trigger.Type == "" {
			r.Trigger.Type = "api"
		}
		r.Update = true
		id, _, err := s.RequestCompile(t.Context(), s.env, r)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := s.done(id)
		_, stages, err := s.store.Compile(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return c, stages[len(stages)-1].ErrOutput
	}
	values := func() string {
		t.Helper()
		v, err := s.store.ActiveVersion(t.Context(), s.env)
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.store.VersionResources(t.Context(), s.env, v.Number)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range all {
			out = append(out, r.ResourceSet+"="+r.AttributeHash)
		}
		return strings.Join(out, " ")
	}
	part := control.CompileRequest{Partial: true}
	if c, said := ask("c0", part, note("x", "1")); *c.Success ||
		!strings.Contains(said, "needs a version to build on") {
		t.Errorf("the first one, partial: %+v %s", c, said)
	}
	ask("c1", control.CompileRequest{}, note("x", "1"), note("y", "1"), note("z", "1"))
	if c, said := ask("c2", control.CompileRequest{Partial: true, RemovedSets: []string{"y"}}, note("x",
		"2")); !*c.Success ||
		!c.Partial ||
		values() != "x=2 z=1" {
		t.Errorf("got %s, %+v %s", values(), c, said)
	}
	moved := note("x", "3")
	moved.ResourceSet = "w"
	if c, said := ask("c2", part, moved); *c.Success ||
		!strings.Contains(said, "would move from the resource set x to the resource set w") ||
		values() != "x=2 z=1" {
		t.Errorf("got %s, %+v %s", values(), c, said)
	}
	ask("c2", part, note("x", "4"))
	if ask("c2", control.CompileRequest{Trigger: intent.Trigger{Type: "webhook"}}, note("x", "5")); values() != "x=5" {
		t.Errorf("after a notice of the commit: %s", values())
	}
	if _, _, err := s.RequestCompile(t.Context(), s.env, control.CompileRequest{RemovedSets: []string{"x"}}); !fault.Is(
		err,
		fault.Invalid,
	) {
		t.Errorf("sets removed by a full compile: %v", err)
	}
}
