package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

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

// ModuleCode is the Python side of one module.
type ModuleCode struct {
	Name    string   // top-level name of the module
	Version string   // as the module says; empty when it does not
	Root    string   // folder of the module, which modules[…]._path shows
	Dir     string   // folder of the Python package; empty when there is none
	Files   []string // Python files, absolute
	// Namespaces below the module's own that the model loads: a plug-in of
	// another one is none. Compile and Check see to them.
	Namespaces []string
}

// Loaded is what importing the plug-ins brought.
type Loaded struct {
	Plugins     []*Signature
	Dataclasses []Dataclass
	Warnings    []syntax.Warning
}

// Signature is a plug-in as its Python function declares it.
type Signature struct {
	Name   string // as called: std::template
	Params []Param
	// Return is the declared result; nil when it is not annotated.
	Return       *Annotation
	AllowUnknown bool // called with unknown arguments too
	// Emits: what it gives is thrown away, and a call never has a value: it was
	// meant to give statements, which no plug-in can make.
	Emits   bool
	Context bool // gets a Context, through which it may look at the model
	// ContextKeyword is the name of a Context that only a keyword could give. No
	// model has one to give: upstream such a plug-in cannot be called.
	ContextKeyword string
	// ReplacedBy and Deprecated come from @deprecated.
	Deprecated bool
	ReplacedBy string
	File       string
	Line       int
}

// ParamKind tells how a parameter takes arguments.
type ParamKind string

// Kinds of parameters.
const (
	Positional  ParamKind = "positional" // positional or keyword
	VarArgs     ParamKind = "varargs"    // *args
	KeywordOnly ParamKind = "keyword"
	VarKeywords ParamKind = "varkeywords" // **kwargs
)

// Param is a parameter of a plug-in. The injected Context is not among them.
type Param struct {
	Name       string
	Kind       ParamKind
	Type       *Annotation
	HasDefault bool
}

// Annotation is a Python annotation in a form that needs no Python:
//
//	{dsl "mod::Entity?"} {prim "string"} {list of} {nullable of} {dict of}
//	{union any of} {any} {null} {reference of} {dataclass "mod::Name"}
//
// Text is how the reference prints it in errors.
type Annotation struct {
	Kind string        `json:"k"`
	Name string        `json:"name,omitempty"`
	Of   []*Annotation `json:"of,omitempty"`
	Text string        `json:"text,omitempty"`
	// View: the plug-in wants a view of the instance, also where Python has a dataclass for it.
	View bool `json:"view,omitempty"`
}

// Dataclass is a frozen Python dataclass in a plug-in package: the counterpart
// of an entity that extends std::Dataclass.
type Dataclass struct {
	Name   string // where a module has it, as an entity: mod::Name
	Class  string // where it is defined, in the same form: other modules may have it too
	Fields []DataclassField
	Frozen bool
	Plain  bool // a class that is no dataclass, which an entity's name may want to be one
	File   string
	Line   int
	// Of what a Twins told: the name that it has itself, and its type where it is no class.
	Called, Kind string
}

// Twins is a Host that tells what Python has for an entity that is to be a
// dataclass, where Load told of no class of its name. The namespace has a Python module.
type Twins interface {
	Twin(namespace, name string) (Twin, error)
}

// Twin is what has the name of an entity. All is nil for nothing at all.
type Twin struct {
	Found *Dataclass // something that is no frozen dataclass
	// Refused: it takes no attribute, which upstream gives it as soon as the
	// entity is defined.
	Refused *PluginError
	// Nameless: it has no name of its own, for which upstream asks it to say
	// that it is no dataclass.
	Nameless *PluginError
}

// DataclassField is a field of one.
type DataclassField struct {
	Name    string
	Type    *Annotation
	Default bool
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
type Slot interface{ slot() }

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

// PluginError is an exception that left a plug-in.
type PluginError struct {
	// Kind: "plugin" for PluginException, "compiler" for another compiler
	// exception raised by Python, "exit" for what asks the process to end,
	// "annotation" for an annotation of a plug-in that names no type, where Class
	// is the reference's, "external" for anything else.
	Kind    string
	Class   string // fully qualified Python class
	Message string
	// Line and File are those of the innermost plug-in frame, or of that in the
	// file that is imported; Line 0: none of its lines ran.
	File string
	Line int
	// Unread is where the text of a SyntaxError is wrong.
	Unread *syntax.Span
	Trace  string // the plug-in's frames only
	// At is the place in the model that a compiler exception names itself, Causes
	// are those that it has.
	At     *syntax.Span
	Causes []PluginError
	// Notes are those of the exception (PEP 678): how to mend it.
	Notes string
	// Wrapped is the exception that an ExternalException is about; nil for others.
	Wrapped *PluginError
}

// Last is the last line of what Python would print.
func (e *PluginError) Last() string {
	line := strings.TrimPrefix(e.Class, "builtins.")
	if e.Message != "" {
		line += ": " + e.Message
	}
	return line
}

// Raised is the PluginException that an exception is or wraps, as a compile
// report shows it; nil where there is none.
func (e *PluginError) Raised() *diag.Exception {
	if e.Kind == "plugin" {
		return &diag.Exception{Kind: e.Class, Message: e.Message}
	}
	if e.Wrapped != nil {
		return e.Wrapped.Raised()
	}
	return nil
}
