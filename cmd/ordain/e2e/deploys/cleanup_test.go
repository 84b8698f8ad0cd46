package deploys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/control"
)

// An operator removes files to free space, and the server breaks. The document of the
// on-disk layout has a table of what may be removed in which state, and when it comes
// back. This test goes through that table, row by row. After each removal, a push must
// be compiled and deployed, and the layout must be complete.
func TestCleanUpTable(t *testing.T) {
	tool.Long(t, "a push, and a new start of the server, for each row of the table")
	t.Parallel()
	w := lab.OwnWorld(t, nil)
	p := w.NewPlace(t)
	p.Push("a note", lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"})))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	wantLayout(t, p)
	env := p.Server.Layout().Environment(p.Env)
	venv, err := filepath.EvalSymlinks(env.CompilerVenvLink())
	if err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(p.Server.Layout().Server(), ".inmanta_use_new_disk_layout")
	former := filepath.Join(env.Compiler(), ".env-py3.1")
	mirrors := p.Server.Layout().Mirrors()
	for n, row := range []struct {
		path   string
		state  string // the state in which it is removed: running, halted or down
		before bool   // it comes back before anything needs it
	}{
		{marker, "running", false}, // "always"; nothing reads it until the server starts
		{marker, "down", true},
		{env.Executors(), "halted", true},
		{env.Executors(), "down", true},
		{env.Venvs(), "halted", false},
		{env.Venvs(), "down", false},
		{env.Codes(), "halted", false},
		{env.Codes(), "down", false},
		{env.SchedulerConfig(), "halted", false},
		{env.SchedulerConfig(), "down", false},
		{env.Compiler(), "running", false}, // when not compiling
		{env.Compiler(), "down", false},
		{env.CompilerVenvLink(), "running", false},
		{former, "running", false},  // when no longer targeted by .env
		{venv, "down", false},       // with .env pointing at nothing
		{mirrors, "running", false}, // when nothing is fetched
		{mirrors, "down", false},
		{env.Dir(), "down", true},
	} {
		name, err := filepath.Rel(p.Server.Layout().Server(), row.path)
		if err != nil {
			t.Fatal(err)
		}
		ok := t.Run(fmt.Sprintf("%s %s", name, row.state), func(t *testing.T) {
			p.T = t
			if row.path == former {
				if err := os.MkdirAll(filepath.Join(former, "bin"), 0o750); err != nil {
					t.Fatal(err)
				}
			}
			removeWhile(p, row.path, row.state)
			if row.before {
				p.Until(name+" to come back by itself", func() bool { _, err := os.Stat(row.path); return err == nil })
			}
			text := fmt.Sprintf("after removal %d", n)
			p.Push(text, p.Model([3]string{"a", text, "calm"}))
			p.CompiledWell()
			p.Settled()
			if p.Note("a") != text {
				t.Errorf("the note says %q, want %q\n%s", p.Note("a"), text, p.Story())
			}
			if row.path != marker && row.path != former {
				if _, err := os.Stat(row.path); err != nil {
					t.Error("it did not come back:", err)
				}
				wantLayout(t, p)
			}
		})
		if !ok {
			break
		}
	}
	for _, state := range []string{"running", "down"} { // when no commit is previewed
		ok := t.Run("preview "+state, func(t *testing.T) {
			p.T = t
			dryRunHead(p, env.Preview().Dir())
			removeWhile(p, env.Preview().Dir(), state)
			dryRunHead(p, env.Preview().Dir())
			wantLayout(t, p)
		})
		if !ok {
			break
		}
	}
	t.Run("preview unused", func(t *testing.T) {
		p.T = t
		p.Server.Stop()
		long := time.Now().AddDate(0, 0, -8)
		if err := os.Chtimes(filepath.Join(env.Preview().Compiler(), ".git"), long, long); err != nil {
			t.Fatal(err)
		}
		restarted, err := lab.StartWorld(p.Dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		*p.World = *restarted
		p.Until("the unused preview to go by itself",
			func() bool { _, err := os.Stat(env.Preview().Dir()); return errors.Is(err, fs.ErrNotExist) })
		dryRunHead(p, env.Preview().Dir())
	})
	p.T = t
	t.Run("cleared and deleted", func(t *testing.T) { clearedAndDeleted(p, t, env.Dir()) })
}

// dryRunHead makes a dry run of the newest commit, by the beginning of its hash, and
// checks that it has a checkout.
func dryRunHead(p *lab.Place, dir string) {
	p.T.Helper()
	run, by := dryRunOf(p, control.DryRunRequest{Commit: p.Head()[:8]})
	if run.Ending != intent.DryRunDone || by["a"].Kind != intent.DiffUnmodified {
		p.T.Fatalf("%+v %+v", run, by)
	}
	if _, err := os.Stat(dir); err != nil {
		p.T.Error("it has no checkout:", err)
	}
}

// removeWhile removes a path while the environment is halted, or the server down, and
// then resumes or restarts it.
func removeWhile(p *lab.Place, path, state string) {
	p.T.Helper()
	ctx := p.T.Context()
	switch state {
	case "halted":
		if err := p.Control.Halt(ctx, p.Env); err != nil {
			p.T.Fatal(err)
		}
	case "down":
		p.Server.Stop()
	}
	if err := os.RemoveAll(path); err != nil {
		p.T.Fatal(err)
	}
	switch state {
	case "halted":
		if err := p.Control.Resume(ctx, p.Env); err != nil {
			p.T.Fatal(err)
		}
	case "down":
		restarted, err := lab.StartWorld(p.Dir, nil)
		if err != nil {
			p.T.Fatal("the server does not start again: ", err)
		}
		*p.World = *restarted
	}
}

// clearedAndDeleted tests the row of the environment's own folder: only clearing or
// deleting the environment removes it.
func clearedAndDeleted(p *lab.Place, t *testing.T, dir string) {
	p.T = t
	stray := filepath.Join(dir, "executors", "stray")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Control.ClearEnvironment(t.Context(), p.Env); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stray); !os.IsNotExist(err) {
		t.Errorf("after the environment was cleared: %v", err)
	}
	if err := p.Control.DeleteEnvironment(t.Context(), p.Env); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("after the environment was deleted: %v", err)
	}
}
