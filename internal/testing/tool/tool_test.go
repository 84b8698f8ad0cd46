package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder stands for the test that calls Need.
type recorder struct {
	testing.TB
	outcome string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.outcome = "skipped: " + fmt.Sprintf(format, args...)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.outcome = "failed: " + fmt.Sprintf(format, args...)
}

func TestMissingToolFailsOnlyInCI(t *testing.T) {
	for ci, want := range map[string]string{"": "skipped", "false": "skipped", "true": "failed", "1": "failed"} {
		t.Setenv("CI", ci)
		r := &recorder{TB: t}
		if path := Need(r, "ordain-no-such-program", "", "ordain-nor-this"); path != "" {
			t.Errorf("CI=%q: Need returns %q for programs that do not exist", ci, path)
		}
		names := "ordain-no-such-program or ordain-nor-this"
		if !strings.HasPrefix(r.outcome, want) || !strings.Contains(r.outcome, names) {
			t.Errorf("CI=%q: the test was %q, want it %s with the names of both programs", ci, r.outcome, want)
		}
	}
}

func TestLongTestsRunWhereTheyAreAskedFor(t *testing.T) {
	for _, c := range []struct {
		ci, long string
		runs     bool
	}{{"", "", false}, {"false", "0", false}, {"true", "", true}, {"", "1", true}, {"1", "0", true}} {
		t.Setenv("CI", c.ci)
		t.Setenv("ORDAIN_LONG", c.long)
		r := &recorder{TB: t}
		Long(r, "it counts to a million")
		if runs := r.outcome == ""; runs != c.runs || !runs && !strings.Contains(r.outcome, "counts to a million") {
			t.Errorf("CI=%q, ORDAIN_LONG=%q: the test was %q", c.ci, c.long, r.outcome)
		}
	}
}

func TestNeedTakesTheFirstThatIsThere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"second", "third"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	r := &recorder{TB: t}
	if path := Need(r, "", "first", "second", "third"); path != filepath.Join(dir, "second") || r.outcome != "" {
		t.Errorf("Need returns %q and the test was %q", path, r.outcome)
	}
}
