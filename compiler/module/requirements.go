package module

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/python/pep440"
)

// requirements is what a requirements.txt asks for, together with the files that it
// includes.
type requirements struct {
	lines       []string
	constraints []string
	problems    []*Error // lines that an installer must not be given
}

// maxIncluded limits how many files a requirements.txt may include.
const maxIncluded = 100

// readRequirements reads the requirements.txt in a folder. A missing file has none. It
// includes only files in the folder. Lines that it cannot read stay as they are, because
// inmanta-core, too, ignores them in a compile; problems says what is wrong with them.
func readRequirements(folder string, local bool) (requirements, error) {
	r := &requirementsReader{folder: folder, local: local, seen: map[string]bool{}}
	path := filepath.Join(folder, "requirements.txt")
	text, err := readText(path)
	if os.IsNotExist(err) {
		return r.out, nil
	}
	if err != nil {
		return r.out, err
	}
	r.add(path, string(text), false)
	return r.out, nil
}

type requirementsReader struct {
	folder string
	local  bool // addresses of files on this machine are allowed
	seen   map[string]bool
	out    requirements
}

// add adds the lines of a file.
func (r *requirementsReader) add(path, text string, constraint bool) {
	for _, line := range requirementLines(text) {
		parsed, err := pep440.ParseLine(line.text, r.local)
		if err == nil && parsed.Include != "" {
			err = r.include(filepath.Dir(path), parsed.Include, constraint || parsed.Constraint)
			if err == nil {
				continue
			}
		}
		if err != nil {
			r.out.problems = append(r.out.problems, &Error{
				Kind:    KindNoRequirement,
				Message: "this line cannot be used: " + err.Error(),
				At:      at(path, line.number, 1),
				Hint: "a line names a package and its versions, such as `requests >= 2`, or an address; " +
					"-r and -c name other files of the project; " +
					"package indexes belong in the section pip of project.yml",
			})
		}
		if constraint {
			r.out.constraints = append(r.out.constraints, line.text)
		} else {
			r.out.lines = append(r.out.lines, line.text)
		}
	}
}

// include adds the lines of a file that another one names. Its errors say nothing about
// files outside of the folder, not even whether they exist.
func (r *requirementsReader) include(from, name string, constraint bool) error {
	name = strings.Trim(name, `"'`)
	if filepath.IsAbs(name) {
		return errOutside
	}
	if name = filepath.Join(from, name); !Below(r.folder, name) {
		return errOutside
	}
	if r.seen[name] {
		return nil
	}
	if r.seen[name] = true; len(r.seen) > maxIncluded {
		return fmt.Errorf("more than %d files are included", maxIncluded)
	}
	text, err := readText(name)
	switch {
	case os.IsNotExist(err):
		return errors.New("there is no such file in the project")
	case err != nil:
		return errors.New("the included file cannot be read as text")
	}
	r.add(name, string(text), constraint)
	return nil
}

var errOutside = errors.New("the included file lies outside of the folder of this requirements.txt")

// Below reports whether a path is a folder or lies in it when all links are followed. The
// end of the path need not exist.
func Below(folder, path string) bool {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	missing := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			rel, err := filepath.Rel(folder, filepath.Join(real, missing))
			return err == nil && filepath.IsLocal(rel)
		}
		if _, err := os.Lstat(path); err == nil { // a broken link
			return false
		}
		missing = filepath.Join(filepath.Base(path), missing)
		path = filepath.Dir(path)
	}
}

// contains reports whether a path lies in the root of the project.
func (p *Project) contains(path string) bool { return p.Root == "" || Below(p.Root, path) }

// checked returns the requirements in a folder of the project, or what is wrong with them.
func (p *Project) checked(folder string) (requirements, error) {
	path := filepath.Join(folder, "requirements.txt")
	if !p.contains(path) {
		return requirements{}, &Error{
			Kind:    KindNoRequirement,
			Message: "this file is a link that leads out of the repository",
			At:      at(path, 1, 1),
			Hint:    "replace it by a file of the repository",
		}
	}
	r, err := readRequirements(folder, p.Root == "")
	if err == nil && len(r.problems) > 0 {
		err = r.problems[0]
	}
	return r, err
}

// requirementLine is a line without comments, to which the lines that continue it were
// joined.
type requirementLine struct {
	text   string
	number int
}

// requirementLines splits a requirements file into lines, as inmanta-core does.
func requirementLines(text string) []requirementLine {
	var out []requirementLine
	joined, began := "", 0
	end := func() {
		if joined = strings.TrimSpace(joined); joined != "" {
			out = append(out, requirementLine{joined, began})
		}
		joined = ""
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimSpace(line)
		if joined == "" {
			began = i + 1
		}
		if rest, ok := strings.CutSuffix(line, "\\"); ok {
			joined += rest
			continue
		}
		joined += line
		end()
	}
	end()
	return out
}
