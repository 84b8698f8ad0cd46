package eval

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
	at    *place
}

// place is where a node stands.
type place = syntax.Span

// short is a place without a column.
func short(p *place) string {
	return fmt.Sprintf("%s:%d", fileOf(p), p.Start.Line)
}

func fileOf(p *place) string {
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
	hint func() string
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

	at *place
	// stmtAt is where Stmt stands: what another statement that takes the error
	// over may replace, as long as at is nothing more exact.
	stmtAt *place
	// by is in whose name it arose: the first link of the chain.
	by Chain
	// code replaces the one of the kind, where that is too wide for people.
	code string
	// topic tells errors at one place apart, repeats counts what is the same.
	topic   string
	repeats int
	also    []*place // where a name that is missing is used too
	// excused is set for what only follows from another error, final for what
	// ends a compile without more to tell.
	excused, final bool
	// Expected and Found say in words what type or token would have been right,
	// and what is there.
	Expected, Found string
	// subject is what package eval knows of an error of assigning, for its data trace.
	subject any
	// focus is nearer to what is wrong than at, for people.
	focus *place
	// related are other places that have a part in it.
	related []related
	// about is a place for readers of an error that has none upstream.
	about *place
	// tail follows the message in the trace: the places of what is there twice.
	tail string
	// bare is set for errors that keep their text free of a place.
	bare bool
	// whole is set when Message names the places already.
	whole bool
	// foreign is set for an error that is no CompilerException upstream.
	foreign bool
}

// Error implements error with the text that is printed for people.
func (e *Error) Error() string { return e.Trace() }

// At gives the place; ok is false when the error has none.
func (e *Error) At() (at syntax.Span, ok bool) {
	if e.at == nil || e.at.File == nil {
		return syntax.Span{}, false
	}
	return *e.at, true
}

// Trace is the whole text of the error, with its causes.
func (e *Error) Trace() string { return strings.TrimRight(e.trace("", "  "), "\n") }

func (e *Error) head() string {
	switch {
	case e.whole:
		return e.Message + e.tail
	case e.Stmt != "" && e.at != nil:
		return fmt.Sprintf("%s (reported in %s (%s))", e.Message, e.Stmt, e.at)
	case e.at != nil && !e.bare:
		return fmt.Sprintf("%s (%s)", e.Message, e.at)
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
func (e *Error) located(stmt fmt.Stringer, at *place) *Error {
	if e == nil {
		return nil
	}
	if e.bare {
		return e
	}
	if !e.foreign {
		for _, c := range e.Causes {
			c.located(stmt, at)
		}
	}
	if e.at == nil {
		e.at = at
	}
	if e.Stmt == "" && stmt != nil {
		e.Stmt, e.stmtAt = stmt.String(), at
	}
	return e
}

// claimed is located for a statement that takes the error over from the part
// of it that raised it: only a place more exact than that part's stays.
func (e *Error) claimed(stmt fmt.Stringer, at *place) *Error {
	if e == nil || e.foreign || e.bare {
		return e
	}
	for _, c := range e.Causes {
		c.claimed(stmt, at)
	}
	if e.at == nil || e.Stmt != "" && alike(e.at, e.stmtAt) {
		e.at = at
	}
	e.Stmt, e.stmtAt = stmt.String(), at
	return e
}

// alike compares places as the reference does: by line where it knows no more.
func alike(a, b *place) bool {
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
func (e *Error) near(n node) *Error {
	if e.at == nil && e.about == nil {
		e.about = n.where()
	}
	return e
}

// drawn is claimed by a node that reports all errors of its parts as its own.
func (e *Error) drawn(n node) *Error {
	if e = e.claimed(n, n.where()); e != nil && !e.foreign && !e.bare {
		e.at = n.where()
	}
	return e
}

func fail(kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Importance: 10}
}

func runtimeError(format string, args ...any) *Error {
	return fail("RuntimeException", format, args...)
}

func typingError(format string, args ...any) *Error {
	return fail("TypingException", format, args...)
}

func notFound(format string, args ...any) *Error {
	return fail("NotFoundException", format, args...)
}

// twice says where both of two that exclude each other stand.
func (e *Error) twice(original, duplicate any) *Error {
	e.tail = fmt.Sprintf(" (original at (%s)) (duplicate at (%s))", original, duplicate)
	e.whole = true
	for _, place := range []any{original, duplicate} {
		if at, is := place.(*syntax.Span); is && (e.at == nil || at.File != e.at.File || at.Start != e.at.Start) {
			e.with("the other one is", at)
		}
	}
	return e
}

// Foreign tells an error that is no CompilerException upstream.
func (e *Error) Foreign() bool { return e.foreign }

// focused says where people should look.
func (e *Error) focused(at *place) *Error {
	if e != nil && e.focus == nil {
		e.focus = at
	}
	return e
}

// with names another place that has a part in it.
func (e *Error) with(label string, at *place) *Error {
	if at != nil && at.File != nil && at.Start.Line > 0 {
		e.related = append(e.related, related{label, at})
	}
	return e
}

// hinted says how to mend it.
func (e *Error) hinted(hint string) *Error {
	e.Hint = hint
	return e
}

// coded gives the error a code of its own.
func (e *Error) coded(code string) *Error {
	e.code = code
	return e
}

// in names the node that raised the error.
func (e *Error) in(n node) *Error { return e.located(n, n.where()) }

// together makes one error of several, in the order that the reference prints.
func together(errs []*Error) *Error {
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
	return &Error{Kind: "MultiException", Causes: errs, bare: true}
}

func (e *Error) fileOf() string {
	if e.at == nil {
		return ""
	}
	return fileOf(e.at)
}

func (e *Error) lineOf() int32 {
	if e.at == nil {
		return 0
	}
	return e.at.Start.Line
}

// excused is an error that only follows from another one.
func excused() *Error { return &Error{excused: true} }

// typeError turns the error of a type into an error of the language.
func typeError(err error) *Error {
	switch err := err.(type) {
	case nil:
		return nil
	case *Error:
		return err
	case types.PythonError:
		return &Error{Kind: err.Class, Message: err.Text, foreign: true}
	case *types.Mismatch:
		e := runtimeError("%s", err.Message).coded(diag.WrongType)
		if err.Typing {
			e.Kind = "TypingException"
		}
		if err.Unexpected {
			e.Kind = "UnexpectedReference"
		}
		if err.Typedef != nil {
			e.Stmt = err.Typedef.Name
			e.at, _ = err.Typedef.At.(*place)
		}
		return e
	default:
		return runtimeError("%s", err)
	}
}
