package embedded

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/logfile"
)

// StateIn returns the folder below a project in which its state is kept, unless the person names another one.
func StateIn(project string) string { return filepath.Join(project, "data", "deploy") }

// Exists reports whether a state folder holds a record: whether there was a run before.
func Exists(state string) bool {
	_, err := os.Stat(filepath.Join(state, "postgres", "data", "PG_VERSION"))
	return err == nil
}

// logPolicy keeps a few megabytes of each log.
func logPolicy() logfile.Policy {
	return logfile.Policy{Size: 4 << 20, Keep: 3, Retention: 30 * 24 * time.Hour}
}

// claim makes the folders and the logs, and keeps a second run out.
func (w *World) claim() (err error) {
	const op = "embedded.Open"
	if err := ownFolder(w.cfg.StateDir); err != nil {
		return err
	}
	if w.layout, err = layout.New(layout.Config{StateDir: w.cfg.StateDir, CacheDir: w.cfg.CacheDir}); err != nil {
		return inWords(err)
	}
	lock, err := w.layout.Lock()
	if fault.Is(err, fault.Conflict) {
		return fault.New(op, fault.Conflict, "another `ordain deploy` is running in this folder").
			Hint("wait until it has ended; " + filepath.Join(w.cfg.StateDir, "ordain.lock") + " has its process id")
	}
	if err != nil {
		return inWords(err)
	}
	w.undo = append(w.undo, func() { _ = lock.Unlock() })
	file, err := logfile.Open(filepath.Join(w.layout.LogDir(), "deploy.log"), logPolicy)
	if err != nil {
		return inWords(fault.Disk(op, w.layout.LogDir(), err))
	}
	w.undo = append(w.undo, func() { _ = file.Close() })
	w.log = slog.New(slog.NewTextHandler(file, nil))
	return inWords(w.layout.Sweep())
}

// ownFolder makes the state folder. The folder itself tells Git to ignore it, so that nobody has to change the
// project's .gitignore, and a person who wants it otherwise can.
func ownFolder(dir string) error {
	const op = "embedded.Open"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return inWords(fault.Disk(op, dir, err))
	}
	ignore, err := os.OpenFile(filepath.Join(dir, ".gitignore"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return inWords(fault.Disk(op, dir, err))
	}
	_, err = ignore.WriteString("# Made by `ordain deploy`: what is here is about this machine only.\n*\n")
	return inWords(fault.Disk(op, dir, errors.Join(err, ignore.Close())))
}

// inWords gives trouble with the state folder an advice that fits this command, which has no configuration file.
func inWords(err error) error {
	var known *fault.Error
	if !errors.As(err, &known) {
		return err
	}
	said := *known
	switch {
	case said.Kind == fault.Exhausted:
		said.Advice = "free some space, then run `ordain deploy` again, or name a folder elsewhere with --state-dir"
	default:
		said.Advice = "change that, or name another folder with --state-dir"
	}
	return &said
}
