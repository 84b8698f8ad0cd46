package control

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/store/storetest"
)

// A reader looks at the file of the model that a commit has, which the environment compiled. Commits that it did not
// compile, files that are not of the model, and those that are no text are not shown.
func TestAFileOfTheModelIsShown(t *testing.T) {
	git, dir := tool.Need(t, "git"), t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(git, append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=a@example.org"},
			args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q", "-b", "main")
	write("main.cf", "import std\n")
	write("secrets.env", "PASSWORD=hush\n")
	write("binary.cf", "a\x00b")
	write("large.cf", strings.Repeat("# much\n", maxSourceFile/7+1))
	run("add", ".")
	run("commit", "-q", "-m", "first")
	compiled := run("rev-parse", "HEAD")
	write("main.cf", "import other\n")
	run("commit", "-q", "-a", "-m", "not compiled")
	other := run("rev-parse", "HEAD")

	ctx, s := t.Context(), storetest.Open(t)
	syncer, err := gitsync.New(gitsync.Config{Mirrors: t.TempDir(), Logger: storetest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	project := intent.Project{ID: uuid.New(), Name: "shop"}
	if err := s.CreateProject(ctx, project); err != nil {
		t.Fatal(err)
	}
	env := uuid.New()
	if err := s.CreateEnvironment(ctx, intent.Environment{
		ID: env, ProjectID: project.ID, Name: "e", Source: intent.Source{URL: dir, Branch: "main"}, Created: now,
	}, nil); err != nil {
		t.Fatal(err)
	}
	id := uuid.New()
	if err := s.EnqueueCompile(ctx, intent.Compile{
		ID: id, Environment: env, Requested: now, Update: true,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.StartCompile(ctx, env, now); err != nil {
		t.Fatal(err)
	}
	if err := s.SetCompileRevision(ctx, id, intent.Revision{Commit: compiled, Time: now}); err != nil {
		t.Fatal(err)
	}
	c := &Control{cfg: Config{Store: s, Remotes: syncer}}
	if got, err := c.SourceFile(ctx, env, compiled, "main.cf"); err != nil || got != "import std\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, one := range []struct {
		commit, file string
		want         fault.Kind
	}{
		{other, "main.cf", fault.NotFound}, {compiled, "secrets.env", fault.NotFound},
		{compiled, "binary.cf", fault.Conflict}, {compiled, "large.cf", fault.Conflict},
		{compiled, "gone.cf", fault.NotFound}, {compiled[:12], "main.cf", fault.NotFound},
		{compiled, "../main.cf", fault.Invalid},
	} {
		if got, err := c.SourceFile(ctx, env, one.commit, one.file); fault.KindOf(err) != one.want || got != "" {
			t.Errorf("%s of %s: %q, %v", one.file, one.commit, got, err)
		}
	}
}
