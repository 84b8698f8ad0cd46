package venv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/pep440"
)

// installing is an environment into which packages are being installed.
//
//	versions known? ──no──▶ uv pip compile  (owner's cache, confined: may run code for metadata)
//	      │                        │
//	      ▼                        ▼
//	uv pip install --no-build name==version …   (the cache of all: runs no code of packages)
//	      │ one of them has no wheel
//	      ▼
//	uv pip install  (owner's cache, confined: runs code of packages) ──▶ copy
type installing struct {
	*Maker
	spec   Spec
	python Interpreter
	venv   string
	conf   machine
	from   sources
	shop   *workshop
	args   []string // requirements and constraints, for uv and pip alike
	pins   []string // name==version of all packages, if wheels of them are all that is needed
	result Result
}

// trusted runs a command that runs no code of packages, but asks indexes that the project names.
func (j *installing) trusted(ctx context.Context, env []string, name string, args ...string) error {
	home := filepath.Join(j.c.CacheDir, "home") // always empty: no code of packages can write there
	if err := os.MkdirAll(home, 0o755); err != nil {
		return fault.Disk("venv.Ensure", home, err)
	}
	return j.run(ctx, nil, j.impersonal(env, home), name, args...)
}

// personal are the variables that lead to files and credentials of the server's account.
var personal = []string{"HOME", "NETRC", "SSH_AUTH_SOCK", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}

// impersonal returns the environment with another home folder, and without what leads to files and credentials of the
// server's account: a project could name an index that takes the server's password. What is installed for a person
// keeps the environment of that person.
func (j *installing) impersonal(env []string, home string) []string {
	if j.spec.Owner == "" || j.spec.InPlace {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(personal, name)
	})
	return append(env, "HOME="+home)
}

// confined runs a command that may run code of packages.
func (j *installing) confined(ctx context.Context, env []string, name string, args ...string) error {
	env = j.impersonal(env, j.shop.home())
	if j.c.Confine == nil || j.spec.InPlace {
		return j.run(ctx, nil, env, name, args...)
	}
	box := Sandbox{
		Owner: j.spec.Owner, Python: j.python.Path,
		Read:  slices.Concat([]string{j.c.ToolsDir, name}, j.from.findLinks, j.from.constraint),
		Write: []string{filepath.Join(j.shop.caches, "uv"), filepath.Join(j.shop.caches, "pip"), j.shop.work},
	}
	for _, option := range []string{"cert", "client-cert"} {
		if file := j.conf.one(option); file != "" {
			box.Read = append(box.Read, file)
		}
	}
	env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "TMPDIR=") })
	env = append(env, "TMPDIR="+j.shop.tmp())
	return j.run(ctx, &box, env, name, args...)
}

// run runs a command of the installation and records it in the result. Its folder is not
// below the project, where uv would look for settings.
func (j *installing) run(ctx context.Context, box *Sandbox, env []string, name string, args ...string) error {
	step, err := j.Maker.run(ctx, j.spec.Owner, box, j.c.CacheDir, env, name, args...)
	j.result.Steps = append(j.result.Steps, step)
	return err
}

// uvEnv returns the environment of uv with a cache.
func (j *installing) uvEnv(cache string) []string {
	return j.conf.uvEnv(j.environ(), j.from, cache, j.spec.Pip.UseSystemConfig)
}

// withUV reports whether uv made the environment. If so, or if it returns an
// error, pip need not be tried.
func (j *installing) withUV(ctx context.Context, uv string) (bool, error) {
	all, own := j.uvEnv(filepath.Join(j.c.CacheDir, "packages")), j.uvEnv(filepath.Join(j.shop.caches, "uv"))
	create := []string{"venv", "--quiet", "--no-project", "--relocatable", "--python", j.python.Path}
	s := j.spec
	if s.InPlace {
		j.pins = nil
		done := len(s.Requirements) == 0 || j.confined(ctx, own, uv, j.pipInstall(j.venv, j.args...)...) == nil
		return done, ctx.Err()
	}
	if j.trusted(ctx, all, uv, append(create, j.venv)...) != nil {
		return false, ctx.Err()
	}
	if len(s.Requirements) == 0 {
		return true, ctx.Err()
	}
	switch done, failed := j.fromWheels(ctx, uv, all, own); {
	case done || ctx.Err() != nil:
		return done, ctx.Err()
	case failed:
		return false, nil
	}
	j.pins = nil
	if err := os.RemoveAll(j.venv); err != nil {
		return false, fault.Disk("venv.Ensure", j.venv, err)
	}
	if j.confined(ctx, own, uv, append(create, j.shop.venv())...) != nil ||
		j.confined(ctx, own, uv, j.pipInstall(j.shop.venv(), j.args...)...) != nil {
		return false, ctx.Err()
	}
	return true, j.adopt()
}

// adopt copies the environment that was built in the workshop.
func (j *installing) adopt() error {
	if err := copyTree(j.shop.venv(), j.venv); err != nil {
		return fault.Disk("venv.Ensure", j.venv, err)
	}
	return relocate(j.venv, j.shop.venv(), j.venv)
}

// pipInstall returns the arguments with which uv installs into an environment.
func (j *installing) pipInstall(venv string, args ...string) []string {
	install := []string{"pip", "install", "--python", pythonOf(venv)}
	if j.spec.Update {
		install = append(install, "--upgrade", "--refresh")
	}
	return append(install, args...)
}

