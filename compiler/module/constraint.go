package module

import (
	"errors"
	"strings"
)

// constraints tells which constraint on a module, by the module's name, cannot
// be read. whose is who has them.
func constraints(whose string, specs []string) error {
	for _, spec := range specs {
		if err := checkConstraint(spec); err != nil {
			return constraintError("requires of "+whose, err)
		}
	}
	return nil
}

// modulePackages does so for the packages that are modules. All hyphens behind
// inmanta-module- count as the underscores of a module's name, as upstream.
func modulePackages(whose string, packages []string) error {
	for _, line := range packages {
		spec, ok := strings.CutPrefix(line, distributionPrefix)
		if !ok {
			continue
		}
		err := error(errNoModuleName)
		if spec != "" {
			err = checkConstraint(strings.ReplaceAll(spec, "-", "_"))
		}
		if err != nil {
			return constraintError("requirements of "+whose, err)
		}
	}
	return nil
}

// packageNamed is the error of a constraint that names a Python package, in the
// reference's words.
type packageNamed string

func (e packageNamed) Error() string { return string(e) }
func (e packageNamed) Unwrap() error { return errPackageName }

// errNoModuleName is for inmanta-module- alone.
const errNoModuleName = packageNamed("Invalid python package name: empty module name part.")

func checkConstraint(spec string) error {
	r, err := requirement(spec)
	if errors.Is(err, errPackageName) {
		return packageNamed("InmantaModuleRequirement instances work with inmanta module names, not python package names. Problematic case: " + r.Canonical())
	}
	return err
}

// constraintError is the error of a constraint that cannot be read. where it
// stands is for people.
func constraintError(where string, err error) *Error {
	e := requirementError(where, err)
	e.Message, e.Hint = err.Error(), where+": "+e.Hint
	return e
}
