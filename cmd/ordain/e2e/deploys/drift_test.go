package deploys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// A person edits a file that the model owns, and a note that can never be written
// fails. A repair corrects the file and records the drift. The note is parked after two
// attempts and tried again when it is unparked. The command line shows all of it.
func TestDriftAndParkedOnTheCommandLine(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
	t.Parallel()
	w := lab.SharedWorld(t)
	p, env := w.NewPlace(t), t.Name()
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	w.Must(t, "settings", "set", env, "max_attempts", "2")
	code, _, errs := w.Ordain(t, "", "settings", "set", env, "drift_policy", "ignore")
	if code == 0 || !strings.Contains(errs, "heal, report") {
		t.Errorf("%d %s", code, errs)
	}
	p.Push(
		"two notes",
		lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"}, [3]string{"b", "two", "raise"})),
	)
	p.CompiledWell()
	p.Until("the note to be written", func() bool { return p.Settled()["a"].State.Status() == intent.StatusDeployed })
	if err := os.WriteFile(filepath.Join(p.Site, "a"), []byte("graffiti"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.Must(t, "resource", "deploy", env, "--repair")
	waitOutput := func(what string, args ...string) {
		t.Helper()
		p.Until(strings.Join(args, " ")+" to say "+what,
			func() bool { return strings.Contains(w.Must(t, args...), what) })
	}
	waitOutput("healed", "drift", "list", env)
	lab.Mentions(t, w.Must(t, "drift", "list", env, "--resource", p.Site),
		"lab::Note[desk,path="+filepath.Join(p.Site, "a")+"]", "text", "graffiti", "one")
	if out := w.Must(t, "drift", "list", env, "--open"); strings.Contains(out, "graffiti") || p.Note("a") != "one" {
		t.Errorf("not healed:\n%s\n%s", out, p.Note("a"))
	}
	broken := "lab::Note[desk,path=" + filepath.Join(p.Site, "b") + "]"
	waitOutput(broken, "resource", "list", env, "--parked")
	tries := len(p.Attempts("b"))
	if code, _, _ := w.Ordain(t, "", "resource", "unpark", env); code != 2 {
		t.Errorf("it is not asked which: %d", code)
	}
	lab.Mentions(t, w.Must(t, "resource", "unpark", env, broken), broken)
	p.Until("another attempt", func() bool { return len(p.Attempts("b")) > tries })
	if out := w.Must(t, "resource", "list", env, "--parked"); strings.Contains(out, broken) {
		t.Errorf("still parked:\n%s", out)
	}
	_, _, errs = w.Ordain(t, "", "resource", "unpark", env, "--all")
	lab.Mentions(t, errs, "none of them was parked")
}
