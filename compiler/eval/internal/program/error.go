package program

import (
	"fmt"
	"sort"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// related is a place with what it has to do with an error.
type related struct {
	label string
	at    *Place
}

// place is where a node stands.
type Place = syntax.Span

// short is a place without a column.
func Short(p *Place) string {
	return fmt.Sprintf("%s:%d", fileOf(p), p.Start.Line)
}

func fileOf(p *Place) string {
	if p == nil || p.File == nil {
		return "internal"
	}
	return p.File.Path
}

// Chain is the way on which a compile came to an error.
type Chain interface{ Steps() []diag.Step }

// Error is an error of the model: what the reference calls a CompilerException.
type Error struct {
	// Kind is the reference's class without its module: DoubleSetException.
	Kind    string
	Message string
	// Stmt is the text of the statement that raised it, where there is one.
	Stmt   string
	Causes []*Error
	// Hint says how to mend it, where more can be said than the message does.
	Hint string
	// hint makes Hint, where that takes work and most likely is never needed.
	MakeHint func() string
	// Importance orders the errors of a MultiException: lower comes first.
	Importance int

	// Raised is the PluginException that a plug-in raised; nil for other errors.
	Raised *diag.Exception

	// File, Line and PythonTrace tell where a plug-in raised it.
	File         string
	Line, Column int
	PythonTrace  string
	// nowhere: the annotation of a plug-in is at fault, and upstream names no place.
	nowhere bool

	Place *Place
	// stmtAt is where Stmt stands: what another statement that takes the error
	// over may replace, as long as at is nothing more exact.
	StmtAt *Place
	// by is in whose name it arose: the first link of the chain.
	By Chain
	// code replaces the one of the kind, where that is too wide for people.
	code string
	// topic tells errors at one place apart, repeats counts what is the same.
	Topic   string
	repeats int
	also    []*Place // where a name that is missing is used too
	// excused is set for what only follows from another error, final for what
	// ends a compile without more to tell.
	excused, Final bool
	// Expected and Found say in words what type or token would have been right,
	// and what is there.
	Expected, Found string
	// subject is what package eval knows of an error of assigning, for its data trace.
	Subject any
	// focus is nearer to what is wrong than at, for people.
	Focus *Place
	// related are other places that have a part in it.
	Related []related
	// about is a place for readers of an error that has none upstream.
	About *Place
	// tail follows the message in the trace: the places of what is there twice.
	tail string
	// bare is set for errors that keep their text free of a place.
	Bare bool
	// whole is set when Message names the places already.
	whole bool
	// foreign is set for an error that is no CompilerException upstream.
	Builtin bool
}

// Error implements error with the text that is printed for people.
func (e *Error) Error() string { return e.Trace() }

// At gives the place; ok is false when the error has none.
func (e *Error) At() (at syntax.Span, ok bool) {
	if e.Place == nil || e.Place.File == nil {
		return syntax.Span{}, false
	}
	return *e.Place, true
}

// Trace is the whole text of the error, with its causes.
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

// located fills in where the error arose, unless it knows already.
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

// claimed is located for a statement that takes the error over from the part
// of it that raised it: only a place more exact than that part's stays.
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

// alike compares places as the reference does: by line where it knows no more.
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

// near is a place for readers of an error that nobody reports as its own.
func (e *Error) Near(n Node) *Error {
	if e.Place == nil && e.About == nil {
		e.About = n.Where()
	}
	return e
}

// drawn is claimed by a node that reports all errors of its parts as its own.
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

// twice says where both of two that exclude each other stand.
func (e *Error) Twice(original, duplicate any) *Error {
	e.tail = fmt.Sprintf(" (original at (%s)) (duplicate at (%s))", original, duplicate)
	e.whole = true
	for _, place := range []any{original, duplicate} {
		if at, is := place.(*syntax.Span); is && (e.Place == nil || at.File != e.Place.File || at.Start != e.Place.Start) {
			e.With("the other one is", at)
		}
	}
	return e
}

// Foreign tells an error that is no CompilerException upstream.
func (e *Error) Foreign() bool { return e.Builtin }

// focused says where people should look.
func (e *Error) Focused(at *Place) *Error {
	if e != nil && e.Focus == nil {
		e.Focus = at
	}
	return e
}

// with names another place that has a part in it.
func (e *Error) With(label string, at *Place) *Error {
	if at != nil && at.File != nil && at.Start.Line > 0 {
		e.Related = append(e.Related, related{label, at})
	}
	return e
}

// hinted says how to mend it.
func (e *Error) Hinted(hint string) *Error {
	e.Hint = hint
	return e
}

// coded gives the error a code of its own.
func (e *Error) Coded(code string) *Error {
	e.code = code
	return e
}

// in names the node that raised the error.
func (e *Error) In(n Node) *Error { return e.Located(n, n.Where()) }

// together makes one error of several, in the order that the reference prints.
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

// excused is an error that only follows from another one.
func Excused() *Error { return &Error{excused: true} }

// typeError turns the error of a type into an error of the language.
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
