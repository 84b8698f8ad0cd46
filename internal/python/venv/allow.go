package venv

import (
	"fmt"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/pep440"
)

// check refuses requirements that would let their author read files of this machine: an
// installer quotes what it cannot read. Files that requirements include have been read by
// the caller.
func (s Spec) check() error {
	for kind, lines := range map[string][]string{"requirement": s.Requirements, "constraint": s.Constraints} {
		for _, text := range lines {
			line, err := pep440.ParseLine(text, s.Local)
			if err == nil && line.Include != "" {
				err = fmt.Errorf("it includes a file that is not part of the project")
			}
			if err != nil {
				return refused(fmt.Sprintf("the %s %q cannot be installed: %v", kind, Redact(short(text)), err),
					"correct requirements.txt, or setup.cfg of the module that requires it")
			}
		}
	}
	for _, index := range append([]string{s.Pip.IndexURL}, s.Pip.ExtraIndexURL...) {
		if index == "" {
			continue
		}
		if err := pep440.CheckAddress(index, s.Local); err != nil {
			return refused(fmt.Sprintf("the package index %q cannot be used: %v", Redact(short(index)), err),
				"correct the section pip of project.yml")
		}
	}
	return nil
}

func refused(text, hint string) error {
	return fault.New("venv.Ensure", fault.Invalid, text).Hint(hint)
}

// short returns the beginning of a long text.
func short(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
