package deploys

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
)

// A push deploys too much. The first push deploys everything, and a second one that
// changes one note deploys only that note. A third one that takes a note out of the
// model does not touch its file. Each version names the commit that it came from.
func TestPushDeploysWhatChanged(t *testing.T) {
	t.Parallel()
	p := lab.SharedWorld(t).NewPlace(t)
	p.Push(
		"two notes",
		lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"}, [3]string{"b", "two", "calm"})),
	)
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	first := p.CompiledWell()
	rows := p.Settled()
	if len(rows) != 2 || p.Note("a") != "one" || p.Note("b") != "two" {
		t.Fatalf("after the first push: %v, a is %q, b is %q", rows, p.Note("a"), p.Note("b"))
	}
	p.Push("b is three", p.Model([3]string{"a", "one", "calm"}, [3]string{"b", "three", "calm"}))
	second := p.CompiledWell()
	p.Settled()
	if n := len(p.Attempts("a")); n != 1 {
		t.Errorf("a did not change and was deployed %d times", n)
	}
	if n := len(p.Attempts("b")); n != 2 || p.Note("b") != "three" {
		t.Errorf("b was deployed %d times and is %q", n, p.Note("b"))
	}
	if got := p.Attempts("b")[0]; got.Change != intent.Updated || got.Changes["text"].Current != "two" ||
		got.Changes["text"].Desired != "three" {
		t.Errorf("the change of b is recorded as %s %v", got.Change, got.Changes)
	}
	if *second.Version != *first.Version+1 {
		t.Errorf("versions are %d and %d", *first.Version, *second.Version)
	}
	v, err := p.Store.Version(t.Context(), p.Env, *second.Version)
	if err != nil {
		t.Fatal(err)
	}
	if v.Provenance.Subject != "b is three" || v.Provenance.Author != "Eve" ||
		v.Provenance.Commit != second.Revision.Commit ||
		v.Provenance.Modules["lab"] != "1.0.0" {
		t.Errorf("provenance is %+v", v.Provenance)
	}
	p.Push("a goes", p.Model([3]string{"b", "three", "calm"}))
	p.CompiledWell()
	if rows := p.Settled(); len(rows) != 1 {
		t.Errorf("the resources are %v, want b alone", rows)
	}
	if p.Note("a") != "one" {
		t.Error("a note that left the model was deleted; nothing asked for that")
	}
}

// wantLayout checks the layout on disk. It spells out the paths, because other tools
// rely on them.
func wantLayout(t *testing.T, p *lab.Place) {
	t.Helper()
	state, logs, id := p.Server.Layout().StateDir(), p.Server.Layout().LogDir(), p.Env.String()
	for _, path := range []string{
		filepath.Join(state, "server", ".inmanta_use_new_disk_layout"),
		filepath.Join(state, "server", id, "compiler", "main.cf"),
		filepath.Join(state, "server", id, "compiler", ".env", "bin", "python"),
		filepath.Join(state, "server", id, "scheduler.cfg"),
		filepath.Join(logs, "server.log"), filepath.Join(logs, "resource-actions-"+id+".log"),
		filepath.Join(logs, "agent-"+id+".log"), filepath.Join(logs, "agent-"+id+".out"), filepath.Join(logs,
			"agent-"+id+".err"),
	} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the layout lacks %v", err)
		}
	}
	link, err := os.Readlink(filepath.Join(state, "server", id, "compiler", ".env"))
	if err != nil || !regexp.MustCompile(`^\.env-py3\.[0-9]+$`).MatchString(link) {
		t.Errorf(".env points at %q, %v", link, err)
	}
	for _, kind := range []string{"venvs", "code"} {
		entries, err := os.ReadDir(filepath.Join(state, "server", id, "executors", kind))
		if err != nil || len(entries) != 1 || !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(entries[0].Name()) {
			t.Errorf("executors/%s holds %v, %v; want one folder named by a hash", kind, entries, err)
		}
	}
	for name, size := range map[string]bool{
		"resource-actions-" + id + ".log": true, "agent-" + id + ".out": false, "agent-" + id + ".err": false,
	} {
		info, err := os.Stat(filepath.Join(logs, name))
		if err == nil && (info.Size() > 0) != size {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
}
