// Package install brings to the disk what a project needs before it can be
// compiled: modules that are Python packages, from an index, and modules that
// are Git repositories, from the project's list of them.
//
//	requirements.txt, constraints ──▶ virtual environment ──▶ follow the imports
//	        ▲                                                    │ one is missing:
//	        └──── what the new module requires ◀── downloadpath ◀┘ clone it at the newest tag allowed
//
// The round repeats until nothing is missing and nothing new is required. The
// command line and the server install by this same mechanism.
package install

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/venv"
)

// Git is what is asked of repositories. A gitsync.Syncer does it.
type Git interface {
	// Refs gives tags and default branch, of what was fetched before unless refresh is set.
	Refs(ctx context.Context, src gitsync.Source, refresh bool) (gitsync.Refs, error)
	ReadFile(src gitsync.Source, commit, path string) ([]byte, error)
	Clone(ctx context.Context, src gitsync.Source, commit, dir string) error
	Switch(ctx context.Context, src gitsync.Source, commit, dir string) error
}

// Config is what an Installer is made of.
type Config struct {
	Maker  *venv.Maker
	Git    Git
	Logger *slog.Logger
}

// Installer installs what projects need. It is safe for concurrent use.
type Installer struct {
	maker *venv.Maker
	git   Git
	log   *slog.Logger
}

// New checks the configuration.
func New(c Config) (*Installer, error) {
	if c.Maker == nil || c.Git == nil || c.Logger == nil {
		return nil, fault.New("install.New", fault.Internal, "install.Config is not complete")
	}
	return &Installer{maker: c.Maker, git: c.Git, log: c.Logger}, nil
}

// Request says what to install, and where.
type Request struct {
	Dir  string // of the project
	Main string // entry file; empty: main.cf
	// Venv is the virtual environment. InPlace adds to the one that is there.
	Venv    string
	InPlace bool
	Python  string // to make it with; empty: the Maker's
	// Update takes the newest versions that are allowed, also of what is there.
	Update bool
	// Refresh asks repositories for new versions before one is chosen, where they
	// can be reached; else what is known of them is taken.
	Refresh bool
	// Root bounds where modules may be cloned to; empty: anywhere.
	Root string
	// NoLocal refuses repositories on this machine's disk: whoever wrote the
	// project may not read them.
	NoLocal bool
	// Reach gives what a repository asks to see and how it is reached; nil: only what its URL says.
	Reach func(url string) (gitsync.Credentials, gitsync.Trust)
	// MaxFile is how many bytes a file of a module's repository may have; 0: any.
	MaxFile int64
	// Out receives what is done, as it is done.
	Out func(stdout, stderr string)
}

// Result tells what came of it, also of a failed one as far as it went.
type Result struct {
	Commands   []string
	Python     venv.Result
	Scan       module.Scan
	Downloaded []Download
	// Broken says which modules are not of the version that is wanted, and who
	// wants it. They can be compiled with nevertheless.
	Broken []string
}

// Download is a module that was cloned, or brought to another version.
type Download struct {
	Name    string
	Version string // the tag, or the name of the branch
	Dir     string
	URL     string
}

// rounds bounds how often new modules may bring new requirements.
const rounds = 50

// Install installs. What it says is wrong is a fault or the compiler's own error.
func (in *Installer) Install(ctx context.Context, req Request) (Result, error) {
	j := &job{Installer: in, req: req, refreshed: map[string]bool{}}
	if j.req.Main == "" {
		j.req.Main = "main.cf"
	}
	err := j.run(ctx)
	j.result.Scan = j.scan
	return j.result, err
}

// job is one installation under way.
type job struct {
	*Installer
	req       Request
	project   *module.Project
	scan      module.Scan
	result    Result
	refreshed map[string]bool // repositories that were fetched by this job
	asked     venv.Spec       // what the environment was last made for
}

