// Package fault is how the operational parts say that something went wrong:
// what was being done, what kind of trouble it was, what to do about it, and
// the cause. It speaks to the people who run the server; what is wrong with a
// model is said by package diag.
//
//	return fault.Wrap("gitsync.Fetch", fault.Unauthorized, err).
//		Hint("set the environment's Git credentials: ordain environment credentials …")
//
// A fault never holds a secret: callers redact URLs and arguments first.
package fault

import (
	"errors"
	"strings"
)

// Kind is the class of a fault. The API maps it to a status code, the console
// to a sentence, the compile loop to whether it is worth another try.
type Kind string

// Kinds of faults.
const (
	Invalid      Kind = "invalid"      // the request or the configuration is wrong: 400
	Unauthorized Kind = "unauthorized" // credentials missing or refused: 401
	Forbidden    Kind = "forbidden"    // known, but not allowed: 403
	NotFound     Kind = "not found"    // 404
	Conflict     Kind = "conflict"     // not in this state: 409
	Unavailable  Kind = "unavailable"  // something we depend on is away; another try may succeed: 503
	Exhausted    Kind = "exhausted"    // disk, memory, time or another limit: 503
	Internal     Kind = "internal"     // our mistake: 500
)

// Error is a fault. Build it with New or Wrap.
type Error struct {
	Op      string // package.Operation, for logs
	Kind    Kind
	Message string // what happened, for a person; may be empty when Err says it
	Advice  string // what to do about it
	Err     error
}

// New makes a fault that has no cause.
func New(op string, kind Kind, message string) *Error {
	return &Error{Op: op, Kind: kind, Message: message}
}

// Wrap makes a fault from its cause; nil stays nil only at the caller's hand:
// do not pass a nil error.
func Wrap(op string, kind Kind, err error) *Error {
	return &Error{Op: op, Kind: kind, Err: err}
}

// Say sets the sentence that tells a person what happened.
func (e *Error) Say(message string) *Error { e.Message = message; return e }

// Hint sets what to do about it.
func (e *Error) Hint(advice string) *Error { e.Advice = advice; return e }

// Error gives "message: cause; advice".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	if e.Err != nil {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(e.Err.Error())
	}
	if b.Len() == 0 {
		b.WriteString(string(e.Kind))
	}
	if e.Advice != "" {
		b.WriteString("; ")
		b.WriteString(e.Advice)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf finds the kind of the outermost fault in a chain; Internal when there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is a fault of this kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}
