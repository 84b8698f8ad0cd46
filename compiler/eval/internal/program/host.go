package program

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// BatchHost is a Host that can run several calls in one message, because crossing to
// Python and back takes longer than most plug-ins run.
//
//	queue:  … call A │ x │ call B │ y │ call C (gets a Context) …
//	A's turn: post A, B ─▶ the outcome of A; B's turn: its outcome, which is there already
//
// Only calls that cannot notice the difference are posted. Their arguments are
// known, are plain values and make no instance; they get no Context. They run in the
// order of their turns, and none before an earlier call that is not posted or that a
// typedef makes. When one fails, or does not return what it declares, those after it
// do not run. When the model itself turns out to be wrong between two turns, the
// second call may have run: its result and its output are not used.
type BatchHost interface {
	// Post runs calls in their order; Next returns their outcomes one by one. Post
	// reports false when it did nothing, and the calls are then made as usual.
	Post(calls []PluginCall, heaps []Heap) bool
	Next() Outcome
}

// Host is how the compiler reaches Python. Package plugin implements it with a
// worker process, tests with Go functions. All calls come from one goroutine.
type Host interface {
	// Load imports every Python file of the modules' plug-in folders, in the given
	// order, and returns what it found. It is called once.
	Load(modules []ModuleCode) (*Loaded, error)

	// Call runs a plug-in. While the plug-in runs, the host asks heap for what it
	// reads. When it reads something that has no value yet, Outcome.Unset names
	// that, and the call is repeated once it has a value.
	Call(call PluginCall, heap Heap) Outcome

	// Finalize runs the finalizers after a compile, even a failed one. They may read
	// the model through heap, which is nil when nothing ran.
	Finalize(heap Heap) error
}

// Loaded is the result of importing the plug-ins.
type Loaded struct {
	Plugins     []*Signature
	Dataclasses []Dataclass
	Warnings    []syntax.Warning
}

// PluginCall is one call, with checked arguments that are bound to the parameters.
type PluginCall struct {
	Plugin *Signature
	Args   []types.Value
	Named  []NamedValue // in the order in which they are given, which **kwargs shows
	// Namespace is that of the call, which Context.owner shows.
	Namespace string
	At        syntax.Span
	// Direct is set in the condition of a typedef, where nothing can be made that
	// belongs to the model.
	Direct bool
}

// NamedValue is a keyword argument.
type NamedValue struct {
	Name  string
	Value types.Value
}

// Heap is what Python may read of the model while a call runs. Values come back as
// they are: the host asks again for the attributes of an instance.
type Heap interface {
	// Attribute reads an attribute or relation of an instance, without waiting: a
	// slot without a value, or a list that is not frozen, is Unset.
	Attribute(of types.Instance, name string) Read
	// Variable reads a variable or attribute by name in the scope of the call, as
	// the resolver of templates does.
	Variable(name string) Read
	// Instances lists the instances of a type that exist now
	// (Context.get_type().get_all_instances).
	Instances(entity string) []types.Instance
	// Type finds an entity, typedef or primitive by its full name; nil when there is
	// none.
	Type(name string) any
}

// ReadState is the outcome of a read.
type ReadState uint8

// States of a read.
const (
	Known    ReadState = iota
	Unset              // no value yet: Slot is where to wait for it
	Missing            // there is no such attribute or variable
	Optional           // an optional relation or attribute without value: OptionalValueException
)

// Read is the result of reading one slot.
type Read struct {
	State ReadState
	Value types.Value
	Slot  Slot
}

// Slot is a place that will have a value. It means nothing to the host.
type Slot interface{ IsSlot() }

// Outcome is how a call of a plug-in ended. Exactly one of Value, Unset and Err is
// set.
type Outcome struct {
	Value types.Value
	Unset []Slot
	Err   *PluginError
	// Output is what the call printed.
	Output []string
	// Deprecated are warnings about deprecated plug-ins that Python code called.
	Deprecated []string
	// Checked means that the value is taken as it is, whatever the plug-in declares.
	Checked bool
}

// printer is a host that collects what is printed outside of calls.
type printer interface{ TakeOutput() []string }

func TakeOutput(h Host) []string {
	if p, ok := h.(printer); ok {
		return p.TakeOutput()
	}
	return nil
}
