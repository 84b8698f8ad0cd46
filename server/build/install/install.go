// Package install installs what a project needs before it can be compiled: modules
// that are Python packages, from a package index, and modules that are Git
// repositories, from the repositories that the project lists.
//
//	requirements.txt, constraints ──▶ virtual environment ──▶ follow the imports
//	        ▲                                                    │ a module is missing:
//	        └── what the new module requires ◀── downloadpath ◀──┘ clone its newest allowed tag
//
// This repeats until no module is missing and nothing new is required. The command
// line and the server both install in this way.
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

// Git reads repositories of modules. A gitsync.Syncer implements it.
type Git interface {
	// Refs returns the tags and the default branch. Without refresh they are those of
	// the last fetch.
	Refs(ctx context.Context, src gitsync.Source, refresh bool) (gitsync.Refs, error)
	ReadFile(src gitsync.Source, commit, path string) ([]byte, error)
	Clone(ctx context.Context, src gitsync.Source, commit, dir string) error
	Switch(ctx context.Context, src gitsync.Source, commit, dir string) error
}

// Config configures an Installer. All fields are required.
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
	// Venv is the folder of the virtual environment. InPlace adds to an existing one.
	Venv    string
	InPlace bool
	Python  string // the interpreter to make it with; empty: the Maker's
	// Owner is the environment of the server that this is for; empty: a person's project,
	// whose requirements may lead to files of this machine.
	Owner string
	// Update also replaces what is there by the newest versions that are allowed.
	Update bool
	// Refresh fetches repositories before a version is chosen. For a repository that
	// cannot be reached, the last fetch counts.
	Refresh bool
	// Root is the folder that modules must be cloned into, and that requirements may
	// refer to; empty: anywhere.
	Root string
	// NoLocal refuses repositories on this machine's disk, which the author of the
	// project may not be allowed to read.
	NoLocal bool
	// Reach returns the credentials and the trust settings for a repository; nil: its
	// URL has all there is.
	Reach func(url string) (gitsync.Credentials, gitsync.Trust)
	// MaxFile limits the bytes of each file in a module's repository; 0: no limit.
	MaxFile int64
	// Out receives the output of each step as it is done.
	Out func(stdout, stderr string)
}

// Result describes an installation. After a failure it describes what was done until
// then.
type Result struct {
	Commands   []string
	Python     venv.Result
	Scan       module.Scan
	Downloaded []Download
	// Broken lists modules whose version is not the required one, and what requires
	// it. The project may compile nevertheless.
	Broken []string
}

// Download is a module that was cloned, or brought to another version.
type Download struct {
	Name    string
	Version string // the tag, or the name of the branch
	Dir     string
	URL     string
}

// rounds limits how often new modules may bring new requirements.
const rounds = 50

// Install installs what a project needs. Its errors are faults, or errors of the
// compiler about files of the project.
func (in *Installer) Install(ctx context.Context, req Request) (Result, error) {
	j := &job{Installer: in, req: req, refreshed: map[string]bool{}}
	if j.req.Main == "" {
		j.req.Main = "main.cf"
	}
	err := j.run(ctx)
	j.result.Scan = j.scan
	return j.result, err
}

// job is one installation.
type job struct {
	*Installer
	req       Request
	project   *module.Project
	scan      module.Scan
	result    Result
	refreshed map[string]bool // repositories that this job has fetched
	asked     venv.Spec       // for which the environment was made last
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
	// If modules of an earlier installation are gone, as on the server after each
	// checkout, they come first, so that the environment is made once for all of them.
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

// open reads the project together with the packages of the environment.
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
	project.Root = j.req.Root
	j.project = project
	return nil
}

// spec returns the environment that the project needs in its present state.
func (j *job) spec() (venv.Spec, error) {
	requirements, err := j.project.Requirements()
	if err != nil {
		return venv.Spec{}, err
	}
	return venv.Spec{
		Dir: j.req.Venv, Python: j.req.Python, Requirements: requirements, Constraints: j.project.Constraints(),
		Pip: j.project.PipConfig(), Update: j.req.Update, InPlace: j.req.InPlace, Owner: j.req.Owner,
		Local: j.req.Owner == "",
	}, nil
}

// settled reports whether the environment is made for what the project now needs.
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
	if j.asked.Dir != "" { // after the first round, everything is up to date
		spec.Update = false
	}
	made, err := j.maker.Ensure(ctx, spec)
	for _, step := range made.Steps {
		j.result.Commands = append(j.result.Commands, step.Command)
		if j.req.Out != nil {
			j.req.Out(ended(step.Output), ended(step.ErrOutput))
		}
	}
	if made.Damage != "" {
		j.say("The virtual environment was damaged and has been mended: %s", made.Damage)
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

// ended returns a text that ends with a line break, unless it is empty.
func ended(text string) string {
	if text == "" || text[len(text)-1] == '\n' {
		return text
	}
	return text + "\n"
}

// explain adds a hint about package indexes to an installer's error, if the project
// names none.
func (j *job) explain(spec venv.Spec, err error) error {
	var f *fault.Error
	pip := spec.Pip
	if errors.As(err, &f) && f.Kind == fault.Invalid && pip.IndexURL == "" && len(pip.ExtraIndexURL) == 0 &&
		!pip.UseSystemConfig {
		return f.Hint(
			"check the requirements of the project and its modules; project.yml names no index, so packages " +
				"came from the public one: " +
				"set pip.index_url for another, or pip.use_system_config to take this machine's",
		)
	}
	return err
}

// verify compares the versions of all modules with the required ones.
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
