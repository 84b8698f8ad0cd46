package program

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

var frameLine = sync.OnceValue(
	func() *regexp.Regexp { return regexp.MustCompile(`^  File "(.*)", line (\d+)(?:, in (.*))?$`) },
)

// frames parses the text of a Python stack and keeps the frames in plug-ins. Of a
// deep recursion it keeps both ends.
func frames(trace string) []diag.Frame {
	const ends = 5
	var list []diag.Frame
	skip := false
	for line := range strings.SplitSeq(trace, "\n") {
		if m := frameLine().FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[2])
			if skip = !ofPlugin(m[1]); skip {
				continue
			}
			list = append(list, diag.Frame{Location: diag.Location{File: m[1], Line: n}, Function: m[3]})
			continue
		}
		if skip {
			continue
		}
		if source := strings.TrimSpace(line); source != "" && len(list) > 0 && list[len(list)-1].Source == "" &&
			strings.Trim(source, "^~ ") != "" {
			list[len(list)-1].Source = source
		}
	}
	if len(list) > 2*ends {
		list = append(list[:ends:ends], list[len(list)-ends:]...)
	}
	return list
}

// ofPlugin reports whether a file belongs to a module and not to Python's libraries.
func ofPlugin(path string) bool {
	path = strings.ReplaceAll(path, "\\", "/")
	return strings.Contains(path, "/inmanta_plugins/") || strings.Contains(path, "/plugins/") ||
		!strings.Contains(path, "/lib/python")
}

// PluginError is an exception that a plug-in did not catch.
type PluginError struct {
	// Kind is "plugin" for PluginException, "compiler" for another compiler
	// exception raised by Python, "exit" for a request to end the process,
	// "annotation" for an annotation of a plug-in that names no type (Class is then
	// the reference's), "external" for anything else.
	Kind    string
	Class   string // fully qualified Python class
	Message string
	// File and Line are those of the innermost frame in a plug-in, or in the file
	// that is imported. Line is 0 when none of its lines ran.
	File string
	Line int
	// Unread is the place of a SyntaxError.
	Unread *syntax.Span
	Trace  string // the plug-in's frames only
	// At is the place in the model that a compiler exception has itself, and Causes
	// are its causes.
	At     *syntax.Span
	Causes []PluginError
	// Notes are the exception's own (PEP 678), which say how to mend it.
	Notes string
	// Wrapped is the exception inside an ExternalException; nil for others.
	Wrapped *PluginError
}

// Last returns the last line of what Python would print.
func (e *PluginError) Last() string {
	line := strings.TrimPrefix(e.Class, "builtins.")
	if e.Message != "" {
		line += ": " + e.Message
	}
	return line
}

// Raised returns the PluginException that an exception is or wraps, as a compile
// report shows it; nil where there is none.
func (e *PluginError) Raised() *diag.Exception {
	if e.Kind == "plugin" {
		return &diag.Exception{Kind: e.Class, Message: e.Message}
	}
	if e.Wrapped != nil {
		return e.Wrapped.Raised()
	}
	return nil
}

func LoadErrors(err error) (first *Error, further []*Error) {
	var several interface{ Further() []error }
	if errors.As(err, &several) {
		for _, other := range several.Further() {
			further = append(further, loadError(other))
		}
	}
	return loadError(err), further
}

// noInterpreter reports whether Python could not even be started.
func noInterpreter(err error) bool {
	var path *fs.PathError
	var name *exec.Error
	return errors.As(err, &path) || errors.As(err, &name)
}

func loadError(err error) *Error {
	if e, ok := err.(*Error); ok {
		return e
	}
	e := &Error{Kind: "CompilerException", Message: fmt.Sprintf("Unable to load the plug-ins: %s", err), Bare: true}
	var raised loadFailure
	if !errors.As(err, &raised) {
		if e.code = diag.Code("PluginModuleLoadException"); noInterpreter(err) {
			e.code = diag.Code("Error")
		}
		return e
	}
	cause := raised.Raised()
	e.Message, e.code = raised.Error(), diag.Code("PluginModuleLoadException")
	e.File, e.Line, e.PythonTrace, e.Hint = cause.File, cause.Line, cause.Trace, cmp.Or(raised.Hint(), cause.Notes)
	switch {
	case cause.Kind == "exit": // it passes everything by, as in the reference
		e.Kind, e.Message, e.Builtin = strings.TrimPrefix(cause.Class, "builtins."), cause.Message, true
		e.File, e.Line, e.About = "", 0, PlaceOutside(cause.File, cause.Line, 1) // the reference names no place
	case cause.Unread != nil: // the reference has the line that imports the file; none when it is the file itself
		e.Focus = cause.Unread
		if cause.Line == 0 {
			e.File = ""
			if e.Focus.Start.Line > 0 {
				e.About, e.PythonTrace = e.Focus, ""
			}
		}
	case cause.Kind == "annotation":
		e.Kind, e.Message, e.code = cause.Class, cause.Message, diag.Code("InvalidTypeAnnotation")
		e.Builtin = cause.Class == "TypeError"
		e.File, e.Line, e.About = "", 0, PlaceOutside(cause.File, cause.Line, 1) // the reference names no place
	}
	return e
}

// Exited is the error for Python code that asked the process to end.
func Exited(err PluginError) *Error {
	return &Error{
		Kind:        strings.TrimPrefix(err.Class, "builtins."),
		Message:     err.Message,
		Builtin:     true,
		Bare:        true,
		PythonTrace: err.Trace,
		About:       PlaceOutside(err.File, err.Line, 1),
		code:        diag.Code("ExternalException"),
	}
}

// PlaceOutside returns a place in a file that is no model file; nil for an unknown
// one.
func PlaceOutside(path string, line, col int) *Place {
	if path == "" || line == 0 {
		return nil
	}
	at := syntax.Pos{Line: int32(line), Col: int32(col)}
	return &Place{File: &syntax.File{Path: path}, Start: at, End: at}
}

// loadFailure is an exception of Python code during its import.
type loadFailure interface {
	error
	Raised() *PluginError
	Hint() string
}

var noAttribute = sync.OnceValue(
	func() *regexp.Regexp { return regexp.MustCompile(`([\w:]+) has no attribute '([^']*)'$`) },
)

// Hint returns the notes of an exception. For one about an attribute that an
// instance does not have, it names those that it has; typeOf is Heap.Type.
func (e *PluginError) Hint(typeOf func(name string) any) string {
	if e.Wrapped != nil && e.Notes == "" {
		return e.Wrapped.Hint(typeOf)
	}
	m := noAttribute().FindStringSubmatch(strings.TrimSpace(e.Message))
	if m == nil {
		m = noAttribute().FindStringSubmatch(e.Notes)
	}
	if m == nil {
		return e.Notes
	}
	entity, ok := typeOf(m[1]).(*types.Entity)
	if !ok {
		return e.Notes
	}
	hint := Suggest("attribute", m[2], AttributeNames(entity))
	if hint == "" {
		names := AttributeNames(entity)
		slices.Sort(names)
		hint = m[1] + " has the attributes " + strings.Join(names, ", ")
	}
	if e.Notes == "" {
		return hint
	}
	return e.Notes + ": " + hint
}

// Frames returns the lines of plug-ins that led to the exception.
func (e *PluginError) Frames() []diag.Frame { return frames(e.Trace) }
