package executor

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/python/venv"
)

// shareBytecode links into a new virtual environment the bytecode that Python
// compiled in older ones: the compiler's, and those of other executors. So the
// first import of a package is as quick as the second.
//
//	compiler/.env-py3.12/…/jinja2/__pycache__/lexer.cpython-312.pyc
//	      └─ link ─▶ executors/venvs/<hash>/…/jinja2/__pycache__/
//	                 if jinja2/lexer.py is one file in both
//
// Compiling everything in advance (uv's --compile-bytecode) took 1.5 s to save
// 0.3 s, because most of what is installed is never imported. Python itself
// compiles what cannot be linked.
func (m *Manager) shareBytecode(made venv.Result, venv string) {
	below, err := filepath.Rel(venv, made.SitePackages)
	if err != nil || !filepath.IsLocal(below) {
		return
	}
	paths := m.c.Layout.Environment(m.c.Environment)
	donors := append(folders(paths.Venvs()), paths.CompilerVenv(made.Interpreter.Minor))
	var linked int
	for _, donor := range slices.Backward(donors) {
		if donor != venv {
			linked += linkBytecode(filepath.Join(donor, below), made.SitePackages)
		}
	}
	m.c.Logger.Debug("linked bytecode of other virtual environments", "venv", venv, "files", linked)
}

// linkBytecode links the bytecode below one folder of packages into another one,
// where both have the same source file. It returns the number of links.
func linkBytecode(from, to string) int {
	var linked int
	_ = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || filepath.Ext(path) != ".pyc" {
			return nil // such as a folder that does not exist
		}
		cache := filepath.Dir(path)
		below, err := filepath.Rel(from, filepath.Dir(cache))
		if err != nil || filepath.Base(cache) != "__pycache__" {
			return nil
		}
		module, _, _ := strings.Cut(entry.Name(), ".")
		theirs, err := os.Stat(filepath.Join(filepath.Dir(cache), module+".py"))
		if err != nil {
			return nil
		}
		ours, err := os.Stat(filepath.Join(to, below, module+".py"))
		if err != nil || !os.SameFile(theirs, ours) {
			return nil
		}
		into := filepath.Join(to, below, "__pycache__")
		if os.MkdirAll(into, 0o755) == nil && os.Link(path, filepath.Join(into, entry.Name())) == nil {
			linked++
		}
		return nil
	})
	return linked
}
