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
	// Emits is set by emits_statements=True: the plug-in was meant to return
	// statements, which no plug-in can make. Its result is thrown away, and the call
	// never has a value.
	Emits   bool
	Context bool // gets a Context, through which it may read the model
	// ContextKeyword is the name of a Context that only a keyword could pass. No
	// model has one, so that the reference cannot call such a plug-in.
	ContextKeyword string
	// ReplacedBy and Deprecated come from @deprecated.
	Deprecated bool
	ReplacedBy string
	File       string
	Line       int
}

// ParamKind says which arguments a parameter takes.
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
	// View means that the plug-in wants a view of the instance, even where Python
	// has a dataclass for it.
	View bool `json:"view,omitempty"`
}

// Dataclass is a frozen Python dataclass in a plug-in package: the counterpart
// of an entity that extends std::Dataclass.
type Dataclass struct {
	Name   string // the name in its module, as that of an entity: mod::Name
	Class  string // the name where it is defined, in the same form: several modules may have it
	Fields []DataclassField
	Frozen bool
	Plain  bool // an ordinary class with the name of an entity that needs a dataclass
	File   string
	Line   int
	// Called is the object's own name, and Kind its type where it is no class. Only
	// Twins sets them.
	Called, Kind string
}

// Twins is implemented by a Host that can look up what Python has under the name of
// an entity that extends std::Dataclass, where Load reported no class of that name.
// The namespace has a Python module.
type Twins interface {
	Twin(namespace, name string) (Twin, error)
}

// Twin is what Python has under the name of an entity. All fields are nil when there
// is nothing.
type Twin struct {
	Found *Dataclass // something other than a frozen dataclass
	// Refused is set when the object takes no attribute: the reference sets one as
	// soon as the entity is defined.
	Refused *PluginError
	// Nameless is set when the object has no name of its own, which the reference
	// needs to say that it is no dataclass.
	Nameless *PluginError
}

// DataclassField is a field of a dataclass.
type DataclassField struct {
	Name    string
	Type    *Annotation
	Default bool
}

// span is the line of `def`, which follows the decorator.
func (s *Signature) span() syntax.Span {
	line := syntax.Pos{Line: int32(s.Line) + 1, Col: 1}
	return syntax.Span{File: &syntax.File{Path: s.File}, Start: line, End: line, Coarse: true}
}

// signatureText shows how a plug-in is called.
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
