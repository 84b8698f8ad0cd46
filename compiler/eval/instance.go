package eval

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// origin is an implementation that runs for an instance. It is nil at module
// level.
type origin struct {
	instance *Instance
	impl     *program.Implementation
	selected *program.Implement // the statement that chose impl
	depth    int                // how many implementations stand above, this one included
}

func (o *origin) level() int {
	if o == nil {
		return 0
	}
	return o.depth
}

// Instance is an instance of an entity.
type Instance struct {
	types.IsValue
	entity *types.Entity
	id     uint64
	slots  []variable     // one for each of entity.Attributes
	self   variable       // the variable of that name
	at     *program.Place // the constructor call that made it
	made   *origin        // what that call ran for
	impls  []*program.Implementation
	// found are the constructor calls that found the instance in an index.
	found []*program.Place
	// converted is set where a plug-in returned an object that stands for the
	// instance: at is the call of the plug-in then, and object the handle of the object.
	converted bool
	object    uint64
	// reference is set where the instance stands for a reference to a dataclass.
	reference *types.Reference
}

// lastAt is the constructor call that made the instance, or found it last.
func (i *Instance) lastAt() *program.Place {
	if len(i.found) == 0 {
		return i.at
	}
	return i.found[len(i.found)-1]
}

// StandsFor implements types.Stand.
func (i *Instance) StandsFor() *types.Reference { return i.reference }

// MadeOf implements types.Stand.
func (i *Instance) MadeOf() uint64 {
	if i.reference != nil {
		return i.reference.Handle
	}
	return i.object
}

// Field implements types.Stand.
func (i *Instance) Field(name string) (types.Value, bool) {
	if v := i.variable(name); v != nil {
		return v.peek()
	}
	return nil, false
}

// InstanceID implements types.Instance.
func (i *Instance) InstanceID() uint64 { return i.id }

// Entity implements types.Instance.
func (i *Instance) Entity() *types.Entity { return i.entity }

// At is the place of the constructor call that made the instance.
func (i *Instance) At() syntax.Span { return *i.at }

// Text is the long form: the type and where the instance was made.
func (i *Instance) Text() string {
	made := i.Made()
	places := make([]string, len(made))
	for n, at := range made {
		places[n] = program.Short(at)
	}
	if i.converted {
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
		return &i.self
	}
	if n := i.entity.Slot(name); n >= 0 {
		return &i.slots[n]
	}
	return nil
}

func (i *Instance) slot(number int) *variable {
	if number < 0 {
		return &i.self
	}
	return &i.slots[number]
}

// end is the variable of one end of a relation.
func (i *Instance) end(a *types.Attribute) *variable {
	if a.Name == "self" {
		return &i.self
	}
	return &i.slots[i.entity.SlotOf(a)]
}

// Value returns the value of an attribute, if it has one. An optional relation
// that is empty has the value null.
func (i *Instance) Value(attribute *types.Attribute) (v types.Value, ok bool) {
	return i.Field(attribute.Name)
}

// ValueAt is Value for the attribute at a position of Entity().Attributes.
func (i *Instance) ValueAt(position int) (v types.Value, ok bool) { return i.slots[position].peek() }
