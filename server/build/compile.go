package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ordain.dev/ordain/compiler/export"
	compilejob "ordain.dev/ordain/compiler/job"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/internal/fault"
)

// killGrace is how long a compiler that was told to end may take.
const killGrace = 5 * time.Second

// Compile runs `ordain compile -` with a compile job on its standard input, as a
// process group of its own, with a time limit and without the server's
// environment, and reads the document that it writes.
func (b *Builder) Compile(
	ctx context.Context,
	job Job,
	out Output,
) (*export.Document, string, error) {
	work, err := b.scratch()
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(work)
	request := compilejob.Job{
		Project: job.ProjectDir, Python: filepath.Join(b.place(job).CompilerVenvLink(), "bin", "python"),
		CacheDir: b.layout.CacheDir(), Environment: job.Environment.ID.String(),
		Partial: job.Compile.Partial, RemovedSets: job.Compile.RemovedSets,
		Known: known(job), MemoryMax: b.memory,
		ExportFile: filepath.Join(work, "export.json"), RecipeFile: filepath.Join(work, "recipe.json"),
	}
	shown := shownCommand(job)
	if b.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, b.timeout, errTimeout)
		defer cancel()
	}
	owner := job.Environment.ID.String()
	var lent *plugin.Warm
	if !job.Preview { // the template that waits was made for the environment's own folder
		lent = b.warm.Lend(owner)
	}
	if lent != nil {
		defer lent.Handover.Close()
		request.WarmKey = lent.Key
	}
	var stdin bytes.Buffer
	if err := request.Write(&stdin); err != nil {
		return nil, shown, err
	}
	cmd := exec.CommandContext(ctx, b.program[0], slices.Concat(b.program[1:], []string{"compile", "-"})...)
	cmd.Stdin = &stdin
	if lent != nil {
		cmd.ExtraFiles = []*os.File{lent.Handover}
	}
	cmd.Dir = job.ProjectDir
	cmd.Env = b.environ(job)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	lines := &lineWriter{out: out}
	cmd.Stdout, cmd.Stderr = lines.stream(false), lines.stream(true)
	runErr := cmd.Run()
	lines.flush()
	if cmd.Process != nil {
		// Whatever the compiler left behind in its group ends with it.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if errors.Is(context.Cause(ctx), errTimeout) {
		return nil, shown, fault.New("build.Compile", fault.Exhausted,
			fmt.Sprintf("the compile took longer than %s and was stopped", b.timeout)).
			Hint("look for a plug-in that waits, or raise [compiler] timeout")
	}
	if ctx.Err() != nil {
		return nil, shown, ctx.Err()
	}
	doc, err := readDocument(request.ExportFile)
	if fault.Is(err, fault.Exhausted) {
		return nil, shown, err
	}
	if err != nil {
		if runErr != nil {
			err = runErr
		}
		return nil, shown, fault.Wrap("build.Compile", fault.Internal, err).
			Say("the compiler ended without a result").
			Hint("its output says more; if it was killed, it may have run out of memory")
	}
	if doc.Success && !job.Preview { // one with errors says little about the next one
		b.warm.Learn(owner, b.readRecipe(request, job), cmd.Env)
	}
	return doc, shown, nil
}

// shownCommand is the command as a compile report shows it.
func shownCommand(job Job) string {
	shown := "ordain compile --export"
	if job.Compile.Partial {
		shown += " --partial"
		for _, set := range job.Compile.RemovedSets {
			shown += " --delete-resource-set " + strconv.Quote(set)
		}
	}
	if sub := job.Environment.Source.Subdir; sub != "" {
		shown += " --project " + sub
	}
	return shown
}

// readRecipe reads how a template for the next compile is made; it returns nil
// when the compile left nothing usable. Plug-ins ran beside the process that
// wrote it, so it decides neither what program the server starts nor where.
func (b *Builder) readRecipe(request compilejob.Job, job Job) *plugin.Recipe {
	text, err := os.ReadFile(request.RecipeFile)
	if err != nil {
		return nil
	}
	r := &plugin.Recipe{}
	if json.Unmarshal(text, r) != nil {
		return nil
	}
	cache := request.CacheDir
	if r.Python != request.Python || r.Dir != job.ProjectDir || r.CacheDir != cache ||
		filepath.Dir(r.RuntimeDir) != cache {
		b.log.Debug("the compile left a recipe for other folders", "python", r.Python, "dir", r.Dir)
		return nil
	}
	return r
}

// known is what plug-ins may ask the server for.
func known(job Job) plugin.Known {
	e := job.Environment
	k := plugin.Known{
		Environment: plugin.Environment{ID: e.ID.String(), Name: e.Name, Project: e.ProjectID.String()},
		Facts:       map[string]map[string]string{},
	}
	for _, p := range job.Parameters {
		resource := ""
		if !p.Resource.IsZero() {
			resource = p.Resource.String()
		}
		if k.Facts[resource] == nil {
			k.Facts[resource] = map[string]string{}
		}
		k.Facts[resource][p.Name] = p.Value
	}
	return k
}

// scratch makes a folder for one compile's result; what a killed server leaves
// there goes at the next start.
func (b *Builder) scratch() (string, error) {
	if err := os.MkdirAll(b.layout.Scratch(), 0o750); err != nil {
		return "", fault.Disk("build.scratch", b.layout.Scratch(), err)
	}
	work, err := os.MkdirTemp(b.layout.Scratch(), "compile-")
	if err != nil {
		return "", fault.Disk("build.scratch", b.layout.Scratch(), err)
	}
	return work, nil
}

var errTimeout = errors.New("compile timeout")

// documentMax is the size in bytes of the largest export that the server
// reads: about a million resources of the usual size.
const documentMax = 1 << 30

func readDocument(file string) (*export.Document, error) {
	f, err := os.Open(file)
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
	return export.Read(f)
}

// environ is the environment of a compiler: what programs need to run, where
// the race detector reports, the variables of the request, and nothing of the
// server's.
func (b *Builder) environ(job Job) []string {
	env := []string{"ORDAIN_ENVIRONMENT_NAME=" + job.Environment.Name}
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "GORACE"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range job.Compile.Variables {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// lineWriter passes whole lines on, from both streams, one at a time.
type lineWriter struct {
	mu      sync.Mutex
	out     Output
	streams []*stream
}

type stream struct {
	*lineWriter
	stderr bool
	rest   string
}

func (w *lineWriter) stream(stderr bool) *stream {
	s := &stream{lineWriter: w, stderr: stderr}
	w.streams = append(w.streams, s)
	return s
}

// flush passes on what has no end of line.
func (w *lineWriter) flush() {
	for _, s := range w.streams {
		if s.rest != "" {
			_, _ = s.Write([]byte("\n"))
		}
	}
}

// maxLine is where a line without an end is broken.
const maxLine = 64 << 10

// Write passes on the whole lines of p.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.rest + string(p)
	end := strings.LastIndexByte(text, '\n') + 1
	if end == 0 && len(text) > maxLine {
		end = len(text)
	}
	s.rest = text[end:]
	if end == 0 {
		return len(p), nil
	}
	if s.stderr {
		s.out("", text[:end])
	} else {
		s.out(text[:end], "")
	}
	return len(p), nil
}
