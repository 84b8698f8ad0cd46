// Package builder makes what a compile needs and runs it: the virtual
// environment of an environment's compiler, with the project's requirements in
// it, and the compiler as a child process.
//
//	checkout ──▶ Venv: which Python ──▶ Install: <env>/compiler/.env-py3.x, .env points at it ──▶ Compile: `ordain compile`
//
// The virtual environment is made again only when the interpreter, the
// requirements or the pip settings changed, or when a reinstall was asked for:
// an unchanged project costs milliseconds here.
package builder

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/internal/control"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/pyenv"
	"ordain.dev/ordain/layout"
)

// Config is what a Builder is made of.
type Config struct {
	Layout *layout.Layout
	Maker  *pyenv.Maker
	// Program is the command that runs as `… compile`: this program.
	Program []string
	Timeout time.Duration // of one compile; 0: none
	Logger  *slog.Logger
}

// Builder implements control.Builder. It is safe for concurrent use by
// different environments.
type Builder struct {
	layout  *layout.Layout
	maker   *pyenv.Maker
	program []string
	timeout time.Duration
	log     *slog.Logger
}

// New checks the configuration.
func New(c Config) (*Builder, error) {
	if c.Layout == nil || c.Maker == nil || len(c.Program) == 0 || c.Logger == nil {
		return nil, fault.New("builder.New", fault.Internal, "builder.Config is not complete")
	}
	return &Builder{layout: c.Layout, maker: c.Maker, program: c.Program, timeout: c.Timeout, log: c.Logger}, nil
}

// Venv finds the interpreter that the compiler's virtual environment is made with.
func (b *Builder) Venv(ctx context.Context, job control.BuildJob, out control.Output) (string, error) {
	python, err := b.maker.Interpreter(ctx, "")
	if err != nil {
		return "", err
	}
	out("Python "+python.Version+" at "+python.Path+"\n", "")
	return "", nil
}

// Install makes the virtual environment with the project's requirements.
func (b *Builder) Install(ctx context.Context, job control.BuildJob, out control.Output) (string, error) {
	project, err := module.OpenProject(job.ProjectDir)
	if err != nil {
		return "", err
	}
	requirements, err := project.Requirements()
	if err != nil {
		return "", err
	}
	python, err := b.maker.Interpreter(ctx, "")
	if err != nil {
		return "", err
	}
	env := b.layout.Environment(job.Environment.ID)
	result, err := b.maker.Ensure(ctx, pyenv.Spec{
		Dir: env.CompilerVenv(python.Minor), Requirements: requirements, Constraints: project.Constraints(),
		Pip: project.PipConfig(), Update: job.Compile.Reinstall,
	})
	var commands []string
	for _, step := range result.Steps {
		commands = append(commands, step.Command)
		out(step.Output, step.ErrOutput)
	}
	command := strings.Join(commands, " && ")
	if err != nil {
		return command, err
	}
	if !result.Built {
		out("The requirements are as before: nothing to install\n", "")
	}
	return command, env.SwitchVenv(python.Minor)
}
