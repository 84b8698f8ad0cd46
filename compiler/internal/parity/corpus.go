// Package parity holds the compiler against the reference: a corpus of small
// models by area of the language, what the reference made of each (recorded,
// so that tests need no reference), and a comparison that looks past the ids
// of instances and past all order that carries no meaning.
//
//	corpus ─┬─▶ ordain ────▶ document ─┐
//	        └─▶ reference ─▶ document ─┴─▶ Compare: same, or what differs
package parity

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Case is a project of the corpus.
type Case struct {
	Area, Name string
	Files      map[string]string // by path in the project; main.cf is always there
	// Std: the case is compiled with module std, which must be installed.
	Std bool
	// Export: the resources are built too; Partial: as a partial export, which
	// removes the sets Delete.
	Export, Partial bool
	Delete          []string
	// Wide: one of many that differ in one thing. Tests take them only when asked.
	Wide bool
	// Env are variables of the environment, NAME=value, beside those of the process.
	Env []string
	// Writes are the files that are compared after the compile, as patterns.
	Writes []string
}

// ID is area/name.
func (c Case) ID() string { return c.Area + "/" + c.Name }

// Load reads the corpus: the archives of dir, one for each area, in which
//
//	-- name.cf --               is a case of one file
//	-- name/libs/m/module.yml --  is a file of a case of several
//	-- name/std --              says that the case is compiled with std
//	-- name/export --           says that it is exported too
//	-- name/partial --          says that it is exported partially; its lines are sets to remove
//	-- name/env --              has variables of the environment, NAME=value in each line
//	-- name/writes --           has patterns of files that are compared after the compile
//	-- all/templates/a.j2 --    is a file of every case of the archive
//
// where a line "options: std export wide" before the first file speaks for all cases,
// and, as areas stories/…, the archives below each of stories: one case each.
func Load(dir string, stories ...string) ([]Case, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		more, err := split(strings.TrimSuffix(filepath.Base(path), ".txtar"), archive)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		cases = append(cases, more...)
	}
	for _, root := range stories {
		paths, err := filepath.Glob(filepath.Join(root, "*", "*.txtar"))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				return nil, err
			}
			area := "stories/" + filepath.Base(filepath.Dir(path))
			if c, ok := story(archive); ok {
				c.Area, c.Name = area, strings.TrimSuffix(filepath.Base(path), ".txtar")
				cases = append(cases, c)
			}
		}
	}
	return cases, nil
}

func split(area string, archive *txtar.Archive) ([]Case, error) {
	std, export, wide := options(string(archive.Comment))
	var cases []Case
	shared := map[string]string{}
	at := map[string]int{}
	for _, f := range archive.Files {
		name, path, nested := strings.Cut(f.Name, "/")
		if !nested {
			single, ok := strings.CutSuffix(f.Name, ".cf")
			if !ok {
				return nil, fmt.Errorf("%s is neither a model nor in the folder of a case", f.Name)
			}
			name, path = single, "main.cf"
		}
		if name == "all" {
			shared[path] = string(f.Data)
			continue
		}
		i, known := at[name]
		if !known {
			i = len(cases)
			at[name] = i
			cases = append(
				cases,
				Case{Area: area, Name: name, Files: map[string]string{}, Std: std, Export: export, Wide: wide},
			)
		}
		switch path {
		case "std":
			cases[i].Std = true
			continue
		case "export":
			cases[i].Export = true
			continue
		case "partial":
			cases[i].Export, cases[i].Partial, cases[i].Delete = true, true, strings.Fields(string(f.Data))
			continue
		case "env":
			cases[i].Env = strings.Fields(string(f.Data))
			continue
		case "writes":
			cases[i].Writes = strings.Fields(string(f.Data))
			continue
		}
		if _, twice := cases[i].Files[path]; twice {
			return nil, fmt.Errorf("case %s has two files %s", name, path)
		}
		cases[i].Files[path] = string(f.Data)
	}
	for i, c := range cases {
		for path, text := range shared {
			switch path {
			case "env":
				cases[i].Env = append(strings.Fields(text), c.Env...)
			case "writes":
				cases[i].Writes = append(strings.Fields(text), c.Writes...)
			default:
				if _, own := c.Files[path]; !own {
					c.Files[path] = text
				}
			}
		}
		if _, ok := c.Files["main.cf"]; !ok {
			return nil, fmt.Errorf("case %s has no main.cf", c.Name)
		}
	}
	return cases, nil
}

// options reads what an archive says of all its cases.
func options(comment string) (std, export, wide bool) {
	for line := range strings.Lines(comment) {
		if words, ok := strings.CutPrefix(line, "options:"); ok {
			fields := strings.Fields(words)
			std, export, wide = slices.Contains(
				fields,
				"std",
			), slices.Contains(
				fields,
				"export",
			), slices.Contains(
				fields,
				"wide",
			)
		}
	}
	return std, export, wide
}

// story makes a case of an archive of package eval, where a/b.cf stands for
// namespace a::b and a file `precedence` for rules. Those that call the Go
// plug-ins of its tests are no cases.
func story(archive *txtar.Archive) (Case, bool) {
	c := Case{Files: map[string]string{}}
	for _, f := range archive.Files {
		if strings.Contains(string(f.Data), "test::") {
			return c, false
		}
		switch {
		case f.Name == "main.cf":
			c.Files["main.cf"] = string(f.Data)
		case f.Name == "precedence":
			policy := "relation_precedence_policy:\n"
			for line := range strings.Lines(string(f.Data)) {
				policy += "  - " + strings.TrimSpace(line) + "\n"
			}
			c.Files["project.yml"] = projectFile + policy
		case strings.HasSuffix(f.Name, ".cf"):
			module, rest, nested := strings.Cut(strings.TrimSuffix(f.Name, ".cf"), "/")
			if !nested {
				rest = "_init"
			}
			c.Files["libs/"+module+"/module.yml"] = "name: " + module + "\nversion: 1.0\nlicense: none\n"
			c.Files["libs/"+module+"/model/"+rest+".cf"] = string(f.Data)
		}
	}
	_, ok := c.Files["main.cf"]
	return c, ok
}

const projectFile = "name: parity\nmodulepath: libs\n"

// Write writes the project of a case to a folder.
func (c Case) Write(dir string) error {
	files := c.Files
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	if _, ok := files["project.yml"]; !ok {
		if err := writeFile(filepath.Join(dir, "project.yml"), projectFile); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// Written reads the files that a compile of the case left in its folder.
func (c Case) Written(dir string) (map[string]string, error) {
	var found map[string]string
	for _, pattern := range c.Writes {
		paths, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if found == nil {
				found = map[string]string{}
			}
			name, _ := filepath.Rel(dir, path)
			found[filepath.ToSlash(name)] = strings.ReplaceAll(string(text), dir+"/", "")
		}
	}
	return found, nil
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// HasPython tells whether the case needs an interpreter.
func (c Case) HasPython() bool {
	for name := range c.Files {
		if strings.HasSuffix(name, ".py") {
			return true
		}
	}
	return c.Std
}
