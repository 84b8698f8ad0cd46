package control_test

import (
	"slices"
	"testing"
)

// The clean-up keeps the mirrors of every environment, also of one that is
// halted, as it fetches them, and those of the modules that they use.
func TestMirrorsInUseAreKept(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := s.SetSetting(t.Context(), s.env, "git_depth", 7); err != nil {
		t.Fatal(err)
	}
	if err := s.store.SetModules(t.Context(), s.env, map[string]string{"std": "https://x/std"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Halt(t.Context(), s.env); err != nil {
		t.Fatal(err)
	}
	if err := s.keepers.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "mirrors [/repo  7 https://x/std  0] 720h0m0s"; !slices.Contains(s.parts.toldOf(), want) {
		t.Errorf("%q, want %q", s.parts.toldOf(), want)
	}
}