func (j *job) say(format string, args ...any) {
	if j.req.Out != nil {
		j.req.Out(fmt.Sprintf(format+"\n", args...), "")
	}
}

func (j *job) run(ctx context.Context) error {
	if err := j.open(); err != nil {
		return err
	}
	for _, w := range j.project.Metadata.Warnings {
		j.say("Warning: %s", w)
	}
	// Modules that an earlier installation downloaded and that are gone, as the
	// server's are after each checkout, come first: then the environment is made
	// once, for all of them.
	if len(j.project.SitePackages) > 0 {
		if _, err := j.modules(ctx, true); err != nil {
			return err
		}
	}
	for range rounds {
		if err := j.environment(ctx); err != nil {
			return err
		}
		if _, err := j.modules(ctx, false); err != nil {
			return err
		}
		if j.settled() {
			j.verify()
			return nil
		}
	}
	return fault.New("install", fault.Exhausted, "the modules of this project require each other without end")
}

// open reads the project with the packages of the environment that is there.
func (j *job) open() error {
	project, err := module.OpenProject(j.req.Dir)
	if err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(j.req.Venv, "lib", "python3.*", "site-packages"))
	if err != nil {
		return err
	}
	project.SitePackages = found
	project.Applies = Conditions(found)
	j.project = project
	return nil
}

// spec is the environment that the project wants as it lies there now.
func (j *job) spec() (venv.Spec, error) {
	requirements, err := j.project.Requirements()
	if err != nil {
		return venv.Spec{}, err
	}
	return venv.Spec{
		Dir: j.req.Venv, Python: j.req.Python, Requirements: requirements, Constraints: j.project.Constraints(),
		Pip: j.project.PipConfig(), Update: j.req.Update, InPlace: j.req.InPlace,
	}, nil
}

func (j *job) settled() bool {
	now, err := j.spec()
	return err == nil && slices.Equal(now.Requirements, j.asked.Requirements) &&
		slices.Equal(now.Constraints, j.asked.Constraints)
}

func (j *job) environment(ctx context.Context) error {
	spec, err := j.spec()
	if err != nil {
		return err
	}
	if j.asked.Dir != "" { // a second round: what was brought up to date is
		spec.Update = false
	}
	made, err := j.maker.Ensure(ctx, spec)
	for _, step := range made.Steps {
		j.result.Commands = append(j.result.Commands, step.Command)
		if j.req.Out != nil {
			j.req.Out(ended(step.Output), ended(step.ErrOutput))
		}
	}
	built := made.Built || j.result.Python.Built
	j.result.Python = made
	j.result.Python.Built = built
	if err != nil {
		return j.explain(spec, err)
	}
	j.asked = spec
	return j.open()
}

// ended ends a text with a line break, when there is any.
func ended(text string) string {
	if text == "" || text[len(text)-1] == '\n' {
		return text
	}
	return text + "\n"
}

// explain adds to an installer's error what would help most: an index.
func (j *job) explain(spec venv.Spec, err error) error {
	var f *fault.Error
	pip := spec.Pip
	if errors.As(err, &f) && f.Kind == fault.Invalid && pip.IndexURL == "" && len(pip.ExtraIndexURL) == 0 &&
		!pip.UseSystemConfig {
		return f.Hint(
			"check the requirements of the project and its modules; project.yml names no index, so packages came from the public one: " +
				"set pip.index_url for another, or pip.use_system_config to take this machine's",
		)
	}
	return err
}

// verify compares the versions of all modules with what is wanted of them.
func (j *job) verify() {
	j.scan = j.project.Scan(j.req.Main)
	wishes := j.project.Wishes(j.scan.Modules)
	for _, m := range j.scan.Modules {
		for _, w := range module.Broken(wishes[m.Name], m.Version) {
			j.result.Broken = append(
				j.result.Broken,
				fmt.Sprintf("%s wants %s %s, but %s is there, in %s", w.By, m.Name, w.Versions, m.Version, m.Path),
			)
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
