package layout

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Environment has the paths of one environment.
type Environment struct {
	root string
}

// Environment returns the paths of env. It makes no folder.
func (l *Layout) Environment(env intent.EnvironmentID) Environment {
	return Environment{root: filepath.Join(l.Server(), env.String())}
}

// Dir is the environment's own folder.
func (e Environment) Dir() string { return e.root }

// Compiler is the folder of the project's checkout.
func (e Environment) Compiler() string { return filepath.Join(e.root, "compiler") }

// CompilerVenv is the compiler's virtual environment for a Python version
// such as 3.12.
func (e Environment) CompilerVenv(version string) string {
	return filepath.Join(e.Compiler(), ".env-py"+version)
}

// CompilerVenvLink is the link .env, which SwitchVenv points at one of them.
func (e Environment) CompilerVenvLink() string { return filepath.Join(e.Compiler(), ".env") }

// Preview has paths like those of the environment, for compiles of commits that
// somebody only wants to look at. Its folder can be removed while none runs.
func (e Environment) Preview() Environment {
	return Environment{root: filepath.Join(e.root, "preview")}
}

// Executors is the folder for all that executors need.
func (e Environment) Executors() string { return filepath.Join(e.root, "executors") }

// Venvs is the folder of the executors' virtual environments.
func (e Environment) Venvs() string { return filepath.Join(e.Executors(), "venvs") }

// Venv is the virtual environment for a blueprint's VenvHash.
func (e Environment) Venv(hash string) string { return filepath.Join(e.Venvs(), hash) }

// Codes is the folder of the executors' handler sources.
func (e Environment) Codes() string { return filepath.Join(e.Executors(), "code") }

// Code holds the handler sources for a blueprint's Hash.
func (e Environment) Code(hash string) string { return filepath.Join(e.Codes(), hash) }

// WheelFolders is the folder of the folders of packages that were fetched for remote agents.
func (e Environment) WheelFolders() string { return filepath.Join(e.Executors(), "wheels") }

// Wheels holds the packages for a blueprint's VenvHash on an agent's machine.
func (e Environment) Wheels(hash string) string { return filepath.Join(e.WheelFolders(), hash) }

// Runs is the folder of the private folders of processes that run the environment's code.
func (e Environment) Runs() string { return filepath.Join(e.root, "runs") }

// Cache is the folder for what compiles and executors of the environment remember. They can write to it.
func (e Environment) Cache() string { return filepath.Join(e.root, "cache") }

// SchedulerConfig is the configuration of the environment's scheduler.
func (e Environment) SchedulerConfig() string { return filepath.Join(e.root, "scheduler.cfg") }

// Prepare makes the missing folders of an environment.
func (e Environment) Prepare() error {
	for _, dir := range []string{e.Compiler(), e.Venvs(), e.Codes()} {
		if err := os.MkdirAll(dir, ownMode); err != nil {
			return fault.Disk("layout.Prepare", dir, err)
		}
	}
	return nil
}

// SwitchVenv points .env at the virtual environment for a Python version. Readers
// always see either the old or the new one.
func (e Environment) SwitchVenv(version string) error {
	link := e.CompilerVenvLink()
	target := filepath.Base(e.CompilerVenv(version))
	if current, err := os.Readlink(link); err == nil && current == target {
		return nil
	}
	if err := os.MkdirAll(e.Compiler(), ownMode); err != nil {
		return fault.Disk("layout.SwitchVenv", e.Compiler(), err)
	}
	if info, err := os.Lstat(link); err == nil && info.IsDir() {
		// An older layout or a person made it a folder, which can be made again.
		if err := os.RemoveAll(link); err != nil {
			return fault.Disk("layout.SwitchVenv", link, err)
		}
	}
	temp := link + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Disk("layout.SwitchVenv", temp, err)
	}
	if err := os.Symlink(target, temp); err != nil {
		return fault.Disk("layout.SwitchVenv", temp, err)
	}
	if err := os.Rename(temp, link); err != nil {
		return fault.Disk("layout.SwitchVenv", link, err)
	}
	return nil
}

// RemoveEnvironment deletes the folder of an environment that is cleared or
// deleted. It renames the folder first, so that a half-deleted folder is never
// taken for an environment. Logs stay.
func (l *Layout) RemoveEnvironment(env intent.EnvironmentID) error {
	dir := l.Environment(env).Dir()
	doomed, err := os.MkdirTemp(l.Server(), ".removed-*")
	if err != nil {
		return fault.Disk("layout.RemoveEnvironment", l.Server(), err)
	}
	err = os.Rename(dir, filepath.Join(doomed, env.String()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(doomed)
		return fault.Disk("layout.RemoveEnvironment", dir, err)
	}
	if err := os.RemoveAll(doomed); err != nil {
		return fault.Disk("layout.RemoveEnvironment", doomed, err)
	}
	return nil
}

// Sweep deletes half-deleted environments and scratch files that a crash left
// below server/. The caller holds the Lock.
func (l *Layout) Sweep() error {
	left, err := filepath.Glob(filepath.Join(l.Server(), ".removed-*"))
	if err != nil {
		return err
	}
	private, err := filepath.Glob(filepath.Join(l.Server(), "*", "runs"))
	if err != nil {
		return err
	}
	left = append(left, private...)
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fault.Disk("layout.Sweep", dir, err)
		}
	}
	return nil
}
