package program

import (
	"strings"

	"ordain.dev/ordain/compiler/syntax"
)

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

// span is the line of `def`, after the decorator.
func (s *Signature) span() syntax.Span {
	line := syntax.Pos{Line: int32(s.Line) + 1, Col: 1}
	return syntax.Span{File: &syntax.File{Path: s.File}, Start: line, End: line, Coarse: true}
}

// signatureText is how a plug-in is called.
func signatureText(sig *Signature) string {
	params := make([]string, 0, len(sig.Params))
	for _, p := range sig.Params {
		text := p.Name
		switch p.Kind {
		case VarArgs:
			text = "*" + text
		case VarKeywords:
			text = "**" + text
		}
		if p.Type != nil && (p.Type.Text != "" || p.Type.Name != "") {
			text += ": " + strings.Trim(first(p.Type.Text, p.Type.Name), "'\"")
		}
		if p.HasDefault {
			text += " = …"
		}
		params = append(params, text)
	}
	return sig.Name + "(" + strings.Join(params, ", ") + ")"
}