// fromWheels installs packages that all have wheels. It runs no code of packages in this,
// so that one cache serves all owners. Nothing of an index with a password may get into it: uv finds it there for those
// without the password, too. It reports whether it has done so, and whether
// building packages would fail as well, because no versions fit together.
func (j *installing) fromWheels(ctx context.Context, uv string, all, own []string) (done, failed bool) {
	hashes := slices.ContainsFunc(j.spec.Requirements, func(r string) bool { return strings.Contains(r, "--hash") })
	if len(j.from.noBinary) > 0 || hashes || j.from.private() {
		return false, false
	}
	memo := j.resolutionFile(j.spec, j.python, j.from)
	if len(j.pins) == 0 && !j.spec.Update && freshResolution(memo) {
		j.pins = readPins(memo)
	}
	if len(j.pins) > 0 {
		if j.installPins(ctx, uv, all, "--offline") {
			return true, false
		}
		j.pins = nil
	}
	resolved := filepath.Join(j.shop.work, "resolved.txt")
	resolve := []string{"pip", "compile", "--quiet", "--no-header", "--no-annotate",
		"--python", j.python.Path, "--output-file", resolved}
	if j.spec.Update {
		resolve = append(resolve, "--upgrade", "--refresh")
	}
	if j.confined(ctx, own, uv, append(resolve, j.compileArgs()...)...) != nil {
		return false, true
	}
	if j.pins = readPins(resolved); len(j.pins) == 0 {
		return false, false
	}
	var refresh []string
	if j.spec.Update {
		refresh = []string{"--refresh"}
	}
	if !j.installPins(ctx, uv, all, refresh...) {
		// This is no failure that a reader of the report should look for.
		if last := &j.result.Steps[len(j.result.Steps)-1]; strings.Contains(last.ErrOutput, "--no-build") {
			last.ErrOutput = "A package has no wheel, so it has to be built.\n"
		}
		return false, false
	}
	recordResolution(memo, j.pins)
	return true, false
}

// compileArgs are the requirements for uv pip compile, which takes files without -r.
func (j *installing) compileArgs() []string {
	return append([]string{j.shop.requirements}, j.args[2:]...)
}

// installPins installs wheels. A wheel that differs from its own list of files was damaged
// in the cache: it is fetched again, once.
func (j *installing) installPins(ctx context.Context, uv string, all []string, options ...string) bool {
	pins := filepath.Join(filepath.Dir(j.venv), "pins.txt")
	if os.WriteFile(pins, []byte(strings.Join(j.pins, "\n")+"\n"), 0o600) != nil {
		return false
	}
	install := slices.Concat([]string{"pip", "install", "--python", pythonOf(j.venv)}, options,
		[]string{"--no-deps", "--no-build", "-r", pins})
	if j.trusted(ctx, all, uv, install...) != nil {
		return false
	}
	damaged := damagedPackages(sitePackages(j.venv, j.python))
	if len(damaged) == 0 {
		return true
	}
	j.c.Logger.Warn("packages in the cache were damaged; fetching them again", "packages", damaged)
	again := slices.DeleteFunc(install, func(arg string) bool { return arg == "--offline" })
	if j.trusted(ctx, all, uv, append([]string{"cache", "clean"}, damaged...)...) != nil ||
		j.trusted(ctx, all, uv, append(again, "--reinstall")...) != nil {
		return false
	}
	if damaged := damagedPackages(sitePackages(j.venv, j.python)); len(damaged) > 0 {
		j.c.Logger.Warn("packages were published with a wrong list of their files", "packages", damaged)
	}
	return true
}

// readPins reads a list of name==version. It returns nil if another line is in it, such
// as an address.
func readPins(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var pins []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := pep440.ParseRequirement(line)
		if err != nil || r.URL != "" || len(r.Versions) != 1 || r.Versions[0].Operator != "==" {
			return nil
		}
		pins = append(pins, r.String())
	}
	return pins
}

func (j *installing) withPip(ctx context.Context) error {
	env := append(j.conf.pipEnv(j.environ(), j.from), "PIP_CACHE_DIR="+filepath.Join(j.shop.caches, "pip"))
	if j.spec.InPlace {
		return j.pipInto(ctx, env, j.venv)
	}
	if err := os.RemoveAll(j.venv); err != nil {
		return fault.Disk("venv.Ensure", j.venv, err)
	}
	if err := os.RemoveAll(j.shop.venv()); err != nil {
		return fault.Disk("venv.Ensure", j.shop.venv(), err)
	}
	if !j.python.HasVenv {
		message := fmt.Sprintf("%s (Python %s) has no venv module with pip", j.python.Path, j.python.Version)
		return fault.New("venv.Ensure", fault.Unavailable, message).
			Hint("install it (Debian, Ubuntu: apt install python3-venv), or install uv")
	}
	if err := j.pip(ctx, env, j.python.Path, "-I", "-m", "venv", j.shop.venv()); err != nil {
		return err
	}
	if err := j.pipInto(ctx, env, j.shop.venv()); err != nil {
		return err
	}
	return j.adopt()
}

func (j *installing) pipInto(ctx context.Context, env []string, venv string) error {
	if len(j.spec.Requirements) == 0 {
		return nil
	}
	install := []string{"-I", "-m", "pip", "install", "--no-compile"}
	if j.spec.Update {
		install = append(install, "--upgrade")
	}
	return j.pip(ctx, env, pythonOf(venv), append(install, j.args...)...)
}

// pip runs a command of the last installer: when it fails, the installation has failed.
func (j *installing) pip(ctx context.Context, env []string, name string, args ...string) error {
	err := j.confined(ctx, env, name, args...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return j.explain(j.spec, j.result)
	}
	return nil
}

// environ returns the environment of this program, without what installers must not have.
func (m *Maker) environ() []string {
	env := os.Environ()
	if !m.c.SSHAgent {
		env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "SSH_AUTH_SOCK=") })
	}
	return env
}
