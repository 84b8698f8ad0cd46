package eval

import "ordain.dev/ordain/compiler/eval/internal/program"

// source is where a value, or an element of a list, comes from.
type source struct {
	at *program.Place // where inmanta-core locates it
	// expr is the right side of the statement that gave an element, where the
	// element itself was written somewhere else: `a.l = b.l`.
	expr    *program.Place
	by      *origin
	implied bool // the other end of the relation was set
	// reread is set for an element on its way from another list that had it before
	// it was read: at is where the list is read, and expr where it got the element.
	reread bool
}

// addedAt is where an element was added that another list had before it was
// read; nil for other elements.
func (s source) addedAt() *program.Place {
	if s.reread {
		return s.expr
	}
	return nil
}

// kept is the source that a list keeps of an element: located where the element
// was added first.
func (s source) kept() source {
	if s.reread {
		s.at, s.expr, s.reread = s.expr, s.at, false
	}
	return s
}
