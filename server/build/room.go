package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"ordain.dev/ordain/compiler/export"
	compilejob "ordain.dev/ordain/compiler/job"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/build/warm"
)

// The files that a compile leaves in the folder for its results.
const (
	resultsName = "results"
	exportName  = "export.json"
	recipeName  = "recipe.json"
)

// Limits of the kernel for a confined compile and everything that its plug-ins start.
const (
	compileTasks     = 1024
	compileFileSize  = 4 << 30
	compileOpenFiles = 65536
)

// room is where one compile runs: the folders that it has, and what keeps it from all others.
type room struct {
	builder *Builder
	cell    *isolation.Cell // nil: the compile is not confined
	private *isolation.Private
	access  isolation.Access

	dir     string   // of this compile alone
	results string   // where the compiler writes; what lies there is not to be trusted
	cache   string   // for what can be made again
	python  string   // the interpreter of the virtual environment
	environ []string // HOME and TMPDIR, if the compile has its own
}

// openRoom makes the folders of a compile, or of a template.
func (b *Builder) openRoom(job Job, kind string) (*room, error) {
	env, place := b.layout.Environment(job.Environment.ID), b.place(job)
	r := &room{
		builder: b, cache: b.layout.CacheDir(), python: filepath.Join(place.CompilerVenvLink(), "bin", "python"),
	}
	if err := os.MkdirAll(env.Runs(), 0o711); err != nil {
		return nil, fault.Disk("build.Compile", env.Runs(), err)
	}
	if b.isolation == nil {
		dir, err := os.MkdirTemp(env.Runs(), kind+"-")
		if err == nil {
			r.dir, r.results = dir, filepath.Join(dir, resultsName)
			err = os.Mkdir(r.results, 0o700)
		}
		if err != nil {
			return nil, fault.Disk("build.Compile", env.Runs(), err)
		}
		return r, nil
	}
	r.cell = b.isolation.Cell(job.Environment.Number)
	r.cache = place.Cache() // a preview runs code that nobody has merged: it has a cache of its own
	if err := r.furnish(env, place, job, kind); err != nil {
		return nil, fault.Disk("build.Compile", env.Dir(), err)
	}
	return r, nil
}

// furnish makes the folders of a confined compile.
func (r *room) furnish(env, place layout.Environment, job Job, kind string) (err error) {
	if err := r.cell.Share(env.Dir(), place.Compiler(), job.ProjectDir); err != nil {
		return err
	}
	if err := r.cell.Own(r.cache); err != nil {
		return err
	}
	if r.private, err = r.cell.Open(env.Runs(), kind, resultsName); err != nil {
		return err
	}
	r.dir, r.results = r.private.Dir, filepath.Join(r.private.Dir, resultsName)
	r.environ = r.private.Environ
	r.access = isolation.Access{
		Read: append(
			isolation.Interpreter(r.python),
			place.Compiler(),
			job.Dir,
			job.ProjectDir,
			r.builder.program[0],
		),
		Write:  []string{r.results, r.cache},
		Limits: isolation.Limits{FileSize: compileFileSize, OpenFiles: compileOpenFiles},
	}
	if r.cell.Exact() {
		r.access.Limits.Processes = compileTasks
	}
	return nil
}

// run runs the compiler, and ends whatever it has left behind.
func (r *room) run(cmd *exec.Cmd) error {
	started := func() (*isolation.Space, error) { return nil, nil }
	if r.private != nil {
		var err error
		if started, err = r.private.Confine(cmd, r.access); err != nil {
			return err
		}
	}
	err := cmd.Start()
	space, startErr := started()
	defer func() { space.Close() }() // there may be a space in spite of an error
	if err != nil {
		return err
	}
	if startErr != nil { // it has ended already, or waits for what does not come
		_ = cmd.Process.Kill()
	}
	isolation.AwaitEnd(cmd.Process.Pid)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	space.End()
	return errors.Join(cmd.Wait(), startErr)
}

// template returns how the template for the next compile of the environment is confined.
func (r *room) template(job Job) func() (warm.Confinement, error) {
	if r.cell == nil {
		return nil
	}
	return func() (warm.Confinement, error) {
		own, err := r.builder.openRoom(job, "template")
		if err != nil {
			return warm.Confinement{}, err
		}
		return warm.Confinement{
			Confine: func(cmd *exec.Cmd) (func() (*isolation.Space, error), error) {
				return own.private.Confine(cmd, own.access)
			},
			Ended: own.close,
		}, nil
	}
}

func (r *room) close() { _ = os.RemoveAll(r.dir) }

// open opens a file that the compile has written, if it is a plain file: a link could lead to a file
// that only the server may read.
func (r *room) open(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(r.results, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.Join(errors.New(name+" is not a file"), err)
	}
	return f, nil
}

// documentMax is the size in bytes of the largest export that the server
// reads: about a million resources of the usual size.
const documentMax = 1 << 30

func (r *room) readDocument() (*export.Document, error) {
	f, err := r.open(exportName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > documentMax {
		return nil, fault.New("build.readDocument", fault.Exhausted,
			fmt.Sprintf("the compile made an export of %d MiB, and the server takes %d MiB at "+
				"most", info.Size()>>20, documentMax>>20),
		).
			Hint("keep large texts out of attributes, as files that a handler fetches, or divide the project over " +
				"several environments")
	}
	return export.Read(io.LimitReader(f, documentMax))
}

// recipeMax is the size in bytes of the largest recipe that the server reads.
const recipeMax = 64 << 20

// readRecipe reads how a template for the next compile is made; it returns nil
// when the compile left nothing usable. Plug-ins ran beside the process that
// wrote it, so it decides neither what program the server starts nor where.
func (r *room) readRecipe(request compilejob.Job, job Job) *plugin.Recipe {
	f, err := r.open(recipeName)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, recipeMax))
	recipe := &plugin.Recipe{}
	if err != nil || json.Unmarshal(text, recipe) != nil {
		return nil
	}
	if recipe.Python != request.Python || recipe.Dir != job.ProjectDir || recipe.CacheDir != r.cache ||
		filepath.Dir(recipe.RuntimeDir) != r.cache {
		r.builder.log.Debug("the compile left a recipe for other folders", "python", recipe.Python, "dir", recipe.Dir)
		return nil
	}
	return recipe
}
