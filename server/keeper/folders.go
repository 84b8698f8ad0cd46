package keeper

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
)

// Folders are the environments' folders on disk.
type Folders struct {
	layout  *layout.Layout
	builder Builder // may run processes in the compilers' folders
}

// Prepare makes an environment's folders, its logs and scheduler.cfg. That file shows
// the scheduler's settings to people and tools; the server itself reads the database.
func (f Folders) Prepare(e intent.Environment) error {
	env := f.layout.Environment(e.ID)
	if err := env.Prepare(); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "; Written by the server for the scheduler of %s. "+
		"Changes here are lost: use the environment's settings.\n", oneLine(e.Name))
	fmt.Fprintf(&b, "[config]\nstate-dir=%s\nlog-dir=%s\nenvironment=%s\n",
		f.layout.StateDir(), f.layout.LogDir(), e.ID)
	fmt.Fprintf(&b, "[scheduler]\ndeploy-interval=%s\nrepair-interval=%s\n",
		e.Text("autostart_agent_deploy_interval"), e.Text("autostart_agent_repair_interval"))
	if err := replaceFile(env.SchedulerConfig(), b.String()); err != nil {
		return fault.Disk("server.Prepare", env.SchedulerConfig(), err)
	}
	for _, log := range []string{
		f.layout.AgentLog(e.ID), f.layout.AgentOut(e.ID), f.layout.AgentErr(e.ID), f.layout.ResourceActionsLog(e.ID),
	} {
		file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return fault.Disk("server.Prepare", log, err)
		}
		_ = file.Close()
	}
	return nil
}

// compilerDir is the folder of the checkout.
func (f Folders) compilerDir(env intent.EnvironmentID) string {
	return f.layout.Environment(env).Compiler()
}

// previewDir is the folder of the checkout of previews.
func (f Folders) previewDir(env intent.EnvironmentID) string {
	return f.layout.Environment(env).Preview().Compiler()
}

// removePreview removes the folder of previews if no preview has used it since the
// given time. No preview may be running.
func (f Folders) removePreview(env intent.EnvironmentID, since time.Time) error {
	preview := f.layout.Environment(env).Preview()
	used, err := os.Stat(filepath.Join(preview.Compiler(), ".git")) // each checkout writes in there
	if errors.Is(err, fs.ErrNotExist) {
		used, err = os.Stat(preview.Dir())
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && !used.ModTime().Before(since) {
		return nil
	}
	if err == nil {
		f.builder.Forget(env)
		err = os.RemoveAll(preview.Dir())
	}
	if err != nil {
		return fault.Disk("server.RemovePreview", preview.Dir(), err)
	}
	return nil
}

// resetCompiler removes the checkout and the virtual environment of the compiler.
func (f Folders) resetCompiler(env intent.EnvironmentID) error {
	f.builder.Forget(env)
	dir := f.compilerDir(env)
	if err := os.RemoveAll(dir); err != nil {
		return fault.Disk("server.ResetCompiler", dir, err)
	}
	return f.layout.Environment(env).Prepare()
}

// shown shortens the paths in a command for reports: paths below the environment's
// folder become relative to it, and a virtual environment that is being made gets its
// final name.
func (f Folders) shown(env intent.EnvironmentID, command string) string {
	dir := f.layout.Environment(env).Dir()
	short := strings.NewReplacer(
		dir+"/", "", dir, ".",
		f.layout.Mirrors()+"/", ".mirrors/",
		f.layout.CacheDir()+"/tools/uv/bin/uv", "uv",
		f.layout.CacheDir()+"/", "~cache/",
	).Replace(command)
	return inTheMaking.ReplaceAllString(short, "$1")
}

var inTheMaking = regexp.MustCompile(`(\.env-py[0-9.]+[0-9])\.new-[0-9]+/venv`)

// Remove deletes all files of an environment except its logs.
func (f Folders) Remove(env intent.EnvironmentID) error {
	f.builder.Forget(env)
	return f.layout.RemoveEnvironment(env)
}

// replaceFile replaces a file atomically, if its content differs.
func replaceFile(path, content string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return nil
	}
	// The name is its own: a keeper that starts and a person who resumes may prepare the folders at the same time.
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	_, err = temp.WriteString(content)
	err = errors.Join(err, temp.Chmod(0o640), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
