package module

import (
	"errors"
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/pep440"
)

// isVersion tells what Python packaging takes for a version.
func isVersion(text string) bool {
	_, err := pep440.Parse(text)
	return err == nil
}

// errPackageName: a constraint names a Python package where a module is meant.
var errPackageName = errors.New("names a Python package")

// requirement reads a constraint on a module, by the module's name.
func requirement(spec string) (pep440.Requirement, error) {
	r, err := pep440.ParseRequirement(spec)
	if err == nil && strings.HasPrefix(pep440.Normal(r.Name), distributionPrefix) {
		err = fmt.Errorf("%q %w; write the name of the module, %s", spec, errPackageName, Name(r.Name))
	}
	return r, err
}

// requirementError is the error of a constraint that cannot be read, and where it stands.
func requirementError(where string, err error) *Error {
	e := &Error{
		Kind: KindNoRequirement, Message: where + ": " + err.Error(),
		Hint: "a constraint is the name of a module and the versions that will do, such as `std ~= 8.0`",
	}
	if errors.Is(err, errPackageName) {
		e.Kind = KindNoValue
	}
	return e
}

const distributionPrefix = "inmanta-module-"

// Distribution is the name of the Python package that holds a module.
func Distribution(module string) string {
	return distributionPrefix + strings.ReplaceAll(module, "_", "-")
}

// Name is the module that a Python package holds; empty when it holds none.
func Name(distribution string) string {
	name, ok := strings.CutPrefix(pep440.Normal(distribution), distributionPrefix)
	if !ok {
		return ""
	}
	return strings.ReplaceAll(name, "-", "_")
}
