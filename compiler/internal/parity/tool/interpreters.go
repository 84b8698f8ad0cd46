package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// referencePackages are the versions whose outcomes are recorded, on Python 3.13.
var referencePackages = []string{"inmanta-core==20.1.0", "inmanta-module-std==8.7.5"}

// interpreters are the two Pythons of a comparison.
type interpreters struct {
	reference string // has inmanta-core
	ours      string // runs our plug-ins
	packages  string // folders of packages for ours; empty: those of its virtual environment
}

func (i *interpreters) flags(f *flag.FlagSet) {
	f.StringVar(&i.reference, "reference-python", os.Getenv("ORDAIN_REFERENCE_PYTHON"),
		"interpreter that has inmanta-core; empty: install it into the user's cache")
	f.StringVar(&i.ours, "python", "", "interpreter for our plug-ins (default: that of the reference)")
	f.StringVar(&i.packages, "site", "", "folders of packages for our plug-ins (default: those of -python)")
}

// find makes sure that both interpreters are there.
func (i *interpreters) find(ctx context.Context) (err error) {
	if i.reference == "" {
		if i.reference, err = installReference(ctx); err != nil {
			return err
		}
	}
	if i.ours == "" {
		i.ours = i.reference
	}
	i.ours, err = exec.LookPath(i.ours)
	return err
}

// options are those of our compiler.
func (i *interpreters) options(cache string) compiler.Options {
	o := compiler.Options{Python: i.ours, CacheDir: cache, SitePackages: compiler.PackagesOf(i.ours)}
	if i.packages != "" {
		o.SitePackages = strings.Split(i.packages, string(os.PathListSeparator))
	}
	return o
}

// installReference installs the reference into a virtual environment in the user's
// cache, unless an earlier run has done so, and returns its interpreter.
func installReference(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "ordain-test-venvs", "reference")
	python := filepath.Join(dir, "bin", "python")
	complete, wanted := filepath.Join(dir, "complete"), strings.Join(referencePackages, "\n")
	if made, err := os.ReadFile(complete); err == nil && string(made) == wanted {
		return python, nil
	}
	newest := plugintest.Find("python3.13")
	if newest == "" {
		return "", errors.New("python3.13 is not installed on this machine")
	}
	fmt.Fprintf(os.Stderr, "installing %s into %s\n", strings.Join(referencePackages, " and "), dir)
	for _, command := range [][]string{
		{newest, "-m", "venv", "--clear", dir},
		append([]string{python, "-m", "pip", "install", "-q"}, referencePackages...),
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	return python, os.WriteFile(complete, []byte(wanted), 0o644)
}
