package program

import (
	"fmt"
	"sort"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// related is another place that has to do with an error.
type related struct {
	label string
	at    *Place
}

// Place is where something stands in the model.
type Place = syntax.Span

// Short returns a place without its column.
func Short(p *Place) string {
	return fmt.Sprintf("%s:%d", fileOf(p), p.Start.Line)
}

func fileOf(p *Place) string {
	if p == nil || p.File == nil {
		return "internal"
	}
	return p.File.Path
}

// Chain is how the compile came to an error: the implementations that ran, and the
// instances they ran for.
type Chain interface{ Steps() []diag.Step }

// Error is an error of the model: what the reference calls a CompilerException.
type Error struct {
	// Kind is the reference's class without its module: DoubleSetException.
	Kind    string
	Message string
	// Stmt is the text of the statement that raised the error, if there is one.
	Stmt   string
	Causes []*Error
	// Hint says how to mend the error, where that says more than the message.
	Hint string
	// MakeHint makes Hint when the error is shown, where that takes work.
	MakeHint func() string
	// Importance orders the errors of a MultiException: lower comes first.
	Importance int

	// Raised is the PluginException that a plug-in raised; nil for other errors.
	Raised *diag.Exception

	// File, Line and PythonTrace say where a plug-in raised it.
	File         string
	Line, Column int
	PythonTrace  string
	// nowhere is set for an error in the annotation of a plug-in for which the
	// reference names no place.
	nowhere bool

	Place *Place
	// StmtAt is the place of Stmt. A statement that takes the error over replaces
	// it, unless Place is more exact.
	StmtAt *Place
	// By is the implementation that ran when the error arose.
	By Chain
	// code replaces the diagnostic code of Kind where that is too general.
	code string
	// Topic distinguishes errors at one place; repeats counts equal ones.
	Topic   string
	repeats int
	also    []*Place // other places that use the same missing name
	// excused is set for an error that only follows from another one, Final for one
	// after which nothing more can be found.
	excused, Final bool
	// Expected and Found say in words which type or token would have been right, and
	// what is there.
	Expected, Found string
	// Subject is what package eval knows of an error of assigning, for its data trace.
	Subject any
	// Focus is a place closer to the mistake than Place, for people.
	Focus *Place
	// Related are other places that have to do with the error.
	Related []related
	// About is a place for people where the reference names none.
	About *Place
	// tail follows the message in the trace: the places of two definitions that
	// exclude each other.
	tail string
	// Bare is set when the text of the error must not name a place.
	Bare bool
	// whole is set when Message names the places already.
	whole bool
	// Builtin is set for an exception that is no CompilerException in the reference,
	// but one of Python's own.
	Builtin bool
}

// Error implements error with the text that people see.
func (e *Error) Error() string { return e.Trace() }

// At returns the place of the error, if it has one.
func (e *Error) At() (at syntax.Span, ok bool) {
	if e.Place == nil || e.Place.File == nil {
		return syntax.Span{}, false
	}
	return *e.Place, true
}

// Trace returns the whole text of the error, with its causes.
func (e *Error) Trace() string { return strings.TrimRight(e.trace("", "  "), "\n") }

func (e *Error) head() string {
	switch {
	case e.whole:
		return e.Message + e.tail
	case e.Stmt != "" && e.Place != nil:
		return fmt.Sprintf("%s (reported in %s (%s))", e.Message, e.Stmt, e.Place)
	case e.Place != nil && !e.Bare:
		return fmt.Sprintf("%s (%s)", e.Message, e.Place)
	}
	return e.Message
}

func (e *Error) trace(prefix, indent string) string {
	var b strings.Builder
	if e.Kind == "MultiException" {
		fmt.Fprintf(&b, "%sReported %d errors", prefix, len(e.Causes))
		for i, cause := range e.Causes {
			fmt.Fprintf(&b, "\n%serror %d:\n%s", prefix, i, cause.trace(prefix+indent, indent))
		}
		return b.String()
	}
	b.WriteString(prefix + e.head())
	for _, cause := range e.Causes {
		fmt.Fprintf(&b, "\n%scaused by:\n%s", prefix, cause.trace(prefix+indent, indent))
	}
	return b.String()
}

// Located sets the statement and the place of an error that does not have them yet.
func (e *Error) Located(stmt fmt.Stringer, at *Place) *Error {
	if e == nil {
		return nil
	}
	if e.Bare {
		return e
	}
	if !e.Builtin {
		for _, c := range e.Causes {
			c.Located(stmt, at)
		}
	}
	if e.Place == nil {
		e.Place = at
	}
	if e.Stmt == "" && stmt != nil {
		e.Stmt, e.StmtAt = stmt.String(), at
	}
	return e
}

// Claimed is Located for a statement that takes the error over from the part of it
// that raised it: the place of the part stays only if it is more exact.
func (e *Error) Claimed(stmt fmt.Stringer, at *Place) *Error {
	if e == nil || e.Builtin || e.Bare {
		return e
	}
	for _, c := range e.Causes {
		c.Claimed(stmt, at)
	}
	if e.Place == nil || e.Stmt != "" && alike(e.Place, e.StmtAt) {
		e.Place = at
	}
	e.Stmt, e.StmtAt = stmt.String(), at
	return e
}

// alike compares places as the reference does: by line where that is all it knows.
func alike(a, b *Place) bool {
	switch {
	case a == b:
		return true
	case a == nil || b == nil || a.Coarse != b.Coarse:
		return false
	case a.Coarse:
		return a.File == b.File && a.Start.Line == b.Start.Line
	}
	return *a == *b
}

// Near sets a place for people in an error that no node reports as its own.
func (e *Error) Near(n Node) *Error {
	if e.Place == nil && e.About == nil {
		e.About = n.Where()
	}
	return e
}

// Drawn is Claimed for a node that reports all errors of its parts as its own.
func (e *Error) Drawn(n Node) *Error {
	if e = e.Claimed(n, n.Where()); e != nil && !e.Builtin && !e.Bare {
		e.Place = n.Where()
	}
	return e
}

func NewError(kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Importance: 10}
}

