package venv

import (
	"slices"
	"strconv"
	"strings"
)

// unfit lists releases that do not say which Python they need and are no code
// for older ones: an index would hand them out all the same.
var unfit = []struct {
	constraint string
	minor      int // the oldest Python 3 that they run on
}{
	{"inmanta-module-std!=8.5.0", 12}, // generic functions
}

// fitting is a spec without what cannot run with an interpreter.
func (s Spec) fitting(i Interpreter) Spec {
	minor, err := strconv.Atoi(strings.TrimPrefix(i.Minor, "3."))
	if err != nil {
		return s
	}
	s.Constraints = slices.Clone(s.Constraints)
	for _, u := range unfit {
		if minor < u.minor {
			s.Constraints = append(s.Constraints, u.constraint)
		}
	}
	return s
}
