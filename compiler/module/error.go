package module

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
)

// Kinds of errors: the reference's classes.
const (
	KindLoading         = "inmanta.module.ModuleLoadingException"
	KindNotFound        = "inmanta.module.ModuleNotFoundException"
	KindInvalid         = "inmanta.module.InvalidModuleException"
	KindNoMetadata      = "inmanta.module.ModuleMetadataFileNotFound"
	KindV2InV1Path      = "inmanta.module.ModuleV2InV1PathException"
	KindInvalidMetadata = "inmanta.module.InvalidMetadata"
	KindNoProject       = "inmanta.module.ProjectNotFoundException"
	KindNoFile          = "builtins.FileNotFoundError"
	KindDirectory       = "builtins.IsADirectoryError"
	KindNoDirectory     = "builtins.NotADirectoryError"
	KindForbidden       = "builtins.PermissionError"
	KindSystem          = "builtins.OSError"
	// What the reference's own Python stumbles over: told by the same class.
	KindNoMapping     = "builtins.TypeError"
	KindNoSection     = "builtins.AttributeError"
	KindNoKey         = "builtins.KeyError"
	KindNoValue       = "builtins.ValueError"
	KindNoText        = "builtins.UnicodeDecodeError"
	KindTooDeep       = "builtins.RecursionError"
	KindNoRequirement = "packaging.requirements.InvalidRequirement"
	// KindConfiguration is of a warning.
	KindConfiguration = "inmanta.module.ProjectConfigurationWarning"
)

// Error is why a project or a module could not be read. A file that does not
// parse is a *syntax.Error instead.
type Error struct {
	Kind    string // the reference's class
	Like    string // the kind nearest to it, if Kind is one of Python's own; KindInvalidMetadata if empty
	Message string
	At      syntax.Span // zero: no place
	// Statement is the text of the import that failed.
	Statement string
	Hint      string
	Cause     error // *Error, or the system's
	// Warnings are what was found on the way to it.
	Warnings []string
}

// Error gives message, place and cause.
func (e *Error) Error() string {
	s := e.Message
	switch {
	case e.Statement != "":
		s += fmt.Sprintf(" (reported in %s (%s))", e.Statement, e.At)
	case e.At.Start.Line > 0:
		s += fmt.Sprintf(" (%s)", e.At)
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// foreign: no import is blamed for it.
func (e *Error) foreign() bool {
	return strings.HasPrefix(e.Kind, "builtins.") || e.Kind == KindNoRequirement
}

// at is a place in a file that is not a model file.
func at(path string, line, col int) syntax.Span {
	p := syntax.Pos{Line: int32(line), Col: int32(col)}
	return syntax.Span{File: &syntax.File{Path: path}, Start: p, End: p, Coarse: col == 0}
}
