package plugin

import (
	"bytes"
	"encoding/json"
	"strings"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// expression describes an expression of the model to Python code that examines it.
type expression struct {
	Class  string          `json:"class"` // the reference's class of such nodes
	Text   string          `json:"text"`
	Source string          `json:"source,omitempty"` // as it is written, if that differs
	At     []any           `json:"at"`               // file and line, and the columns if the reference has them
	Name   string          `json:"name,omitempty"`   // of a variable or attribute
	Value  json.RawMessage `json:"v,omitempty"`      // of a constant
	Not    string          `json:"not,omitempty"`    // why it is not a constant
}

// expression describes an expression.
func (h *Host) expression(x syntax.Expr) (*expression, error) {
	at := x.Where()
	e := &expression{
		Class:  classOf(x),
		Text:   syntax.RenderRepr(x),
		Source: syntax.RenderSource(x),
		At:     []any{"", at.Start.Line},
	}
	if at.File != nil {
		e.At[0] = at.File.Path
	}
	if !at.Coarse {
		e.At = append(e.At, at.Start.Col, at.End.Line, at.End.Col)
	}
	switch x := x.(type) {
	case *syntax.Ref:
		e.Name = x.Name.Text
	case *syntax.AttrRef:
		e.Name = e.Text
	case *syntax.Call:
		e.Name = x.Func.Text
	case *syntax.List:
		e.Text, e.Source = "List()", listed(x) // also if all of it is constant
	}
	if e.Source == e.Text {
		e.Source = ""
	}
	v, not := eval.Constant(x)
	if not != nil {
		e.Not = syntax.RenderRepr(not)
		return e, nil
	}
	b := &bytes.Buffer{}
	err := h.wire.encode(b, v)
	e.Value = b.Bytes()
	return e, err
}

// listed is a list as the reference prints its source.
func listed(x *syntax.List) string {
	items := make([]string, len(x.Items))
	for i, item := range x.Items {
		items[i] = syntax.RenderSource(item)
	}
	return "[" + strings.Join(items, ",") + "]"
}

// classOf is the class that the reference has for an expression.
func classOf(x syntax.Expr) string {
	switch x := x.(type) {
	case *syntax.Ref:
		return "Reference"
	case *syntax.AttrRef:
		return "AttributeReference"
	case *syntax.Format:
		return "StringFormat"
	case *syntax.FString:
		return "StringFormatV2"
	case *syntax.Call:
		return "FunctionCall"
	case *syntax.Construct:
		return "Constructor"
	case *syntax.Lookup:
		return "IndexLookup"
	case *syntax.ShortLookup:
		return "ShortIndexLookup"
	case *syntax.MapLookup:
		return "MapLookup"
	case *syntax.List:
		return "CreateList"
	case *syntax.Comprehension:
		return "ListComprehension"
	case *syntax.Conditional:
		return "ConditionalExpression"
	case *syntax.Not:
		return "Not"
	case *syntax.IsDefined:
		return "IsDefined"
	case *syntax.Dict:
		if _, not := eval.Constant(x); not != nil {
			return "CreateDict"
		}
	case *syntax.Binary:
		return operators[x.Op]
	}
	return "Literal"
}

var operators = map[syntax.Op]string{
	"==": "Equals", "!=": "NotEqual", "<": "LessThan", "<=": "LessThanOrEqual", ">": "GreaterThan",
	">=":  "GreaterThanOrEqual",
	"and": "And", "or": "Or", "in": "In", "+": "Plus", "-": "Minus", "*": "Multiplication", "/": "Division",
	"%": "Modulo", "**": "Exponentiation",
	"matching": "Regex",
}

// defaults returns the default values that an entity itself declares: by name an expression, or null
// when it removes that of a parent.
func (h *Host) defaults(entity string) (any, error) {
	e, is := h.heap.Type(entity).(*types.Entity)
	out := [][2]any{}
	if !is || e == nil || e.Source == nil {
		return out, nil
	}
	for _, a := range e.Source.Attributes {
		if a.Default == nil {
			out = append(out, [2]any{a.Name.Name, nil})
			continue
		}
		x, err := h.expression(a.Default)
		if err != nil {
			return nil, err
		}
		out = append(out, [2]any{a.Name.Name, x})
	}
	return out, nil
}

// written is a call as it is written in the model.
type written struct {
	Text   string        `json:"text"`
	Source string        `json:"source"`
	Args   []*expression `json:"args"`
	Named  [][2]any      `json:"named"`
	Splats []*expression `json:"splats"`
}

// owner returns the call that is running; null when no plug-in of the model is.
func (h *Host) owner() (any, error) {
	heap, is := h.heap.(interface{ Call() *syntax.Call })
	if !is {
		return nil, nil
	}
	call := heap.Call()
	if call == nil {
		return nil, nil
	}
	w := &written{
		Text:   syntax.RenderRepr(call),
		Source: syntax.RenderSource(call),
		Args:   []*expression{},
		Named:  [][2]any{},
		Splats: []*expression{},
	}
	for _, a := range call.Args {
		x, err := h.expression(a)
		if err != nil {
			return nil, err
		}
		w.Args = append(w.Args, x)
	}
	for _, a := range call.Named {
		x, err := h.expression(a.Value)
		if err != nil {
			return nil, err
		}
		w.Named = append(w.Named, [2]any{a.Name.Name, x})
	}
	for _, s := range call.Splats {
		x, err := h.expression(s.Expr)
		if err != nil {
			return nil, err
		}
		w.Splats = append(w.Splats, x)
	}
	return w, nil
}
