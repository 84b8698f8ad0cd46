// Package demo shows the whole flow on a sample repository: a push that becomes a
// deployment, a second one that deploys only what changed, damage that is repaired,
// and a broken model that changes nothing. Everything in it is real: the repository,
// the webhook, the database, the virtual environments, the modules and the deployed
// files.
package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/source"
)

// Config configures a demo.
type Config struct {
	Dir     string        // an existing, empty folder for all files
	Options config.Config // of the server; the demo sets the directories
	Program []string      // this program; it runs as the compiler and sends the webhook
	Version string
	Out     io.Writer
	// Chapter is called after each chapter with its outcome; may be nil.
	Chapter func(Ending)
}

// Ending is the outcome of a chapter of the demo, for tests.
type Ending struct {
	Chapter  string // push, change, damage, break
	URL      string
	Env      intent.EnvironmentID
	Control  *control.Control
	Compile  *intent.Compile
	Version  int // the active version
	Deployed []intent.Action
	Root     string // the folder of the deployed site
	Diags    []diag.Diagnostic
}

// demo is the state of a running demo.
type demo struct {
	cfg    Config
	n      *narrator
	server *server.Server
	repo   *repository
	env    intent.EnvironmentID
	root   string
	last   intent.CompileID // the compile that was shown last
}

// Run runs all chapters and returns the server, which goes on running. The caller must
// stop it.
func Run(ctx context.Context, cfg Config) (*server.Server, error) {
	d := &demo{cfg: cfg, n: &narrator{out: cfg.Out}, root: filepath.Join(cfg.Dir, "site")}
	for _, chapter := range []func(context.Context) error{d.start, d.bind, d.push, d.change, d.damage, d.breakModel} {
		if err := chapter(ctx); err != nil {
			if d.server != nil {
				d.server.Stop()
			}
			return nil, err
		}
	}
	return d.server, nil
}

func (d *demo) start(ctx context.Context) (err error) {
	d.n.chapter("A server, with a database of its own")
	o := d.cfg.Options
	o.StateDir, o.LogDir = filepath.Join(d.cfg.Dir, "state"), filepath.Join(d.cfg.Dir, "log")
	if err := openSite(d.root); err != nil {
		return err
	}
	o.IsolationWrite = append(o.IsolationWrite, d.root)
	o.IsolationFirstUser = 0 // the site belongs to the user of the demo, who damages it, too
	d.server, err = server.New(
		server.Config{Options: o, Program: d.cfg.Program, Version: d.cfg.Version, Progress: d.n.took})
	if err != nil {
		return err
	}
	if err := d.server.Start(ctx); err != nil {
		return err
	}
	d.n.say("console: %s", d.server.URL())
	return nil
}

// openSite makes the folder that the handlers write to. They run as another user if this is root.
func openSite(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o777)
}

// bind makes the repository, the environment and the webhook between them.
func (d *demo) bind(ctx context.Context) (err error) {
	d.n.chapter("A repository, an environment bound to it, and a webhook")
	secret := rand.Text()
	secretFile := filepath.Join(d.cfg.Dir, "webhook.secret")
	if err := os.WriteFile(secretFile, []byte(secret), 0o600); err != nil {
		return err
	}
	notify := append(append([]string{}, d.cfg.Program...), "hook", "send", "--url",
		d.server.URL()+"/hooks/github", "--secret-file", secretFile)
	if d.repo, err = newRepository(ctx, d.cfg.Dir, d.root, notify); err != nil {
		return err
	}
	d.n.say("repository: %s", d.repo.bare)
	c := d.server.Control()
	project, err := c.CreateProject(ctx, intent.Project{Name: "demo"})
	if err != nil {
		return err
	}
	env, err := c.CreateEnvironment(ctx, control.NewEnvironment{
		Environment: intent.Environment{
			ProjectID: project.ID,
			Name:      "bakery",
			Source:    intent.Source{URL: "file://" + d.repo.bare, Branch: "main"},
		},
		Secrets: map[string]string{source.SecretWebhook: secret},
	})
	if err != nil {
		return err
	}
	d.env = env.ID
	d.n.say("environment: %s, branch main, with a webhook that signs", env.ID)
	return nil
}

func (d *demo) push(ctx context.Context) error {
	d.n.chapter("The first push: sync, compile, release, deploy")
	return d.pushAndShow(ctx, "push", "The bakery's website")
}

