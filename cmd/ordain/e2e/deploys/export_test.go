package deploys

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// active returns the version that is deployed.
func active(t *testing.T, p *lab.Place) *intent.Version {
	t.Helper()
	v, err := p.Store.ActiveVersion(t.Context(), p.Env)
	if err != nil || v == nil {
		t.Fatal(v, err)
	}
	return v
}

// A version from a developer's machine passes for one from Git, or Git does not win over it. `ordain export` is refused
// until the environment allows it. Then the version is deployed, and says that it is not from a commit, and from which
// state of the working tree it came; an environment that does not deploy automatically stores it, and --deploy deploys
// it. The next push supersedes it.
func TestAnExportIsDeployedAndGitSupersedesIt(t *testing.T) {
	t.Parallel()
	tool.Long(t, "an export, a push, and a deployment of each")
	w := lab.SharedWorld(t)
	p := lab.NewDeployedPlace(t, w)
	env, err := p.Store.Environment(t.Context(), p.Env)
	if err != nil {
		t.Fatal(err)
	}
	deployed := p.Head()
	python := filepath.Join(w.Server.Layout().StateDir(), "server", p.Env.String(), "compiler", ".env", "bin", "python")
	export := []string{
		"export", "--project", p.Work, "--python", python, "--cache-dir", t.TempDir(), "-e", p.Env.String(),
		"-m", "try it first",
	}
	write := func(text string) {
		t.Helper()
		main := p.Model([3]string{"a", text, "calm"})["main.cf"]
		if err := os.WriteFile(filepath.Join(p.Work, "main.cf"), []byte(main), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("exported")
	code, _, problem := w.Ordain(t, "", export...)
	if code != 1 || !strings.Contains(problem, intent.AllowPushed) {
		t.Fatalf("an export that nobody allowed ends with %d:\n%s", code, problem)
	}
	first := active(t, p)
	if first.Provenance.Pushed != nil || p.Note("a") != "one" {
		t.Fatalf("the refused export left %+v", first)
	}

	w.Must(t, "settings", "set", env.Name, intent.AllowPushed, "true")
	lab.Mentions(t, w.Must(t, export...), "is stored", "not from a commit", "being deployed")
	report := p.CompiledWell()
	p.Settled()
	if p.Note("a") != "exported" {
		t.Fatalf("the note is %q", p.Note("a"))
	}
	if report.Trigger.Type != intent.TriggerPushed || report.Version == nil || report.Revision != nil {
		t.Errorf("the report is %+v", report)
	}
	pushed := active(t, p)
	from := pushed.Provenance.Pushed
	if from == nil || pushed.Provenance.Commit != "" || from.Commit != deployed || from.Dirty == nil || !*from.Dirty ||
		from.Message != "try it first" || from.After != deployed || from.Branch != "main" {
		t.Fatalf("the provenance is %+v, pushed %+v", pushed.Provenance, from)
	}
	lab.Mentions(t, w.Must(t, "version", "list", env.Name), "not from a commit")
	lab.Mentions(t, w.Must(t, "version", "show", env.Name, strconv.Itoa(pushed.Number)), "not from a commit")

	w.Must(t, "settings", "set", env.Name, "auto_deploy", "false")
	write("stored")
	lab.Mentions(t, w.Must(t, export...), "is stored", "Deploy it with")
	p.CompiledWell()
	if now := active(t, p); now.Number != pushed.Number || p.Note("a") != "exported" {
		t.Errorf("version %d is active and the note is %q: nobody asked to deploy", now.Number, p.Note("a"))
	}
	lab.Mentions(t, w.Must(t, append(export, "--deploy")...), "being deployed")
	p.CompiledWell()
	p.Settled()
	if now := active(t, p); now.Number != pushed.Number+2 || p.Note("a") != "stored" {
		t.Errorf("version %d is active and the note is %q", now.Number, p.Note("a"))
	}

	w.Must(t, "settings", "reset", env.Name, "auto_deploy")
	p.Push("from Git", p.Model([3]string{"a", "from Git", "calm"}))
	p.CompiledWell()
	p.Settled()
	if now := active(t, p); now.Provenance.Pushed != nil || now.Provenance.Commit != p.Head() ||
		p.Note("a") != "from Git" {
		t.Errorf("after the push %+v is active and the note is %q", now, p.Note("a"))
	}
}
