package venv

import (
	"slices"
	"strconv"
	"strings"
)

// mislabelled lists releases that need a newer Python than their metadata says. An
// installer would choose them for an older one too.
var mislabelled = []struct {
	constraint string // excludes the release
	minor      int    // the oldest Python 3.x that it runs on
}{
	{"inmanta-module-std!=8.5.0", 12}, // generic functions
}

// fitting returns the spec with constraints against releases that cannot run with an interpreter.
func (s Spec) fitting(i Interpreter) Spec {
	minor, err := strconv.Atoi(strings.TrimPrefix(i.Minor, "3."))
	if err != nil {
		return s
	}
	s.Constraints = slices.Clone(s.Constraints)
	for _, u := range mislabelled {
		if minor < u.minor {
			s.Constraints = append(s.Constraints, u.constraint)
		}
	}
	return s
}
