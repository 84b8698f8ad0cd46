package eval

// source is where a value comes from.
type source struct {
	at *place // where inmanta-core locates it
	// expr is the right side of the statement that gave an element, where the
	// element itself was written somewhere else: `a.l = b.l`.
	expr *place
	// added is set for an element on its way from another list, which had it
	// before it was read: it was added to that list there, and at is where the list
	// is read.
	added   *place
	by      *origin
	implied bool // the other end of the relation was set
}

// kept is the source of an element as its list keeps it: located where the element
// was added first.
func (s source) kept() source {
	if s.added != nil {
		s.at, s.expr, s.added = s.added, s.at, nil
	}
	return s
}
