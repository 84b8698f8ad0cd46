package eval

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// origin says in whose name statements run: an implementation of an instance.
// It is nil at module level.
type origin struct {
	instance *Instance
	impl     *implementation
	selected *implement // the statement that chose impl
	depth    int32      // how many implementations stand above, this one included
	number   number     // in the book
}

func (o *origin) deep() int32 {
	if o == nil {
		return 0
	}
	return o.depth
}

// Instance is an instance of an entity.
type Instance struct {
	types.IsValue
	slots  []variable
	entity *types.Entity
	made   *origin
	id     uint64
	own    *variable // see self
	at     *place
	book   *book
	impls  []*implementation
	rare   *rareOfInstance
}

// rareOfInstance is what few of them have.
type rareOfInstance struct {
	// converted: at is the call of the plug-in that returned the object.
	converted bool
	// again are the constructor calls that found the instance in an index.
	again []*place
	// object is the handle of the object that a plug-in returned; 0: there is none.
	object uint64
	// reference is set where the instance stands for a reference to a dataclass.
	reference *types.Reference
}

func (i *Instance) rarely() *rareOfInstance {
	if i.rare == nil {
		i.rare = &rareOfInstance{}
	}
	return i.rare
}

// lastAt is the constructor call that made the instance, or found it last.
func (i *Instance) lastAt() *place {
	if i.rare == nil || len(i.rare.again) == 0 {
		return i.at
	}
	return i.rare.again[len(i.rare.again)-1]
}

// self is the variable of that name. Most instances need none.
func (i *Instance) self() *variable {
	if i.own == nil {
		i.own = &variable{value: i, has: true, owner: i}
	}
	return i.own
}

// StandsFor implements types.Stand.
func (i *Instance) StandsFor() *types.Reference {
	if i.rare == nil {
		return nil
	}
	return i.rare.reference
}

// MadeOf implements types.Stand.
func (i *Instance) MadeOf() uint64 {
	switch {
	case i.rare == nil:
		return 0
	case i.rare.reference != nil:
		return i.rare.reference.Handle
	}
	return i.rare.object
}

// Field implements types.Stand.
func (i *Instance) Field(name string) (types.Value, bool) {
	if v := i.kept(name); v != nil {
		return v.peek()
	}
	return i, name == "self"
}

// kept is variable for who only reads, which several may do at once: it gives
// nil for a self that was not needed so far.
func (i *Instance) kept(name string) *variable {
	if name == "self" {
		return i.own
	}
	return i.variable(name)
}

// InstanceID implements types.Instance.
func (i *Instance) InstanceID() uint64 { return i.id }

// Entity implements types.Instance.
func (i *Instance) Entity() *types.Entity { return i.entity }

// At gives the place where the instance was made.
func (i *Instance) At() syntax.Span { return *i.at }

// Text is the long form: the type and where the instance was made.
func (i *Instance) Text() string {
	made := i.Made()
	places := make([]string, len(made))
	for n, at := range made {
		places[n] = short(at)
	}
	if i.rare != nil && i.rare.converted {
		places[0] = i.at.String()
	}
	return fmt.Sprintf("%s (instantiated at %s)", i.entity.Name, strings.Join(places, ","))
}

// ReprText is the short form inside lists.
func (i *Instance) ReprText() string {
	return fmt.Sprintf("%s %02x", i.entity.Name, i.id)
}

// String is Text.
func (i *Instance) String() string { return i.Text() }

func (i *Instance) variable(name string) *variable {
	if name == "self" {
		return i.self()
	}
	if n := i.entity.Slot(name); n >= 0 {
		return &i.slots[n]
	}
	return nil
}

// slotNumber is the position of an attribute in slots; -1 for self, which
// stands beside them.
func slotNumber(e *types.Entity, name string) int32 {
	if name == "self" {
		return -1
	}
	return int32(e.Slot(name))
}

func (i *Instance) slot(number int32) *variable {
	if number < 0 {
		return i.self()
	}
	return &i.slots[number]
}

// end is the variable of a relation's end.
func (i *Instance) end(a *types.Attribute) *variable {
	if a.Name == "self" {
		return i.self()
	}
	return &i.slots[i.entity.SlotOf(a)]
}

// Value reads an attribute: ok is false when it has no value. An optional
// relation that is empty gives null.
func (i *Instance) Value(attribute *types.Attribute) (v types.Value, ok bool) {
	return i.Field(attribute.Name)
}

// ValueAt is Value for the attribute at a position of Entity().Attributes.
func (i *Instance) ValueAt(position int) (v types.Value, ok bool) { return i.slots[position].peek() }
