// Package fault describes errors for the people who run the server: the operation
// that failed, the kind of error, what to do about it, and the cause. Errors in a
// model, which are for its author, are in package diag.
//
//	return fault.Wrap("gitsync.Fetch", fault.Unauthorized, err).
//		Hint("set the environment's Git credentials: ordain environment credentials …")
//
// A fault never contains secrets: callers redact addresses and arguments first.
package fault

import (
	"errors"
	"strings"
)

// Kind is the class of a fault. It determines the status code of the API, the
// sentence that the console shows, and whether the compile loop tries again.
type Kind string

// The kinds of faults, with their status codes.
const (
	Invalid      Kind = "invalid"      // the request or the configuration is wrong: 400
	Unauthorized Kind = "unauthorized" // credentials are missing or were refused: 401
	Forbidden    Kind = "forbidden"    // the caller is known but not allowed: 403
	NotFound     Kind = "not found"    // 404
	Conflict     Kind = "conflict"     // not possible in the present state: 409
	TooMany      Kind = "too many"     // the caller has to wait: 429
	Unavailable  Kind = "unavailable"  // something we depend on cannot be reached, and another try may succeed: 503
	Exhausted    Kind = "exhausted"    // disk, memory, time or another limit: 503
	Internal     Kind = "internal"     // a bug: 500
)

// Error is a fault. Build it with New or Wrap.
type Error struct {
	Op      string // package.Operation, for logs
	Kind    Kind
	Message string // what happened, for a person; may be empty if Err says it
	Advice  string // what to do about it
	Err     error
}

// New makes a fault without a cause.
func New(op string, kind Kind, message string) *Error {
	return &Error{Op: op, Kind: kind, Message: message}
}

// Wrap makes a fault from its cause, which must not be nil.
func Wrap(op string, kind Kind, err error) *Error {
	return &Error{Op: op, Kind: kind, Err: err}
}

// Say sets the message.
func (e *Error) Say(message string) *Error { e.Message = message; return e }

// Hint sets the advice.
func (e *Error) Hint(advice string) *Error { e.Advice = advice; return e }

// Error returns "message: cause; advice".
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost fault in a chain, or Internal if there is none.
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
