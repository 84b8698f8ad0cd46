package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/control"
)

// workspace fits layout to what control asks for.
type workspace struct {
	layout *layout.Layout
	forget func(intent.EnvironmentID) // ends what runs in the compiler's folders
}

var _ control.Workspace = workspace{}

// Prepare makes an environment's folders, its logs and scheduler.cfg, which
// says with what the scheduler works: for people, and for tools that look
// there; the place of record is the database.
func (w workspace) Prepare(e intent.Environment) error {
	env := w.layout.Environment(e.ID)
	if err := env.Prepare(); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"; Written by the server for the scheduler of %s. Changes here are lost: use the environment's settings.\n",
		oneLine(e.Name),
	)
	fmt.Fprintf(
		&b,
		"[config]\nstate-dir=%s\nlog-dir=%s\nenvironment=%s\n",
		w.layout.StateDir(),
		w.layout.LogDir(),
		e.ID,
	)
	fmt.Fprintf(&b, "[scheduler]\ndeploy-interval=%s\nrepair-interval=%s\n",
		e.Text("autostart_agent_deploy_interval"), e.Text("autostart_agent_repair_interval"))
	if err := replaceFile(env.SchedulerConfig(), b.String()); err != nil {
		return fault.Disk("server.Prepare", env.SchedulerConfig(), err)
	}
	for _, log := range []string{w.layout.AgentLog(e.ID), w.layout.AgentOut(e.ID), w.layout.AgentErr(e.ID), w.layout.ResourceActionsLog(e.ID)} {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return fault.Disk("server.Prepare", log, err)
		}
		_ = f.Close()
	}
	return nil
}

func (w workspace) CompilerDir(env intent.EnvironmentID) string {
	return w.layout.Environment(env).Compiler()
}

func (w workspace) PreviewDir(env intent.EnvironmentID) string {
	return w.layout.Environment(env).Preview().Compiler()
}

func (w workspace) RemovePreview(env intent.EnvironmentID, since time.Time) error {
	preview := w.layout.Environment(env).Preview()
	used, err := os.Stat(filepath.Join(preview.Compiler(), ".git")) // each checkout writes in there
	if errors.Is(err, fs.ErrNotExist) {
		used, err = os.Stat(preview.Dir())
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && !used.ModTime().Before(since) {
		return nil
	}
	if err == nil {
		w.forget(env)
		err = os.RemoveAll(preview.Dir())
	}
	if err != nil {
		return fault.Disk("server.RemovePreview", preview.Dir(), err)
	}
	return nil
}

func (w workspace) ResetCompiler(env intent.EnvironmentID) error {
	w.forget(env)
	dir := w.CompilerDir(env)
	if err := os.RemoveAll(dir); err != nil {
		return fault.Disk("server.ResetCompiler", dir, err)
	}
	return w.layout.Environment(env).Prepare()
}

// Shown implements control.Workspace. A virtual environment in the making is
// shown by the name that it gets.
func (w workspace) Shown(env intent.EnvironmentID, command string) string {
	dir := w.layout.Environment(env).Dir()
	short := strings.NewReplacer(
		dir+"/", "", dir, ".",
		w.layout.Mirrors()+"/", ".mirrors/",
		w.layout.CacheDir()+"/tools/uv/bin/uv", "uv",
		w.layout.CacheDir()+"/", "~cache/",
	).Replace(command)
	return inTheMaking.ReplaceAllString(short, "$1")
}

var inTheMaking = regexp.MustCompile(`(\.env-py[0-9.]+[0-9])\.new-[0-9]+/venv`)

func (w workspace) Remove(env intent.EnvironmentID) error {
	w.forget(env)
	return w.layout.RemoveEnvironment(env)
}

// replaceFile writes a file so that a reader sees the old or the new one, and
// only when it differs.
func replaceFile(path, content string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return nil
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, []byte(content), 0o640); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
