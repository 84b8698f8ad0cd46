package executor

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/python/worker"
)

// threadsMax is added to a process's limit of tasks for the threads of agents and
// of other executors, because the kernel's limit counts all threads of a user.
const threadsMax = 4096

// launch makes the virtual environment and the code folder at the same time and
// starts the process with them.
func (m *Manager) launch(ctx context.Context, e *executor) (*process, error) {
	b := e.blueprint
	paths := m.c.Layout.Environment(m.c.Environment)
	venvDir, codeDir := paths.Venv(b.VenvHash()), paths.Code(e.hash)
	var made venv.Result
	var venvErr, codeErr error
	var both sync.WaitGroup
	m.making.RLock()
	both.Go(func() { made, venvErr = m.venv(ctx, venvDir, b) })
	both.Go(func() { codeErr = m.code(ctx, codeDir, b.Sources) })
	both.Wait()
	m.mu.Lock()
	m.grown = true
	generation := m.generation
	m.mu.Unlock()
	m.making.RUnlock()
	if venvErr != nil {
		return nil, venvErr
	}
	if codeErr != nil {
		return nil, codeErr
	}
	runtimeDir := m.runtime
	if b.Runtime != "" {
		var err error
		if runtimeDir, err = m.c.Contents.Runtime(ctx, b.Runtime); err != nil {
			return nil, err
		}
	}
	private, err := m.private()
	if err != nil {
		return nil, err
	}
	environ, err := m.environ(ctx, private)
	if err != nil {
		private.Close()
		return nil, err
	}
	printed := &output{log: m.c.Logger.With("executor", e.hash), masks: environ.masks}
	config := worker.Config{
		Python: made.Python, Role: "handler", RuntimeDir: runtimeDir, Path: []string{codeDir}, Dir: codeDir,
		Env: environ.pairs, DataMax: m.c.MemoryMax, FileMax: m.c.FileMax, OnOutput: printed.line,
	}
	if m.c.ChildrenMax > 0 {
		config.Tasks = m.c.ChildrenMax + threadsMax
	}
	if !m.c.KeepDaemons {
		config.Mark = m.mark() + uuid.NewString()
	}
	m.confine(&config, private, venvDir, made.Python)
	session, err := worker.StartSession(ctx, config)
	if err != nil {
		return nil, fault.Wrap("executor.start", fault.Unavailable, err).Say("the executor process cannot start")
	}
	var modules []string
	for _, s := range b.Sources {
		if strings.HasPrefix(s.Path, "inmanta_plugins/") && strings.HasSuffix(s.Path, ".py") {
			modules = append(modules, s.Module)
		}
	}
	for _, name := range b.Modules {
		modules = append(modules, name+".*")
	}
	var loaded struct {
		Failed map[string]worker.Failure `json:"failed"`
	}
	load := map[string]any{"modules": modules, "secrets": environ.secrets}
	if err := session.Call(ctx, "load", load, &loaded, nil, nil); err != nil {
		session.Kill()
		if words := session.LastWords(); words != "" {
			err = fmt.Errorf("%w; its last words:\n%s", err, environ.masks.Replace(words))
		}
		return nil, fault.Wrap("executor.start", fault.Unavailable, err).
			Say("the executor process ended while it loaded the handlers").
			Hint("look for code that runs when a module is imported")
	}
	for module, f := range loaded.Failed {
		m.c.Logger.Error("a handler module cannot be imported", "executor", e.hash, "module", module,
			"error", environ.masks.Replace(f.Error()), "trace", environ.masks.Replace(f.Trace))
	}
	w := &process{
		executor:   e,
		session:    session,
		printed:    printed,
		masks:      environ.masks,
		generation: generation,
		started:    time.Now(),
	}
	needed := []string{made.Python, made.SitePackages, codeDir}
	if private != nil {
		needed = append(needed, private.Dir)
	}
	for _, path := range needed {
		info, err := os.Stat(path)
		if err != nil { // somebody has removed it already
			session.Kill()
			return nil, fault.Disk("executor.start", path, err)
		}
		w.files = append(w.files, file{path, info})
	}
	return w, nil
}

