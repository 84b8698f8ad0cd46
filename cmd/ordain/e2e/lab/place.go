package lab

import (
	"cmp"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/server/control"
)

// Place is an environment of a scenario, with its repository.
type Place struct {
	*World
	T    *testing.T
	Env  intent.EnvironmentID
	Bare string
	Work string
	Site string // the folder that its notes are deployed to
	// last is the compile that was waited for last.
	last intent.CompileID
	// Suffix tells the places of a test with several apart.
	Suffix string
	// Author makes the commits; Eve does, if it is empty.
	Author string
}

// NewPlace makes a repository. It has no environment until Bind is called.
func (w *World) NewPlace(t *testing.T) *Place {
	t.Helper()
	t.Cleanup(func() { racedetector.Check(t) })
	dir := t.TempDir()
	site, err := siteIn(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &Place{
		World: w,
		T:     t,
		Bare:  filepath.Join(dir, "repo.git"),
		Work:  filepath.Join(dir, "work"),
		Site:  site,
	}
	if err := os.Mkdir(p.Work, 0o755); err != nil {
		t.Fatal(err)
	}
	p.Git("init", "-q", "--bare", "-b", "main", p.Bare)
	p.Git("init", "-q", "-b", "main")
	p.Git("remote", "add", "origin", p.Bare)
	return p
}

// Bind makes an environment that follows source.
func (p *Place) Bind(source intent.Source, secrets map[string]string) {
	p.T.Helper()
	ctx := p.T.Context()
	name := strings.NewReplacer("/", "-", " ", "-").Replace(p.T.Name()) + p.Suffix
	project, err := p.Control.CreateProject(ctx, intent.Project{Name: name})
	if err != nil {
		p.T.Fatal(err)
	}
	env, err := p.Control.CreateEnvironment(ctx, control.NewEnvironment{
		Environment: intent.Environment{ProjectID: project.ID, Name: name, Source: source}, Secrets: secrets,
	})
	if err != nil {
		p.T.Fatal(err)
	}
	p.Env = env.ID
}

// Push writes the files, commits and pushes.
func (p *Place) Push(message string, files map[string]string) {
	p.T.Helper()
	p.Commit(message, files)
	p.Git("push", "-q", "origin", "main")
}

func (p *Place) Commit(message string, files map[string]string) {
	p.T.Helper()
	for name, text := range files {
		file := filepath.Join(p.Work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			p.T.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			p.T.Fatal(err)
		}
	}
	p.Git("add", "-A")
	p.Git("commit", "-q", "--allow-empty", "-m", message)
}

// Head returns the hash of the last commit.
func (p *Place) Head() string { p.T.Helper(); return strings.TrimSpace(p.Git("rev-parse", "HEAD")) }

func (p *Place) Git(args ...string) string {
	p.T.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = p.Work
	author := cmp.Or(p.Author, "Eve")
	mail := strings.ToLower(author) + "@example.org"
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME="+author, "GIT_AUTHOR_EMAIL="+mail, "GIT_COMMITTER_NAME="+author, "GIT_COMMITTER_EMAIL="+mail)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.T.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// NewDeployedPlace makes a place with an environment in which one note, a, is
// deployed, so that a failure has something that it must not touch.
func NewDeployedPlace(t *testing.T, w *World) *Place {
	t.Helper()
	p := w.NewPlace(t)
	p.Push("a note", MergeFiles(Module, p.Model([3]string{"a", "one", "calm"})))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	return p
}

// Recompile requests a compile, as a person does.
func (p *Place) Recompile() {
	p.T.Helper()
	_, _, err := p.Control.RequestCompile(p.T.Context(), p.Env,
		control.CompileRequest{Update: true, Trigger: intent.Trigger{Type: "api", Message: "a test"}})
	if err != nil {
		p.T.Fatal(err)
	}
}

// Fetch returns what the API answers, or a page of the console, about the environment.
func (p *Place) Fetch(path string) string {
	p.T.Helper()
	req, err := http.NewRequestWithContext(p.T.Context(), http.MethodGet, p.Server.URL()+path, nil)
	if err != nil {
		p.T.Fatal(err)
	}
	req.Header.Set("X-Inmanta-tid", p.Env.String())
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		p.T.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.T.Fatalf("%s: %s, %v", path, answer.Status, err)
	}
	return string(body)
}
