package program

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// Ahead is a host that can be told of several calls at once: to cross to
// Python and back takes longer than most plug-ins run.
//
//	queue:  … call A │ x │ call B │ y │ call C (gets a Context) …
//	A's turn: post A, B ─▶ the outcome of A; B's turn: its outcome, which is there already
//
// Only calls that cannot tell the difference are posted: their arguments are
// known and plain and make no instance, they get no Context, and they run in the order of their
// turns, none before an earlier call that is not posted or that a typedef makes. When one fails, or
// does not give what it declares, those behind it do not run. Where the model
// itself turns out to be wrong between two turns the second call may have run:
// nothing that it gave or printed is used.
type Ahead interface {
	// Post has calls run, in their order; Next gives their outcomes, one by one.
	// It reports false when it did not: then they are called as usual.
	Post(calls []PluginCall, heaps []Heap) bool
	Next() Outcome
}

// Host is how the engine reaches Python: package plugin implements it with a
// worker process, tests with Go functions. All calls come from one goroutine.
type Host interface {
	// Load imports every Python file of the modules' plug-in folders, in the
	// given order, and tells what it found. It is called once.
	Load(modules []ModuleCode) (*Loaded, error)

	// Call runs a plug-in. While it runs, the host asks heap for what the
	// plug-in reads. When the plug-in read something that has no value yet,
	// Outcome.Unset names it and the engine repeats the call once it has one.
	Call(call PluginCall, heap Heap) Outcome

	// Finalize runs the finalizers, after a compile, failed or not. They may ask
	// heap for what they read of the model; it is nil when nothing ran.
	Finalize(heap Heap) error
}

// Loaded is what importing the plug-ins brought.
type Loaded struct {
	Plugins     []*Signature
	Dataclasses []Dataclass
	Warnings    []syntax.Warning
}

// PluginCall is one call, arguments checked and bound by the engine.
type PluginCall struct {
	Plugin *Signature
	Args   []types.Value
	Named  []NamedValue // in the order in which they are given, which **kwargs shows
	// Namespace is where the call stands, which Context.owner shows.
	Namespace string
	At        syntax.Span
	// Direct: it is part of the condition of a typedef, where nothing can be made
	// that belongs to the model.
	Direct bool
}

// NamedValue is a keyword argument.
type NamedValue struct {
	Name  string
	Value types.Value
}

// Heap is what Python may ask of the engine while a call runs. Values come
// back as they are: an instance is asked again for its attributes.
type Heap interface {
	// Attribute reads an attribute or relation of an instance. Reading waits
	// for nothing: a slot without a value gives Unset, a list that is not
	// frozen too.
	Attribute(of types.Instance, name string) Read
	// Variable reads a variable or attribute by name as the template's
	// resolver does: in the scope of the call.
	Variable(name string) Read
	// Instances lists what exists of a type now (Context.get_type().get_all_instances).
	Instances(entity string) []types.Instance
	// Type finds an entity, typedef or primitive by full name; nil if there is none.
	Type(name string) any
}

// ReadState says how a read went.
type ReadState uint8

// States of a read.
const (
	Known    ReadState = iota
	Unset              // no value yet: Slot tells where to wait
	Missing            // there is no such attribute or variable
	Optional           // an optional relation or attribute without value: OptionalValueException
)

// Read is the outcome of reading one slot.
type Read struct {
	State ReadState
	Value types.Value
	Slot  Slot
}

// Slot is a place that will have a value; opaque to the host.
type Slot interface{ IsSlot() }

// Outcome is how a plug-in call ended. Exactly one of Value, Unset and Err is set.
type Outcome struct {
	Value types.Value
	Unset []Slot
	Err   *PluginError
	// Output is what the call printed.
	Output []string
	// Deprecated are warnings of deprecated plug-ins that Python code called.
	Deprecated []string
	// Checked: the value is taken as it is, whatever the plug-in declares.
	Checked bool
}

// printer is a host that keeps what is printed outside of calls.
type printer interface{ TakeOutput() []string }

func TakeOutput(h Host) []string {
	if p, ok := h.(printer); ok {
		return p.TakeOutput()
	}
	return nil
}
