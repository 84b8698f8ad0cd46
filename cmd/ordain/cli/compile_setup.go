package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/inifile"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/layout"
)

// chooseCache sets the cache directory of a command, by default the user's.
func chooseCache(dir *string) (err error) {
	if *dir == "" {
		*dir, err = layout.DefaultCacheDir()
	} else { // the worker runs in the folder of the project, so the path must be absolute
		*dir, err = filepath.Abs(*dir)
	}
	return err
}

// chooseInterpreter finds the interpreter for a project's plug-ins: that of its
// .env if it has one, else an interpreter of the machine that finds what the
// modules need beside them. If something is missing there, it makes a virtual
// environment in the cache, once for all projects with the same requirements.
func chooseInterpreter(ctx context.Context, o *compiler.Options) error {
	if o.Python = interpreterIn(o.Project); o.Python != "" {
		return nil
	}
	project, err := module.OpenProject(o.Project)
	if err != nil {
		return nil // the compile reports it
	}
	bare := o.NoStd && !importsPackages(project, o) // any interpreter will do
	python, memo := "", venv.Memo{Dir: filepath.Join(o.CacheDir, "interpreters")}
	for _, minor := range minorsFor(project.SitePackages) {
		found, err := memo.FindMinor(ctx, minor)
		if err != nil {
			continue
		}
		if bare || len(venv.Lacking(project.SitePackages, found)) == 0 {
			o.Python = found.Path // everything that the modules need is beside them
			return nil
		}
		python = found.Path
		break
	}
	if bare { // or none at all: such a model rarely has plug-ins
		if found, err := memo.Find(ctx, ""); err == nil {
			o.Python = found.Path
		}
		return nil
	}
	maker, err := venv.New(venv.Config{
		Python: python, CacheDir: o.CacheDir, ToolsDir: filepath.Join(o.CacheDir, "tools"), SSHAgent: true,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return err
	}
	interpreter, err := maker.Interpreter(ctx, "")
	if err != nil {
		return err
	}
	if sites := project.SitePackages; len(sites) > 0 &&
		!slices.ContainsFunc(sites, func(s string) bool { return minorOf(s) == interpreter.Minor }) {
		o.PythonNote = fmt.Sprintf(
			"the packages in .env are for Python %s, which this machine does not have; they ran with %s, version %s",
			minorOf(sites[0]), interpreter.Path, interpreter.Version)
	}
	if len(project.SitePackages) > 0 && len(venv.Lacking(project.SitePackages, interpreter)) == 0 {
		o.Python = interpreter.Path // everything that the modules need is beside them
		return nil
	}
	var requirements []string
	if len(project.SitePackages) > 0 {
		requirements = venv.ModuleRequirements(project.SitePackages)
	} else if requirements, err = project.Requirements(); err != nil {
		if forbidden := (*module.Error)(nil); errors.As(err, &forbidden) && forbidden.Kind == module.KindNoRequirement {
			return err
		}
		return nil // the compile reports it
	}
	// Projects with other requirements get another environment, so that none is
	// changed while another compile uses it.
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q %+v", requirements, project.Constraints(), project.PipConfig())))
	made, err := maker.Ensure(ctx, venv.Spec{
		Dir:          filepath.Join(o.CacheDir, "compile", interpreter.Minor+"-"+hex.EncodeToString(sum[:8])),
		Requirements: requirements, Constraints: project.Constraints(), Pip: project.PipConfig(), Local: true,
	})
	if err != nil && len(project.SitePackages) > 0 {
		// Nothing can be installed. What the modules need may still be there; if
		// not, the compile names what is missing.
		o.Python = interpreter.Path
		if o.PythonNote == "" {
			o.PythonNote = "what the modules need and .env lacks could not be installed: " + err.Error()
		}
		return nil
	}
	if err != nil {
		return err
	}
	o.Python = made.Python
	if len(project.SitePackages) == 0 {
		o.SitePackages = []string{made.SitePackages}
	}
	return nil
}

// importsPackages reports whether a model that does not import std implicitly
// nevertheless imports a module that is installed as a package. Such a module may
// need other packages.
func importsPackages(project *module.Project, o *compiler.Options) bool {
	if len(project.SitePackages) == 0 {
		return false
	}
	main := o.Main
	if main == "" {
		main = "main.cf"
	}
	program, _ := module.NewLoader(project).Load(main, false) // the compile reports errors
	return program != nil && slices.ContainsFunc(program.Modules, func(m *module.Module) bool { return m.Dist != "" })
}

// minorsFor lists the Python versions to look for: those that the folders of
// packages are for, then the newest ones. It returns nil if there are no packages,
// because then any version will do.
func minorsFor(sites []string) []string {
	if len(sites) == 0 {
		return nil
	}
	var minors []string
	for _, site := range sites {
		minors = append(minors, minorOf(site))
	}
	return append(minors, "3.14", "3.13", "3.12")
}

// interpreterIn returns the interpreter of a project's virtual environment, or an empty string.
func interpreterIn(project string) string {
	python := filepath.Join(project, ".env", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		return ""
	}
	absolute, err := filepath.Abs(python)
	if err != nil {
		return ""
	}
	return absolute
}

// minorOf returns the Python version of a folder of packages, such as 3.11 for …/lib/python3.11/site-packages.
func minorOf(site string) string {
	return strings.TrimPrefix(filepath.Base(filepath.Dir(site)), "python")
}

// exportFunctions returns the names of the export functions that a project asks
// for, from the variable INMANTA_CONFIG_EXPORT or, if that is not set, from the
// option export in section config of Inmanta's configuration files.
func exportFunctions(project string) ([]string, error) {
	text, set := os.LookupEnv("INMANTA_CONFIG_EXPORT")
	if !set {
		var err error
		if text, err = configuredExport(project); err != nil {
			return nil, err
		}
	}
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// configuredExport reads the option from the configuration files; the last file that has it counts.
func configuredExport(project string) (string, error) {
	files := []string{"/etc/inmanta/inmanta.cfg"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".inmanta.cfg"))
	}
	files = append(files, filepath.Join(project, ".inmanta"), filepath.Join(project, ".inmanta.cfg"))
	text := ""
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		content, err := os.ReadFile(name)
		if os.IsPermission(err) { // it may belong to another user's server, such as the one in /etc
			continue
		}
		var parsed inifile.File
		if err == nil {
			parsed, err = inifile.Parse(string(content))
		}
		if err != nil {
			return "", fault.Wrap("cli.compile", fault.Invalid, err).
				Say("the configuration file " + name + " cannot be read")
		}
		if value, ok := parsed.Get("config", "export"); ok {
			text = value.Text
		}
	}
	return text, nil
}

// compileGCPercent is how much the heap of a compile grows between two
// collections, in percent of what is live. Almost everything that a compile
// allocates stays until its end, so frequent collections find little to free.
const compileGCPercent = 500

// collectLess makes the garbage collector of a process that compiles run less
// often. GOGC and GOMEMLIMIT in the environment take precedence.
func collectLess() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(compileGCPercent)
	}
}