func (d *demo) change(ctx context.Context) error {
	d.n.chapter("A second push that changes one page")
	if err := d.repo.edit("To order, two days ahead.", "To order, one day ahead."); err != nil {
		return err
	}
	return d.pushAndShow(ctx, "change", "Cakes: one day is enough")
}

// pushAndShow pushes and shows what follows, up to the last deployment.
func (d *demo) pushAndShow(ctx context.Context, chapter, message string) error {
	before, err := d.actions(ctx)
	if err != nil {
		return err
	}
	if err := d.repo.push(ctx, message); err != nil {
		return err
	}
	d.n.say("git push: %q", message)
	compile, err := d.showCompile(ctx)
	if err != nil {
		return err
	}
	if compile.Success == nil || !*compile.Success || compile.Version == nil {
		d.quote(compile)
		return fmt.Errorf("the compile of %q failed", message)
	}
	deployed, total, err := d.showDeployment(ctx, before)
	if err != nil {
		return err
	}
	d.n.say("%d of %d resources deployed, %d untouched", len(deployed), total, total-len(deployed))
	return d.end(ctx, Ending{Chapter: chapter, Compile: compile, Deployed: deployed})
}

// damage overwrites a deployed file and lets the repair timer find it.
func (d *demo) damage(ctx context.Context) error {
	d.n.chapter("Somebody edits a deployed file by hand")
	before, err := d.actions(ctx)
	if err != nil {
		return err
	}
	page := filepath.Join(d.root, "bread.html")
	if err := os.WriteFile(page, []byte("closed\n"), 0o644); err != nil {
		return err
	}
	d.n.say("%s now says \"closed\"", page)
	c := d.server.Control()
	if err := c.SetSetting(ctx, d.env, "autostart_agent_repair_interval", "1"); err != nil {
		return err
	}
	d.n.say("self-healing looks at every resource, here every second")
	repaired, err := d.waitRepaired(ctx, before)
	if err != nil {
		return err
	}
	if err := c.DeleteSetting(ctx, d.env, "autostart_agent_repair_interval"); err != nil {
		return err
	}
	d.n.say("%s was %s: %s", repaired.Resource, repaired.Change, changedNames(repaired))
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	d.n.quote(string(text))
	return d.end(ctx, Ending{Chapter: "damage", Deployed: []intent.Action{repaired}})
}

// breakModel pushes a model that does not compile.
func (d *demo) breakModel(ctx context.Context) error {
	d.n.chapter("A push that breaks the model")
	if err := d.repo.edit(`title="Bread"`, `titel="Bread"`); err != nil {
		return err
	}
	if err := d.repo.push(ctx, "A typing mistake"); err != nil {
		return err
	}
	compile, err := d.showCompile(ctx)
	if err != nil {
		return err
	}
	diags := d.quote(compile)
	if len(diags) == 0 {
		return errors.New("the broken model led to no diagnostics")
	}
	active, err := d.server.Store().ActiveVersion(ctx, d.env)
	if err != nil {
		return err
	}
	d.n.say("version %d is still active, and nothing was deployed", active.Number)
	return d.end(ctx, Ending{Chapter: "break", Compile: compile, Diags: diags})
}

// quote shows the compiler's diagnostics, and returns them.
func (d *demo) quote(compile *intent.Compile) (found []diag.Diagnostic) {
	if compile.Diagnostics != nil && json.Unmarshal(compile.Diagnostics, &found) == nil {
		for _, one := range found {
			d.n.quote(one.Render())
		}
	}
	return found
}

func (d *demo) end(ctx context.Context, e Ending) error {
	if d.cfg.Chapter == nil {
		return nil
	}
	active, err := d.server.Store().ActiveVersion(ctx, d.env)
	if err != nil {
		return err
	}
	if active != nil {
		e.Version = active.Number
	}
	e.URL, e.Env, e.Control, e.Root = d.server.URL(), d.env, d.server.Control(), d.root
	d.cfg.Chapter(e)
	return nil
}

func changedNames(a intent.Action) string {
	names := make([]string, 0, len(a.Changes))
	for name := range a.Changes {
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// patience is how long the demo waits for anything. It is long because packages for
// the virtual environments may have to be downloaded.
const patience = 10 * time.Minute
