package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// chooseCache settles where a command keeps what can be made again.
func chooseCache(dir *string) (err error) {
	if *dir == "" {
		*dir, err = layout.DefaultCacheDir()
	} else { // the worker runs in the folder of the project
		*dir, err = filepath.Abs(*dir)
	}
	return err
}

// chooseInterpreter finds what runs a project's plug-ins: the interpreter of
// its .env or, when .env holds packages only (or is not there at all), one of
// the machine with what the modules need, in a virtual environment in the
// cache that is made once.
func chooseInterpreter(ctx context.Context, o *compiler.Options) error {
	if o.Python = interpreterIn(o.Project); o.Python != "" {
		return nil
	}
	project, err := module.OpenProject(o.Project)
	if err != nil {
		return nil // the compile says it, in its way
	}
	bare := o.NoStd && !importsPackages(project, o) // then any interpreter will do
	python, memo := "", venv.Memo{Dir: filepath.Join(o.CacheDir, "interpreters")}
	for _, minor := range minorsFor(project.SitePackages) {
		found, err := memo.FindMinor(ctx, minor)
		if err != nil {
			continue
		}
		if bare || len(venv.Lacking(project.SitePackages, found)) == 0 {
			o.Python = found.Path // all that the modules need lies beside them
			return nil
		}
		python = found.Path
		break
	}
	if bare { // or none: such a model seldom has plug-ins
		if found, err := memo.Find(ctx, ""); err == nil {
			o.Python = found.Path
		}
		return nil
	}
	maker, err := venv.New(venv.Config{
		Python: python, CacheDir: o.CacheDir, ToolsDir: filepath.Join(o.CacheDir, "tools"),
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
			"the packages in .env are for Python %s, which this machine does not have: %s, version %s, ran them",
			minorOf(sites[0]), interpreter.Path, interpreter.Version)
	}
	if len(project.SitePackages) > 0 && len(venv.Lacking(project.SitePackages, interpreter)) == 0 {
		o.Python = interpreter.Path // all that the modules need lies beside them
		return nil
	}
	var requirements []string
	if len(project.SitePackages) > 0 {
		requirements = venv.ModuleRequirements(project.SitePackages)
	} else if requirements, err = project.Requirements(); err != nil {
		return nil // the compile says it, in its way
	}
	// Projects that want other versions, or from elsewhere, get an environment
	// each: one that another compile uses is never made anew under its feet.
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q %+v", requirements, project.Constraints(), project.PipConfig())))
	made, err := maker.Ensure(ctx, venv.Spec{
		Dir:          filepath.Join(o.CacheDir, "compile", interpreter.Minor+"-"+hex.EncodeToString(sum[:8])),
		Requirements: requirements, Constraints: project.Constraints(), Pip: project.PipConfig(),
	})
	if err != nil && len(project.SitePackages) > 0 {
		// Nothing can be installed here. What the modules need may well lie
		// beside them; where it does not, the compile names what is missing.
		o.Python = interpreter.Path
		if o.PythonNote == "" {
			o.PythonNote = "what the modules need beside .env could not be installed: " + err.Error()
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

// importsPackages tells whether a model that does not import std implicitly
// imports a module from the folders of packages all the same, which may need
// what does not lie there.
func importsPackages(project *module.Project, o *compiler.Options) bool {
	if len(project.SitePackages) == 0 {
		return false
	}
	main := o.Main
	if main == "" {
		main = "main.cf"
	}
	program, _ := module.NewLoader(project).Load(main, false) // what is wrong there, the compile says
	return program != nil && slices.ContainsFunc(program.Modules, func(m *module.Module) bool { return m.Dist != "" })
}

// minorsFor lists the versions of Python to look for: those that the folders of
// packages are for, then the newest, which know most of what modules are
// written in. Without packages there is no choice to make.
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

// interpreterIn gives the interpreter of a project's virtual environment, empty when it has none.
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

// minorOf gives the Python version that a folder of packages is for: 3.11 of …/lib/python3.11/site-packages.
func minorOf(site string) string {
	return strings.TrimPrefix(filepath.Base(filepath.Dir(site)), "python")
}

// exportFunctions names the export functions that a project asks for: the
// option export in section config of Inmanta's configuration files, or the
// variable INMANTA_CONFIG_EXPORT.
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

// configuredExport reads the files; a later one overrides the ones before.
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
		if os.IsPermission(err) { // of somebody else's server, such as the one in /etc
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
const compileGCPercent = 400

// collectLess makes the garbage collector of a process that compiles run less
// often. GOGC and GOMEMLIMIT in the environment take precedence.
func collectLess() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(compileGCPercent)
	}
}