// venv makes the virtual environment of a blueprint.
func (m *Manager) venv(ctx context.Context, dir string, b intent.Blueprint) (venv.Result, error) {
	if _, err := os.Lstat(dir); err != nil && m.c.MayGrow != nil {
		if err := m.c.MayGrow(ctx); err != nil {
			return venv.Result{}, err
		}
	}
	python := ""
	if b.PythonVersion != "" {
		i, err := m.c.Maker.Interpreter(ctx, "")
		if err != nil {
			return venv.Result{}, err
		}
		if i.Minor != b.PythonVersion {
			python = "python" + b.PythonVersion
		}
	}
	wheels, err := m.wheels(ctx, b.Wheels)
	if err != nil {
		return venv.Result{}, err
	}
	r, err := m.c.Maker.Ensure(
		ctx,
		venv.Spec{
			Dir: dir, Owner: m.c.Environment.String(), Python: python, Requirements: b.Requirements,
			Constraints: b.Constraints, Pip: b.Pip, Wheels: wheels,
		},
	)
	for _, s := range r.Steps {
		m.c.Logger.Info("ran a command", "command", s.Command, "code", s.ReturnCode,
			"took", s.Completed.Sub(s.Started), "output", s.Output+s.ErrOutput)
	}
	return r, err
}

// wheels returns the files that a virtual environment is made of; nil if it is made from an index.
func (m *Manager) wheels(ctx context.Context, files []intent.WheelFile) ([]venv.Wheel, error) {
	if files == nil {
		return nil, nil
	}
	out := []venv.Wheel{}
	for _, f := range files {
		path, err := m.c.Contents.Wheel(ctx, f.Hash)
		if err != nil {
			return nil, fmt.Errorf("the package %s: %w", f.Name, err)
		}
		out = append(out, venv.Wheel{Name: f.Name, Path: path, Hash: f.Hash})
	}
	return out, nil
}

// code writes the handler sources into dir, all of them or none. If the folder
// exists, code checks that it is intact, because people clean up by hand.
func (m *Manager) code(ctx context.Context, dir string, sources []intent.SourceFile) error {
	for _, s := range sources {
		if !filepath.IsLocal(s.Path) {
			return fault.New(
				"executor.code",
				fault.Invalid,
				fmt.Sprintf("the handler source %q lies outside of the code folder", s.Path),
			)
		}
	}
	if intact(dir, sources) {
		now := time.Now()
		_ = os.Chtimes(dir, now, now)
		return nil
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return fault.Disk("executor.code", parent, err)
	}
	temp, err := os.MkdirTemp(parent, filepath.Base(dir)+".new-*")
	if err != nil {
		return fault.Disk("executor.code", parent, err)
	}
	defer os.RemoveAll(temp)
	fresh := filepath.Join(temp, "code")
	if err := os.Mkdir(fresh, 0o755); err != nil { // the handler may run as another user; see Cell.Share
		return fault.Disk("executor.code", fresh, err)
	}
	for _, s := range sources {
		content, err := m.c.Files.File(ctx, s.Hash)
		if err != nil {
			return fmt.Errorf("the source of handler module %s: %w", s.Module, err)
		}
		if digest(content) != s.Hash {
			text := fmt.Sprintf("the stored source of handler module %s is damaged: it does not have the hash %s",
				s.Module, s.Hash)
			return fault.New("executor.code", fault.Internal, text).
				Hint("compile the environment again")
		}
		path := filepath.Join(fresh, filepath.FromSlash(s.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fault.Disk("executor.code", path, err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fault.Disk("executor.code", path, err)
		}
	}
	if _, err := os.Lstat(dir); err == nil {
		if err := os.Rename(dir, filepath.Join(temp, "old")); err != nil {
			return fault.Disk("executor.code", dir, err)
		}
	}
	if err := os.Rename(fresh, dir); err != nil {
		return fault.Disk("executor.code", dir, err)
	}
	return nil
}

// intact reports whether dir holds all sources, unchanged.
func intact(dir string, sources []intent.SourceFile) bool {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return false
	}
	for _, s := range sources {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.Path)))
		if err != nil || digest(content) != s.Hash {
			return false
		}
	}
	return true
}

func digest(content []byte) string {
	sum := sha1.Sum(content)
	return hex.EncodeToString(sum[:])
}
