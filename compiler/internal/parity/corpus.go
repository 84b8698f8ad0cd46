// Package parity compares our compiler with the reference, inmanta-core. It has a corpus
// of small models by area of the language, the outcomes that the reference had for them
// (recorded, so that tests need no reference), and a comparison that ignores the ids of
// instances and every order that means nothing.
//
//	corpus ─┬─▶ ordain ────▶ document ─┐
//	        └─▶ reference ─▶ document ─┴─▶ Compare: the verdict, and what differs
package parity

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Case is a project of the corpus.
type Case struct {
	Area, Name string
	Files      map[string]string // by path in the project; main.cf is always there
	// Std: module std is imported implicitly, as it is by default. StdInstalled: the model
	// imports std itself. Both need an interpreter that has it.
	Std, StdInstalled bool
	// PythonMinor is the oldest Python 3 that can parse the plug-ins, such as 12 for Python 3.12.
	PythonMinor int
	// Export: the resources are built too; Partial: as a partial export, which
	// removes the sets Delete.
	Export, Partial bool
	Delete          []string
	// Env are variables of the environment, NAME=value, beside those of the process.
	Env []string
	// Writes are patterns of files that the compile writes and that are compared.
	Writes []string
}

// ID is area/name.
func (c Case) ID() string { return c.Area + "/" + c.Name }

// HasPython reports whether the case needs an interpreter.
func (c Case) HasPython() bool {
	for name := range c.Files {
		if strings.HasSuffix(name, ".py") {
			return true
		}
	}
	return c.NeedsStd()
}

// NeedsStd reports whether module std has to be installed.
func (c Case) NeedsStd() bool { return c.Std || c.StdInstalled }

// Load reads the corpus: the archives of dir, one for each area. An archive has these files:
//
//	-- name.cf --                  a case of one file
//	-- name/libs/m/module.yml --   a file of a case of several
//	-- name/std --                 the case is compiled with std
//	-- name/std-installed --       the case needs std to be installed
//	-- name/python --              the oldest version of Python for it, such as 3.12
//	-- name/export --              the case is exported too
//	-- name/partial --             the case is exported partially; the lines are sets to remove
//	-- name/env --                 variables of the environment, a NAME=value in each line
//	-- name/writes --              patterns of files that are compared after the compile
//	-- all/templates/a.j2 --       a file of every case that has none of its own
//	-- head/main.cf --             what this file of every case begins with
//
// A line "options: std export" before the first file holds for all cases.
//
// Each archive below a folder of stories is a case too, of area stories/<folder>.
func Load(dir string, stories ...string) ([]Case, error) {
	cases, err := loadAreas(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	for _, root := range stories {
		found, err := loadStories(filepath.Join(root, "*", "*.txtar"))
		if err != nil {
			return nil, err
		}
		cases = append(cases, found...)
	}
	return cases, nil
}

func loadAreas(pattern string) ([]Case, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		area := strings.TrimSuffix(filepath.Base(path), ".txtar")
		found, err := readArea(area, archive)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		cases = append(cases, found...)
	}
	return cases, nil
}

func loadStories(pattern string) ([]Case, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		if c, ok := readStory(archive); ok {
			c.Area = "stories/" + filepath.Base(filepath.Dir(path))
			c.Name = strings.TrimSuffix(filepath.Base(path), ".txtar")
			cases = append(cases, c)
		}
	}
	return cases, nil
}

// area collects the cases of an archive.
type area struct {
	cases  []*Case
	byName map[string]*Case
	shared map[string]string // files of every case, by path
	heads  map[string]string // what files of every case begin with, by path
}

func readArea(name string, archive *txtar.Archive) ([]Case, error) {
	a := area{byName: map[string]*Case{}, shared: map[string]string{}, heads: map[string]string{}}
	options := optionsOf(string(archive.Comment))
	template := Case{
		Area: name, Std: slices.Contains(options, "std"), Export: slices.Contains(options, "export"),
	}
	for _, f := range archive.Files {
		owner, path, nested := strings.Cut(f.Name, "/")
		if !nested {
			single, ok := strings.CutSuffix(f.Name, ".cf")
			if !ok {
				return nil, fmt.Errorf("%s is neither a model nor in the folder of a case", f.Name)
			}
			owner, path = single, "main.cf"
		}
		text := string(f.Data)
		switch owner {
		case "all":
			a.shared[path] = text
			continue
		case "head":
			a.heads[path] = text
			continue
		}
		c := a.byName[owner]
		if c == nil {
			copied := template
			c = &copied
			c.Name, c.Files = owner, map[string]string{}
			a.byName[owner] = c
			a.cases = append(a.cases, c)
		}
		if err := c.add(path, text); err != nil {
			return nil, err
		}
	}
	cases := make([]Case, len(a.cases))
	for i, c := range a.cases {
		a.share(c)
		if _, ok := c.Files["main.cf"]; !ok {
			return nil, fmt.Errorf("case %s has no main.cf", c.Name)
		}
		cases[i] = *c
	}
	return cases, nil
}

// optionsOf are the words of the line "options:" of an archive's comment.
func optionsOf(comment string) []string {
	for line := range strings.Lines(comment) {
		if words, ok := strings.CutPrefix(line, "options:"); ok {
			return strings.Fields(words)
		}
	}
	return nil
}

// add adds a file of an archive, which may be a setting of the case.
func (c *Case) add(path, text string) error {
	switch path {
	case "std":
		c.Std = true
	case "std-installed":
		c.StdInstalled = true
	case "python":
		minor, found := strings.CutPrefix(strings.TrimSpace(text), "3.")
		n, err := strconv.Atoi(minor)
		if !found || err != nil {
			return fmt.Errorf("case %s: %q is not a version of Python 3", c.Name, text)
		}
		c.PythonMinor = n
	case "export":
		c.Export = true
	case "partial":
		c.Export, c.Partial, c.Delete = true, true, strings.Fields(text)
	case "env":
		c.Env = strings.Fields(text)
	case "writes":
		c.Writes = strings.Fields(text)
	default:
		if _, twice := c.Files[path]; twice {
			return fmt.Errorf("case %s has two files %s", c.Name, path)
		}
		c.Files[path] = text
	}
	return nil
}

// share adds to a case what the archive has for all.
func (a area) share(c *Case) {
	for path, head := range a.heads {
		if own, ok := c.Files[path]; ok {
			c.Files[path] = head + own
		}
	}
	for path, text := range a.shared {
		switch path {
		case "env":
			c.Env = append(strings.Fields(text), c.Env...)
		case "writes":
			c.Writes = append(strings.Fields(text), c.Writes...)
		default:
			if _, own := c.Files[path]; !own {
				c.Files[path] = text
			}
		}
	}
}

// readStory makes a case of an archive of package eval's tests, where a/b.cf stands for
// namespace a::b and a file `precedence` for rules. Stories that call the Go plug-ins of
// those tests are not cases.
func readStory(archive *txtar.Archive) (Case, bool) {
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
	if _, ok := c.Files["project.yml"]; !ok {
		if err := writeFile(filepath.Join(dir, "project.yml"), projectFile); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), c.Files[name]); err != nil {
			return err
		}
	}
	return nil
}

// Written reads the files that match the patterns of Writes, after a compile in dir.
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
