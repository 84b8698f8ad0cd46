package control_test

import (
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// ask has the next model ask for these settings, and compiles it.
func (s *stage) ask(tip string, settings map[string]any) (intent.Compile, []string) {
	s.t.Helper()
	s.parts.mu.Lock()
	s.parts.tip, s.parts.settings = tip, settings
	s.parts.mu.Unlock()
	return s.done(s.request("api"))
}

func (s *stage) environment() intent.Environment {
	s.t.Helper()
	e, err := s.store.Environment(s.t.Context(), s.env)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// The settings of project.yml are in force from the commit that names them:
// that version is not released any more. Nobody else changes them, until a
// commit leaves them out; then their value stays and people decide again.
func TestProjectDecidesSettings(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c, names := s.ask("c1", map[string]any{"auto_deploy": false, "recompile_backoff": 0.0})
	if !*c.Success || slices.Contains(names, intent.StageRelease) {
		t.Errorf("released against project.yml: %q", names)
	}
	if e := s.environment(); e.Bool("auto_deploy") || e.Protected["auto_deploy"] != intent.ProtectedByProject {
		t.Errorf("the environment is %+v", e)
	}
	for what, err := range map[string]error{
		"set":   s.SetSetting(t.Context(), s.env, "auto_deploy", true),
		"reset": s.DeleteSetting(t.Context(), s.env, "auto_deploy"),
	} {
		if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "decided by project.yml") {
			t.Errorf("a decided setting was %s: %v", what, err)
		}
	}
	if err := s.SetSetting(t.Context(), s.env, "git_poll_interval", 5); err != nil {
		t.Errorf("another setting: %v", err)
	}
	s.ask("c2", map[string]any{"recompile_backoff": 0.0})
	if e := s.environment(); e.Bool("auto_deploy") || len(e.Protected) != 1 {
		t.Errorf("the environment is %+v", e)
	}
	if err := s.SetSetting(t.Context(), s.env, "auto_deploy", true); err != nil {
		t.Errorf("a setting that is free again: %v", err)
	}
}

// A setting that there is not, or of a wrong type, fails the run in the stage
// that would set it: nothing is stored and no setting changed.
func TestProjectAsksForNonsense(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for name, value := range map[string]any{"auto_destroy": true, "git_poll_interval": "often"} {
		c, names := s.ask("c-"+name, map[string]any{"auto_deploy": false, name: value})
		if *c.Success || c.Version != nil || names[len(names)-1] != intent.StageExport {
			t.Errorf("%s: %+v %q", name, c, names)
		}
		_, stages, err := s.store.Compile(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if said := stages[len(stages)-1].ErrOutput; !strings.Contains(said, "environment_settings of project.yml") ||
			!strings.Contains(said, name) {
			t.Errorf("it says %q", said)
		}
	}
	if e := s.environment(); !e.Bool("auto_deploy") || len(e.Protected) > 0 {
		t.Errorf("the environment is %+v", e)
	}
}
