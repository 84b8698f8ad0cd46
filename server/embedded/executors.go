package embedded

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/server/callback"
	"ordain.dev/ordain/server/logfile"
	"ordain.dev/ordain/server/store"
)

// venvsKept is how long a virtual environment is kept that no run used.
const venvsKept = 14 * 24 * time.Hour

// openExecutors makes what runs handlers. Nothing is confined: handlers act for the person, on the person's machine.
func (w *World) openExecutors(ctx context.Context) (err error) {
	if w.maker, err = venv.New(venv.Config{
		Python: w.cfg.Python, CacheDir: w.layout.CacheDir(), ToolsDir: filepath.Join(w.layout.CacheDir(), "tools"),
		Records: w.layout.VenvRecords(), SSHAgent: true, Logger: w.log,
	}); err != nil {
		return err
	}
	if w.python, err = w.maker.Interpreter(ctx, ""); err != nil {
		return err
	}
	if err := w.layout.Environment(w.env.ID).Prepare(); err != nil {
		return inWords(err)
	}
	if w.actions, err = logfile.Open(w.layout.ResourceActionsLog(w.env.ID), logPolicy); err != nil {
		return inWords(fault.Disk("embedded.Open", w.layout.LogDir(), err))
	}
	w.undo = append(w.undo, func() { _ = w.actions.Close() })
	desk, err := callback.New(w.env.ID, sync.OnceValue(func() http.Handler { return w.rest(ctx) }))
	if err != nil {
		return err
	}
	if w.executors, err = executor.NewManager(executor.Config{
		Layout: w.layout, Environment: w.env.ID, Maker: w.maker, Files: files{w.store, w.env.ProjectID}, Desk: desk,
		Logger: w.log, Variables: w.variables, HandlerTimeout: w.cfg.Timeout, VenvRetention: venvsKept,
	}); err != nil {
		return err
	}
	w.undo = append(w.undo, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := w.executors.Close(ctx); err != nil {
			w.log.Error("executors did not stop", "error", err)
		}
	})
	return nil
}

// files are the files that handlers may read and store.
type files struct {
	store   *store.Store
	project intent.ProjectID
}

func (f files) File(ctx context.Context, sha1 string) ([]byte, error) { return f.store.File(ctx, sha1) }

func (f files) PutFile(ctx context.Context, content []byte) (string, error) {
	return f.store.PutFile(ctx, content, f.project)
}

// variables are the environment variables of handlers: the person's own, but for those that decide how Python or this
// program work. The values of those that look like credentials are masked in logs.
func (w *World) variables(context.Context) (out []executor.Variable, err error) {
	for _, pair := range w.cfg.Environ {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || ofPrograms(name) {
			continue
		}
		out = append(out, executor.Variable{Name: name, Value: value, Secret: looksSecret(name)})
	}
	return out, nil
}

// ofPrograms reports whether a variable decides how a process works, and has no business in a handler.
func ofPrograms(name string) bool {
	if slices.Contains([]string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "PWD", "OLDPWD", "SHLVL", "_"},
		name) {
		return true // executors set the first of these themselves
	}
	return slices.ContainsFunc([]string{"PYTHON", "LD_", "DYLD_", "ORDAIN_", "INMANTA_", "GO", "GIT_", "BASH_FUNC_"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func looksSecret(name string) bool {
	return slices.ContainsFunc([]string{"TOKEN", "SECRET", "PASSW", "CREDENTIAL", "API_KEY", "ACCESS_KEY", "PRIVATE"},
		func(sign string) bool { return strings.Contains(strings.ToUpper(name), sign) })
}
