package module

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
)

// Kinds of errors are the classes of inmanta-core.
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
	// In these cases inmanta-core ends with an exception of Python or of a library.
	KindNoMapping     = "builtins.TypeError"
	KindNoSection     = "builtins.AttributeError"
	KindNoKey         = "builtins.KeyError"
	KindNoValue       = "builtins.ValueError"
	KindNoText        = "builtins.UnicodeDecodeError"
	KindTooDeep       = "builtins.RecursionError"
	KindNoRequirement = "packaging.requirements.InvalidRequirement"
	// KindConfiguration is the kind of a warning.
	KindConfiguration = "inmanta.module.ProjectConfigurationWarning"
)

// Error says why a project or a module could not be read. Errors in the syntax of a
// model are a *syntax.Error instead.
type Error struct {
	Kind    string // the class of inmanta-core
	Like    string // the nearest other kind, if Kind is a class of Python; empty: KindInvalidMetadata
	Message string
	At      syntax.Span // zero: unknown
	// Statement is the import that failed.
	Statement string
	Hint      string
	Cause     error // *Error, or the system's
	// Warnings were found before the error.
	Warnings []string
}

// Error returns the message, the place and the cause.
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// foreign reports whether the error is of Python or a library in inmanta-core, which
// then does not name the import that led to it.
func (e *Error) foreign() bool {
	return strings.HasPrefix(e.Kind, "builtins.") || e.Kind == KindNoRequirement
}

// at returns a place in a file that is not a model. Column 0 means that it is unknown.
func at(path string, line, col int) syntax.Span {
	p := syntax.Pos{Line: int32(line), Col: int32(col)}
	return syntax.Span{File: &syntax.File{Path: path}, Start: p, End: p, Coarse: col == 0}
}
