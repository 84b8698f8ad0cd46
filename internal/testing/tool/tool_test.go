package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	t.Setenv("ORDAIN_TURN", "")
	for _, c := range []struct {
		ci, long string
		runs     bool
	}{{"", "", false}, {"false", "0", false}, {"true", "", true}, {"", "1", true}, {"1", "0", true}} {
		t.Setenv("CI", c.ci)
		t.Setenv("ORDAIN_LONG", c.long)
		r := &named{name: t.Name()}
		Long(r, "it counts to a million")
		if runs := r.outcome == ""; runs != c.runs || !runs && !strings.Contains(r.outcome, "counts to a million") {
			t.Errorf("CI=%q, ORDAIN_LONG=%q: the test was %q", c.ci, c.long, r.outcome)
		}
	}
}

func TestHeavyTestsRunInCI(t *testing.T) {
	for _, c := range []struct {
		ci, long string
		runs     bool
	}{{"", "", false}, {"false", "0", false}, {"true", "", true}, {"", "1", true}} {
		t.Setenv("CI", c.ci)
		t.Setenv("ORDAIN_LONG", c.long)
		r := &recorder{TB: t}
		Heavy(r, "it starts a browser")
		if runs := r.outcome == ""; runs != c.runs || !runs && !strings.Contains(r.outcome, "starts a browser") {
			t.Errorf("CI=%q, ORDAIN_LONG=%q: the test was %q", c.ci, c.long, r.outcome)
		}
	}
}

// Each run of CI takes another sample, until all has been looked at.
func TestSamplesTakeTurns(t *testing.T) {
	const n = 12
	seen, perTurn := map[int]int{}, [n]int{}
	for turn := range n {
		t.Setenv("ORDAIN_TURN", fmt.Sprint(500+turn))
		for i := range 600 {
			if Sample(fmt.Sprintf("case %d", i), n) {
				seen[i]++
				perTurn[turn]++
			}
		}
	}
	for i, times := range seen {
		if times != 1 {
			t.Errorf("case %d was in %d samples of %d runs", i, times, n)
		}
	}
	if len(seen) != 600 || slices.Min(perTurn[:]) < 20 {
		t.Errorf("%d of 600 cases were looked at, in samples of %v", len(seen), perTurn)
	}
}

// named is a test with a name.
type named struct {
	recorder
	name string
}

func (n *named) Name() string { return n.name }

// Every long test runs once in three runs of CI, together with its subtests; all run when all are asked for.
func TestLongTestsTakeTurns(t *testing.T) {
	t.Setenv("CI", "true")
	t.Setenv("ORDAIN_LONG", "")
	ran := map[string]int{}
	perTurn := [turns]int{}
	for turn := range turns {
		t.Setenv("ORDAIN_TURN", fmt.Sprint(1000+turn))
		for i := range 300 {
			name := fmt.Sprintf("TestNumber%d", i)
			whole, part := &named{name: name}, &named{name: name + "/of_a_part"}
			Long(whole, "it counts to a million")
			Long(part, "it counts to a million")
			if whole.outcome != part.outcome {
				t.Errorf("%s: a part runs without the rest", name)
			}
			if whole.outcome == "" {
				ran[name]++
				perTurn[turn]++
			}
		}
	}
	for name, n := range ran {
		if n != 1 {
			t.Errorf("%s ran %d times in %d runs", name, n, turns)
		}
	}
	if len(ran) != 300 || slices.Min(perTurn[:]) < 50 {
		t.Errorf("%d of 300 tests ran, in turns of %v", len(ran), perTurn)
	}
	t.Setenv("ORDAIN_LONG", "1")
	r := &named{name: "TestNumber1"}
	if Long(r, "it counts to a million"); r.outcome != "" {
		t.Errorf("ORDAIN_LONG=1: the test was %q", r.outcome)
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

func TestThingsAmongManyTakeTurns(t *testing.T) {
	pages := []string{"overview", "runs", "queue", "settings", "graph", "logs", "search", "people", "agents"}
	count := func(ci, turn, all string) map[string]int {
		t.Setenv("CI", ci)
		t.Setenv("ORDAIN_TURN", turn)
		t.Setenv("ORDAIN_LONG", all)
		seen := map[string]int{}
		for _, page := range pages {
			if Among(page) {
				seen[page]++
			}
		}
		return seen
	}
	if n := len(count("", "", "")); n == 0 || n == len(pages) {
		t.Errorf("on a developer's machine, %d of %d belong to a run", n, len(pages))
	}
	if n := len(count("", "", "1")) + len(count("true", "7", "1")); n != 2*len(pages) {
		t.Errorf("with ORDAIN_LONG=1, twice %d pages came %d times", len(pages), n)
	}
	total := map[string]int{}
	for _, turn := range []string{"7", "8", "9"} {
		for page := range count("true", turn, "") {
			total[page]++
		}
	}
	for _, page := range pages {
		if total[page] != 1 {
			t.Errorf("in three runs of CI, %s came %d times", page, total[page])
		}
	}
}
