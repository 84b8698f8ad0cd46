package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// A person edits a file that the model owns, and a note that can never be written
// fails. A repair corrects the file and records the drift. The note is parked after two
// attempts and tried again when it is unparked. The command line shows all of it.
func TestDriftAndParkedOnTheCommandLine(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	p, env := w.newPlace(t), t.Name()
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	w.must(t, "settings", "set", env, "max_attempts", "2")
	code, _, errs := w.ordain(t, "", "settings", "set", env, "drift_policy", "ignore")
	if code == 0 || !strings.Contains(errs, "heal, report") {
		t.Errorf("%d %s", code, errs)
	}
	p.push("two notes", mergeFiles(labModule, p.model([3]string{"a", "one", "calm"}, [3]string{"b", "two", "raise"})))
	p.compiledWell()
	p.until("the note to be written", func() bool { return p.settled()["a"].State.Status() == intent.StatusDeployed })
	if err := os.WriteFile(filepath.Join(p.site, "a"), []byte("graffiti"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.must(t, "resource", "deploy", env, "--repair")
	waitOutput := func(what string, args ...string) {
		t.Helper()
		p.until(strings.Join(args, " ")+" to say "+what,
			func() bool { return strings.Contains(w.must(t, args...), what) })
	}
	waitOutput("healed", "drift", "list", env)
	mentions(t, w.must(t, "drift", "list", env, "--resource", p.site),
		"lab::Note[desk,path="+filepath.Join(p.site, "a")+"]", "text", "graffiti", "one")
	if out := w.must(t, "drift", "list", env, "--open"); strings.Contains(out, "graffiti") || p.note("a") != "one" {
		t.Errorf("not healed:\n%s\n%s", out, p.note("a"))
	}
	broken := "lab::Note[desk,path=" + filepath.Join(p.site, "b") + "]"
	waitOutput(broken, "resource", "list", env, "--parked")
	tries := len(p.attempts("b"))
	if code, _, _ := w.ordain(t, "", "resource", "unpark", env); code != 2 {
		t.Errorf("it is not asked which: %d", code)
	}
	mentions(t, w.must(t, "resource", "unpark", env, broken), broken)
	p.until("another attempt", func() bool { return len(p.attempts("b")) > tries })
	if out := w.must(t, "resource", "list", env, "--parked"); strings.Contains(out, broken) {
		t.Errorf("still parked:\n%s", out)
	}
	_, _, errs = w.ordain(t, "", "resource", "unpark", env, "--all")
	mentions(t, errs, "none of them was parked")
}
