package module

import (
	"errors"
	"strings"

	"ordain.dev/ordain/internal/python/pep440"
)

// checkConstraints checks constraints on modules, given by module name. owner is the
// file or module that has them.
func checkConstraints(owner string, specs []string) error {
	for _, spec := range specs {
		if _, err := requirement(spec); err != nil {
			return constraintError("requires of "+owner, err)
		}
	}
	return nil
}

// checkPackages does the same for requirements on packages, as far as these are
// modules. As in inmanta-core, each hyphen after inmanta-module- counts as an
// underscore of the module's name.
func checkPackages(owner string, packages []string) error {
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
			return constraintError("requirements of "+owner, err)
		}
	}
	return nil
}

// packageNamed is the error of a constraint that names a Python package in place of
// a module.
type packageNamed string

func (e packageNamed) Error() string { return string(e) }

const errNoModuleName = packageNamed(distributionPrefix + " is followed by no name of a module")

// requirement reads a constraint on a module, by the module's name.
func requirement(spec string) (pep440.Requirement, error) {
	r, err := pep440.ParseRequirement(spec)
	if err == nil && strings.HasPrefix(pep440.Normal(r.Name), distributionPrefix) {
		err = packageNamed(r.Canonical() + " names a Python package in place of a module")
	}
	return r, err
}

// constraintError is the error of a constraint that cannot be read. where says where
// the constraint stands.
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
