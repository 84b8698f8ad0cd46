package forges

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// A commit is deployed during a freeze. It becomes the intent, but nothing of it is
// deployed, and the command line says why. A person lets it through with an override;
// after the override has ended, the next commit waits again.
func TestFreezeAndOverrideOnTheCommandLine(t *testing.T) {
	t.Parallel()
	tool.Long(t, "a dozen commands, and their deployments")
	w := lab.SharedWorld(t)
	p, env := w.NewPlace(t), t.Name()
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	if code, _, errs := w.Ordain(t, "", "settings", "set", env, "maintenance_windows",
		`{"quiet": {"cron": "0 25 * * *", "duration": 60}}`); code == 0 ||
		!strings.Contains(errs, "quiet") {
		t.Errorf("a window that never comes: %d %s", code, errs)
	}
	w.Must(
		t,
		"settings",
		"set",
		env,
		"maintenance_windows",
		fmt.Sprintf(`{"holidays": {"kind": "freeze", "cron": "0 %d * * *", "duration": 7200}}`,
			time.Now().UTC().Hour()),
	)
	p.Push("a note", lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"})))
	p.CompiledWell()
	id := "lab::Note[desk,path=" + filepath.Join(p.Site, "a") + "]"
	p.Until("the resource to be known", func() bool { return strings.Contains(w.Must(t, "resource", "list", env), id) })
	lab.Mentions(t, w.Must(t, "resource", "why", env, id),
		"It is not deployed: it is frozen by `holidays`, changes may start", "freeze")

	for says, args := range map[string][]string{
		"say why with --reason":      {"--by", "ida"},
		"a minute to 24 hours":       {"--by", "ida", "--reason", "x", "--for", "25h"},
		"lasts a minute to 24 hours": {"--by", "ida", "--reason", "x", "--for", "1s"},
	} {
		if code, _, errs := w.Ordain(t, "", append([]string{"override", "start", env}, args...)...); code != 2 ||
			!strings.Contains(errs, says) {
			t.Errorf("%q: %d %s", args, code, errs)
		}
	}
	if code, _, errs := w.Ordain(t, "", "override", "end", env, "a0000000-0000-4000-8000-000000000099"); code != 1 ||
		!strings.Contains(errs, "override") {
		t.Errorf("an override that never was: %d %s", code, errs)
	}
	if n := p.Note("a"); !strings.Contains(n, "no such file") {
		t.Fatalf("%q was deployed in a freeze", n)
	}
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(w.Must(t, "override", "start", env, "--by", "ida", "--reason",
		"the router is down", "--agents", "de*, web", "--for", "30m", "-o", "json")), &made); err != nil {
		t.Fatal(err)
	}
	p.Until("the note to be written", func() bool { return p.Note("a") == "one" })
	p.Until("the record", func() bool { return p.Settled()["a"].State.Status() == intent.StatusDeployed })
	lab.Mentions(t, w.Must(t, "resource", "why", env, id), "It is deployed as the model wants it.")
	lab.Mentions(t, w.Must(t, "override", "list", env), made.ID, "ida", "the router is down", "de*")
	w.Must(t, "override", "end", env, made.ID)
	if out := w.Must(t, "override", "list", env); strings.Contains(out, made.ID) {
		t.Errorf("it lasts:\n%s", out)
	}
	lab.Mentions(t, w.Must(t, "override", "list", env, "--all"), made.ID)
	lab.Mentions(t, w.Must(t, "override", "history", env), "override_end", "ida", "the router is down")
	p.Push("another text", p.Model([3]string{"a", "two", "calm"}))
	p.CompiledWell()
	p.Until("the next text to wait",
		func() bool { return strings.Contains(w.Must(t, "resource", "why", env, id), "frozen by `holidays`") })
	if n := p.Note("a"); n != "one" {
		t.Errorf("%q was deployed after the override ended", n)
	}
}