func RuntimeError(format string, args ...any) *Error {
	return NewError("RuntimeException", format, args...)
}

func TypingError(format string, args ...any) *Error {
	return NewError("TypingException", format, args...)
}

func NotFound(format string, args ...any) *Error {
	return NewError("NotFoundException", format, args...)
}

// Twice sets the places of two definitions that exclude each other.
func (e *Error) Twice(original, duplicate any) *Error {
	e.tail = fmt.Sprintf(" (original at (%s)) (duplicate at (%s))", original, duplicate)
	e.whole = true
	for _, place := range []any{original, duplicate} {
		if at, is := place.(*syntax.Span); is &&
			(e.Place == nil || at.File != e.Place.File || at.Start != e.Place.Start) {
			e.With("the other one is", at)
		}
	}
	return e
}

// Foreign reports whether the error is no CompilerException in the reference.
func (e *Error) Foreign() bool { return e.Builtin }

// Focused sets the place at which people should look.
func (e *Error) Focused(at *Place) *Error {
	if e != nil && e.Focus == nil {
		e.Focus = at
	}
	return e
}

// With adds another place that has to do with the error.
func (e *Error) With(label string, at *Place) *Error {
	if at != nil && at.File != nil && at.Start.Line > 0 {
		e.Related = append(e.Related, related{label, at})
	}
	return e
}

// Hinted sets the hint.
func (e *Error) Hinted(hint string) *Error {
	e.Hint = hint
	return e
}

// Coded sets a code of the error's own.
func (e *Error) Coded(code string) *Error {
	e.code = code
	return e
}

// In sets the node that raised the error.
func (e *Error) In(n Node) *Error { return e.Located(n, n.Where()) }

// Combine makes one error of several, in the order in which the reference prints
// them.
func Combine(errs []*Error) *Error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	sort.SliceStable(errs, func(i, j int) bool {
		a, b := errs[i], errs[j]
		if a.Importance != b.Importance {
			return a.Importance < b.Importance
		}
		if x, y := a.fileOf(), b.fileOf(); x != y {
			return x < y
		}
		return a.lineOf() < b.lineOf()
	})
	return &Error{Kind: "MultiException", Causes: errs, Bare: true}
}

func (e *Error) fileOf() string {
	if e.Place == nil {
		return ""
	}
	return fileOf(e.Place)
}

func (e *Error) lineOf() int32 {
	if e.Place == nil {
		return 0
	}
	return e.Place.Start.Line
}

// Excused returns an error that only follows from another one, so that it is not
// reported.
func Excused() *Error { return &Error{excused: true} }

// TypeError turns the error of a type into an error of the language.
func TypeError(err error) *Error {
	switch err := err.(type) {
	case nil:
		return nil
	case *Error:
		return err
	case types.PythonError:
		return &Error{Kind: err.Class, Message: err.Text, Builtin: true}
	case *types.Mismatch:
		e := RuntimeError("%s", err.Message).Coded(diag.WrongType)
		if err.Typing {
			e.Kind = "TypingException"
		}
		if err.Unexpected {
			e.Kind = "UnexpectedReference"
		}
		if err.Typedef != nil {
			e.Stmt = err.Typedef.Name
			e.Place, _ = err.Typedef.At.(*Place)
		}
		return e
	default:
		return RuntimeError("%s", err)
	}
}
