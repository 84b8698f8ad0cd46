package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
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
	room, err := b.openRoom(job, "compile")
	if err != nil {
		return nil, "", err
	}
	defer room.close()
	request := compilejob.Job{
		Project: job.ProjectDir, Python: room.python,
		CacheDir: room.cache, Environment: job.Environment.ID.String(),
		Partial: job.Compile.Partial, RemovedSets: job.Compile.RemovedSets,
		Known: known(job), Clusters: job.Clusters, MemoryMax: b.memory,
		ExportFile: filepath.Join(room.results, exportName), RecipeFile: filepath.Join(room.results, recipeName),
	}
	shown := shownCommand(job)
	if b.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, b.timeout, errTimeout)
		defer cancel()
	}
	owner := job.Environment.ID.String()
	var lent *plugin.Warm
	giveBack := func() {}
	if !job.Preview { // the template that waits was made for the environment's own folder
		if l, back := b.warm.Lend(owner); l != nil {
			lent, giveBack = l, sync.OnceFunc(back)
		}
	}
	defer giveBack()
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
	cmd.Env = b.environ(job, room.environ)
	env := cmd.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	lines := &lineWriter{out: out}
	cmd.Stdout, cmd.Stderr = lines.stream(false), lines.stream(true)
	runErr := room.run(cmd)
	giveBack()
	lines.flush()
	if errors.Is(context.Cause(ctx), errTimeout) {
		return nil, shown, fault.New("build.Compile", fault.Exhausted,
			fmt.Sprintf("the compile took longer than %s and was stopped", b.timeout)).
			Hint("look for a plug-in that waits, or raise [compiler] timeout")
	}
	if ctx.Err() != nil {
		return nil, shown, ctx.Err()
	}
	doc, err := room.readDocument()
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
		b.warm.Learn(owner, room.readRecipe(request, job), env, room.template(job))
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

var errTimeout = errors.New("compile timeout")

// environ is the environment of a compiler: what programs need to run, where
// the race detector reports, its folders, the variables of the request, and
// nothing of the server's.
func (b *Builder) environ(job Job, folders []string) []string {
	env := map[string]string{"ORDAIN_ENVIRONMENT_NAME": job.Environment.Name}
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "GORACE"} {
		if value, set := os.LookupEnv(name); set {
			env[name] = value
		}
	}
	for _, pair := range folders {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	maps.Copy(env, job.Compile.Variables)
	var pairs []string
	for name, value := range env {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return pairs
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
