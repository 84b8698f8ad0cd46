package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/server/build/warm"
)

// mainReturns is how long to wait for a missing entry file: some editors remove
// it before they put the new one in its place.
const mainReturns = time.Second

// watcher compiles a project on every save.
type watcher struct {
	*compileFlags
	command *cobra.Command
	out     io.Writer
	files   *fileWatcher
	warm    *warm.Keeper
	last    map[string]string // the resources of the last successful export: hashes by id
}

// watch compiles now and on every save, until it is interrupted. An interrupt is
// not an error.
func (f *compileFlags) watch(c *cobra.Command) error {
	files, err := newFileWatcher(f.options.Project)
	if err != nil {
		return err
	}
	defer files.close()
	keeper, err := warm.New(warm.Config{Logger: slog.New(slog.DiscardHandler), Max: 1, Delay: -1})
	if err != nil {
		return err
	}
	defer keeper.Close()
	w := &watcher{compileFlags: f, command: c, out: c.ErrOrStderr(), files: files, warm: keeper}
	ctx := c.Context()
	for reason := "watching " + f.options.Project; ; {
		w.recompile(ctx, reason)
		select {
		case <-ctx.Done():
			return nil
		case changed := <-files.changes:
			reason = w.describe(changed)
		}
		w.awaitMain(ctx)
	}
}

// recompile compiles and prints the outcome. It also prints an error that keeps
// the compile from starting, such as a half-written project.yml; the next save
// tries again.
func (w *watcher) recompile(ctx context.Context, reason string) {
	began := time.Now()
	fmt.Fprintf(w.out, "\n──── %s  %s ────\n", began.Format("15:04:05"), printable(reason))
	var back func()
	if w.options.Warm, back = w.warm.Lend(w.options.Project); back != nil {
		defer back()
	}
	out, err := w.once(w.command)
	if w.options.Warm != nil {
		_ = w.options.Warm.Handover.Close()
		w.options.Warm = nil
	}
	if out.Document.Success {
		w.warm.Learn(w.options.Project, out.Recipe, os.Environ(), nil)
	}
	if err != nil && !errors.Is(err, errPrinted) {
		fmt.Fprintln(w.out, "ordain: "+err.Error())
	}
	if ctx.Err() != nil {
		return
	}
	w.files.add(w.folders(out)...)
	took := time.Since(began).Round(time.Millisecond)
	if !out.Document.Success {
		fmt.Fprintf(w.out, "failed after %s: %s\n", took, count(len(out.Document.Diagnostics), "error"))
		return
	}
	fmt.Fprintf(w.out, "compiled in %s: %s", took, count(len(out.Result.Instances), "instance"))
	if w.options.Export {
		fmt.Fprintf(w.out, ", %s", count(len(out.Document.Resources), "resource"))
	}
	if n := len(out.Document.Warnings); n > 0 {
		fmt.Fprintf(w.out, ", %s", count(n, "warning"))
	}
	fmt.Fprintln(w.out)
	if w.options.Export {
		w.compare(out)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// folders returns the folders that a compile reads besides the project: those
// where modules may be, and those of the modules that it found.
func (w *watcher) folders(out *compiler.Outcome) []string {
	folders := slices.Clone(out.Folders)
	if project, err := module.OpenProject(w.options.Project); err == nil {
		folders = append(folders, project.ModulePath...)
	}
	return slices.DeleteFunc(folders, func(dir string) bool { return dir == "" })
}

// shownChanges is how many changed resources are named.
const shownChanges = 20

// compare prints which resources changed since the last successful export.
func (w *watcher) compare(out *compiler.Outcome) {
	now := make(map[string]string, len(out.Document.Resources))
	for _, r := range out.Document.Resources {
		now[r.ID.String()] = r.AttributeHash
	}
	before := w.last
	w.last = now
	if before == nil {
		return
	}
	var lines []string
	for id, hash := range now {
		switch old, had := before[id]; {
		case !had:
			lines = append(lines, "+ "+id)
		case old != hash:
			lines = append(lines, "~ "+id)
		}
	}
	for id := range before {
		if _, has := now[id]; !has {
			lines = append(lines, "- "+id)
		}
	}
	if lines == nil {
		fmt.Fprintln(w.out, "no resource changed")
		return
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
	for _, line := range lines[:min(len(lines), shownChanges)] {
		fmt.Fprintln(w.out, "  "+printable(line))
	}
	if rest := len(lines) - shownChanges; rest > 0 {
		fmt.Fprintf(w.out, "  and %d more\n", rest)
	}
}

// describe names the files that were saved.
func (w *watcher) describe(changed []string) string {
	var names []string
	for _, path := range changed {
		if dir, err := filepath.Abs(w.options.Project); err == nil {
			if relative, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(relative) {
				path = relative
			}
		}
		names = append(names, path)
	}
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d other files changed", names[0], len(names)-1)
	}
	return strings.Join(names, ", ") + " changed"
}

// awaitMain waits a moment for an entry file that does not exist.
func (w *watcher) awaitMain(ctx context.Context) {
	main := w.options.Main
	if main == "" {
		main = "main.cf"
	}
	if !filepath.IsAbs(main) {
		main = filepath.Join(w.options.Project, main)
	}
	ctx, cancel := context.WithTimeout(ctx, mainReturns)
	defer cancel()
	for {
		if _, err := os.Stat(main); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-w.files.changes:
		}
	}
}
