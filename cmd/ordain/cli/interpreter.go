package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/module"
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
			minorOf(sites[0]),
			interpreter.Path,
			interpreter.Version,
		)
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
