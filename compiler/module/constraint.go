package module

import (
	"errors"
	"strings"

	"ordain.dev/ordain/internal/python/pep440"
)

// constraints tells which constraint on a module, by the module's name, cannot
// be read. whose is who has them.
func constraints(whose string, specs []string) error {
	for _, spec := range specs {
		if _, err := requirement(spec); err != nil {
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
			_, err = requirement(strings.ReplaceAll(spec, "-", "_"))
		}
		if err != nil {
			return constraintError("requirements of "+whose, err)
		}
	}
	return nil
}

// packageNamed is the error of a constraint that names a Python package where a
// module is meant, in the reference's words.
type packageNamed string

func (e packageNamed) Error() string { return string(e) }

// errNoModuleName is for inmanta-module- alone.
const errNoModuleName = packageNamed("Invalid python package name: empty module name part.")

// requirement reads a constraint on a module, by the module's name.
func requirement(spec string) (pep440.Requirement, error) {
	r, err := pep440.ParseRequirement(spec)
	if err == nil && strings.HasPrefix(pep440.Normal(r.Name), distributionPrefix) {
		err = packageNamed(
			"InmantaModuleRequirement instances work with inmanta module names, not python package names. Problematic case: " + r.Canonical(),
		)
	}
	return r, err
}

// constraintError is the error of a constraint that cannot be read. where it
// stands is for people.
func constraintError(where string, err error) *Error {
	e := &Error{
		Kind:    KindNoRequirement,
		Message: err.Error(),
		Hint:    where + ": a constraint is the name of a module and the versions that will do, such as `std ~= 8.0`",
	}
	var named packageNamed
	if errors.As(err, &named) {
		e.Kind, e.Hint = KindNoValue, where+": name the module, not the Python package that holds it"
	}
	return e
}
