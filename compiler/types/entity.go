package types

import (
	"slices"
	"strings"
	"sync/atomic"

	"ordain.dev/ordain/compiler/syntax"
)

// Entity is the type of instances: a name with attributes, relations, parents,
// indexes and implementations. The definition phase of package eval fills it in.
type Entity struct {
	Name    string // fully qualified, such as std::Host
	Doc     string
	At      syntax.Span // the place of its name; none
	Number  int         // from 0, in order of definition
	Parents []*Entity
	// Attributes are all attributes and relations, inherited ones first. An instance
	// has a slot for each, at the same position.
	Attributes []*Attribute
	// Indexes are the indexes, inherited ones included.
	Indexes []*Index
	// Source is its definition; nil for std::Entity, which no file defines.
	Source *syntax.Entity
	// Twin are the fields of the Python dataclass that the entity is paired with.
	Twin []Field

	own       []*Attribute
	slots     map[string]int
	ancestors atomic.Pointer[map[*Entity]bool] // with itself; computed when
	children  []*Entity
}

// Implementation is a named body of statements for an entity.
type Implementation struct {
	Name string // fully qualified
	Doc  string
	At   *syntax.Span // its name, where it is defined
	For  *Entity
}

// Field is a field of a Python dataclass; a nil type is any.
type Field struct {
	Name string
	Type Type
}

// Attribute is an attribute of an entity, or one end of a relation.
type Attribute struct {
	Name   string
	Type   Type
	Entity *Entity // where it is declared
	Doc    string
	At     syntax.Span // its name, where it is declared
	// End is set for relations.
	End *End

	position int // in its own entity, and usually
}

// Gathers reports whether the attribute takes its value by being frozen: a relation
// other than [1].
func (a *Attribute) Gathers() bool { return a.End != nil && (a.End.Low != 1 || a.End.High != 1) }

// End is what a relation has besides an attribute.
type End struct {
	Target *Entity
	// Low and High are the multiplicity; High may be syntax.Unlimited.
	Low, High int
	// Inverse is the other end; nil for a relation in one direction.
	Inverse *Attribute
	// Precedence is the place in the relation precedence policy; 0: in none.
	Precedence int
	// Leads is set when the policy has another relation completed after this one.
	Leads bool
}

// Multi reports whether the end is a list.
func (e *End) Multi() bool { return e.High != 1 }

// Optional reports whether the end has at most one instance and may have none.
func (e *End) Optional() bool { return e.High == 1 && e.Low == 0 }

// Index is a set of attributes whose values identify an instance.
type Index struct {
	// Twice is an attribute that the index names twice, which makes it useless.
	Twice      string
	Entity     *Entity // where it is declared
	Attributes []string
	At         syntax.Span // of its statement
}

// Matches reports whether the index has exactly these attributes.
func (x *Index) Matches(names []string) bool {
	if len(names) != len(x.Attributes) {
		return false
	}
	for _, name := range names {
		found := false
		for _, have := range x.Attributes {
			found = found || have == name
		}
		if !found {
			return false
		}
	}
	return true
}

// Short returns the name without its namespace.
func (e *Entity) Short() string {
	if i := strings.LastIndex(e.Name, "::"); i >= 0 {
		return e.Name[i+2:]
	}
	return e.Name
}

// Lay sets the attributes of an entity whose parents are laid out already: the
// inherited ones, those of ancestors before those of their descendants and those of
// the last parent first, and then its own. An attribute that comes again replaces
// the one before. Lay may be called again when there are more.
func (e *Entity) Lay(own []*Attribute) {
	if e.slots == nil {
		for _, parent := range e.Parents {
			parent.children = append(parent.children, e)
		}
	}
	e.slots, e.own = map[string]int{}, own
	e.Attributes = nil
	if len(e.Parents) == 1 { // the same as the loop below, in time
		e.lay(e.Parents[0].Attributes)
	} else {
		for _, up := range e.Downwards() {
			if up != e {
				e.lay(up.own)
			}
		}
	}
	e.lay(own)
	for _, a := range own {
		a.position = e.slots[a.Name]
	}
}

func (e *Entity) lay(attributes []*Attribute) {
	for _, a := range attributes {
		if i, have := e.slots[a.Name]; have {
			e.Attributes[i] = a
			continue
		}
		e.slots[a.Name] = len(e.Attributes)
		e.Attributes = append(e.Attributes, a)
	}
}

// Downwards returns an entity and all entities above it, each once and after its
// parents, of which the first comes last: a later one takes precedence (LANGUAGE.md
// section 4).
func (e *Entity) Downwards() []*Entity {
	var list []*Entity
	seen := map[*Entity]bool{}
	var walk func(*Entity)
	walk = func(e *Entity) {
		if seen[e] {
			return
		}
		seen[e] = true
		for _, parent := range slices.Backward(e.Parents) {
			walk(parent)
		}
		list = append(list, e)
	}
	walk(e)
	return list
}

// Indexed reports whether an index has an attribute of that name.
func (e *Entity) Indexed(name string) bool {
	for _, index := range e.Indexes {
		if slices.Contains(index.Attributes, name) {
			return true
		}
	}
	return false
}

// SlotOf is Slot for the name of an attribute of this entity or one above it.
func (e *Entity) SlotOf(a *Attribute) int {
	if a.position < len(e.Attributes) && e.Attributes[a.position] == a {
		return a.position
	}
	return e.Slot(a.Name)
}

// Slot returns the position of an attribute in Attributes, or -1.
func (e *Entity) Slot(name string) int {
	if i, ok := e.slots[name]; ok {
		return i
	}
	return -1
}

// Attribute finds an attribute or relation by name; nil when there is none.
func (e *Entity) Attribute(name string) *Attribute {
	if i, ok := e.slots[name]; ok {
		return e.Attributes[i]
	}
	return nil
}

// IsSubclassOf reports whether e is other or one of its descendants.
//
// Most entities have one parent and few ancestors, so that walking up is faster than
// a table for each, which would also grow with the square of the depth.
func (e *Entity) IsSubclassOf(other *Entity) bool {
	for len(e.Parents) == 1 {
		if e == other {
			return true
		}
		e = e.Parents[0]
	}
	return e == other || len(e.Parents) > 0 && e.above()[other]
}

// above returns an entity with several parents, and all its ancestors.
func (e *Entity) above() map[*Entity]bool {
	if known := e.ancestors.Load(); known != nil {
		return *known
	}
	found := map[*Entity]bool{}
	for next := []*Entity{e}; len(next) > 0; {
		last := next[len(next)-1]
		next = next[:len(next)-1]
		if !found[last] {
			found[last] = true
			next = append(next, last.Parents...)
		}
	}
	e.ancestors.Store(&found)
	return found
}

// Children returns the direct descendants in order of definition.
func (e *Entity) Children() []*Entity { return e.children }

// String returns the full name.
func (e *Entity) String() string { return e.Name }
