// Package build makes what a compile needs and runs it: the virtual
// environment of an environment's compiler, with the project's requirements in
// it, and the compiler as a child process.
//
//	checkout ──▶ Venv: which Python ──▶ Install: <env>/compiler/.env-py3.x, to which .env points
//	                                    ──▶ Compile: `ordain compile -`
//
// The virtual environment is made again only when the interpreter, the
// requirements or the pip settings changed, or when a reinstall was asked for:
// an unchanged project costs milliseconds here.
//
// After a compile a Python process gets ready for the next one of the same
// environment: package warm.
package build

import (
	"context"
	"log/slog"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/build/install"
	"ordain.dev/ordain/server/build/warm"
)

// Config is what a Builder is made of.
type Config struct {
	Layout *layout.Layout
	Maker  *venv.Maker
	Git    install.Git // for modules that are Git repositories
	// Program is the command that runs as `… compile`: this program.
	Program []string
	NoLocal bool          // repositories of modules may not lie on the server's disk
	Timeout time.Duration // of one compile; 0: none
	Memory  uint64        // bytes that one compile may use; 0: what the compiler finds right
	// Isolation confines compiles; nil confines nothing.
	Isolation *isolation.Config
	Warm      warm.Config // of the workers that wait for the next compile; its Logger is this one's
	Logger    *slog.Logger
}

// Builder compiles projects. It is safe for concurrent use by
// different environments.
type Builder struct {
	layout    *layout.Layout
	maker     *venv.Maker
	installer *install.Installer
	program   []string
	noLocal   bool
	timeout   time.Duration
	memory    uint64
	isolation *isolation.Config
	warm      *warm.Keeper
	log       *slog.Logger
}

// New checks the configuration.
func New(c Config) (*Builder, error) {
	if c.Layout == nil || c.Maker == nil || len(c.Program) == 0 || c.Logger == nil {
		return nil, fault.New("build.New", fault.Internal, "builder.Config is not complete")
	}
	installer, err := install.New(install.Config{Maker: c.Maker, Git: c.Git, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	c.Warm.Logger = c.Logger
	keeper, err := warm.New(c.Warm)
	if err != nil {
		return nil, err
	}
	return &Builder{
		layout: c.Layout, maker: c.Maker, installer: installer, program: c.Program, noLocal: c.NoLocal,
		timeout: c.Timeout,
		memory:  c.Memory, isolation: c.Isolation, warm: keeper, log: c.Logger,
	}, nil
}

// Close ends the workers that wait for the next compiles.
func (b *Builder) Close() { b.warm.Close() }

// Forget ends the worker that waits for the next compile of an environment and deletes
// what was built for it: its files are about to go.
func (b *Builder) Forget(env intent.EnvironmentID) {
	b.warm.Forget(env.String())
	if err := b.maker.Forget(env.String()); err != nil {
		b.log.Warn("packages that were built for a deleted environment are still there", "error", err)
	}
}

// place is where a job compiles.
func (b *Builder) place(job Job) layout.Environment {
	env := b.layout.Environment(job.Environment.ID)
	if job.Preview {
		return env.Preview()
	}
	return env
}

// Venv finds the interpreter that the compiler's virtual environment is made with.
func (b *Builder) Venv(ctx context.Context, job Job, out Output) (string, error) {
	python, err := b.maker.Interpreter(ctx, "")
	if err != nil {
		return "", err
	}
	out("Python "+python.Version+" at "+python.Path+"\n", "")
	return "", nil
}
