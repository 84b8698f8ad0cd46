package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// A commit is deployed during a freeze. It becomes the intent, but nothing of it is
// deployed, and the command line says why. A person lets it through with an override;
// after the override has ended, the next commit waits again.
func TestFreezeAndOverrideOnTheCommandLine(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	p, env := w.newPlace(t), t.Name()
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	if code, _, errs := w.ordain(t, "", "settings", "set", env, "maintenance_windows",
		`{"quiet": {"cron": "0 25 * * *", "duration": 60}}`); code == 0 ||
		!strings.Contains(errs, "quiet") {
		t.Errorf("a window that never comes: %d %s", code, errs)
	}
	w.must(
		t,
		"settings",
		"set",
		env,
		"maintenance_windows",
		fmt.Sprintf(`{"holidays": {"kind": "freeze", "cron": "0 %d * * *", "duration": 7200}}`,
			time.Now().UTC().Hour()),
	)
	p.push("a note", mergeFiles(labModule, p.model([3]string{"a", "one", "calm"})))
	p.compiledWell()
	id := "lab::Note[desk,path=" + filepath.Join(p.site, "a") + "]"
	p.until("the resource to be known", func() bool { return strings.Contains(w.must(t, "resource", "list", env), id) })
	mentions(t, w.must(t, "resource", "why", env, id),
		"It is not deployed: it is frozen by `holidays`, changes may start", "freeze")

	for says, args := range map[string][]string{
		"say why with --reason":      {"--by", "ida"},
		"a minute to 24 hours":       {"--by", "ida", "--reason", "x", "--for", "25h"},
		"lasts a minute to 24 hours": {"--by", "ida", "--reason", "x", "--for", "1s"},
	} {
		if code, _, errs := w.ordain(t, "", append([]string{"override", "start", env}, args...)...); code != 2 ||
			!strings.Contains(errs, says) {
			t.Errorf("%q: %d %s", args, code, errs)
		}
	}
	if code, _, errs := w.ordain(t, "", "override", "end", env, "a0000000-0000-4000-8000-000000000099"); code != 1 ||
		!strings.Contains(errs, "override") {
		t.Errorf("an override that never was: %d %s", code, errs)
	}
	if n := p.note("a"); !strings.Contains(n, "no such file") {
		t.Fatalf("%q was deployed in a freeze", n)
	}
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(w.must(t, "override", "start", env, "--by", "ida", "--reason",
		"the router is down", "--agents", "de*, web", "--for", "30m", "-o", "json")), &made); err != nil {
		t.Fatal(err)
	}
	p.until("the note to be written", func() bool { return p.note("a") == "one" })
	p.until("the record", func() bool { return p.settled()["a"].State.Status() == intent.StatusDeployed })
	mentions(t, w.must(t, "resource", "why", env, id), "It is deployed as the model wants it.")
	mentions(t, w.must(t, "override", "list", env), made.ID, "ida", "the router is down", "de*")
	w.must(t, "override", "end", env, made.ID)
	if out := w.must(t, "override", "list", env); strings.Contains(out, made.ID) {
		t.Errorf("it lasts:\n%s", out)
	}
	mentions(t, w.must(t, "override", "list", env, "--all"), made.ID)
	mentions(t, w.must(t, "override", "history", env), "override_end", "ida", "the router is down")
	p.push("another text", p.model([3]string{"a", "two", "calm"}))
	p.compiledWell()
	p.until("the next text to wait",
		func() bool { return strings.Contains(w.must(t, "resource", "why", env, id), "frozen by `holidays`") })
	if n := p.note("a"); n != "one" {
		t.Errorf("%q was deployed after the override ended", n)
	}
}
