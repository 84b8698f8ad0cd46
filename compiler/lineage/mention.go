package lineage

import (
	"strconv"

	"ordain.dev/ordain/compiler/syntax"
)

// mention is something that an expression reads: a variable, an attribute, an entry of
// a dict, or what a plug-in returns.
type mention struct {
	expr syntax.Expr // *Ref, *AttrRef, *MapLookup, *Call or *Conditional
	in   *block      // where its names are looked up
	name string
	// parts are the arguments of a call, or what the condition of a Conditional reads.
	parts []mention
	// then and other are what the branches of a Conditional read.
	then, other []mention
}

// mentions returns what the value of a statement was computed from. A call of a
// plug-in that is the whole value is not among them, but its arguments are.
func (s *spot) mentions() []mention {
	if !s.planned {
		s.planned = true
		if s.value != nil && s.in != nil {
			s.plan = reads(s.value, s.in)
			if len(s.plan) == 1 && s.plan[0].expr == s.value {
				if _, call := s.value.(*syntax.Call); call && !isTemplate(s.value) {
					s.plan = s.plan[0].parts
				}
			}
		}
	}
	return s.plan
}

// reads lists what an expression reads.
func reads(e syntax.Expr, in *block) (out []mention) {
	all := func(list []syntax.Expr) {
		for _, e := range list {
			out = append(out, reads(e, in)...)
		}
	}
	switch e := e.(type) {
	case *syntax.Ref, *syntax.AttrRef, *syntax.MapLookup:
		return []mention{{expr: e, in: in, name: spelled(e)}}
	case *syntax.IsDefined:
		return reads(definedName(e), in)
	case *syntax.Call:
		all(operands(e))
		if plugin(e) == "" { // a cast
			return out
		}
		return []mention{{expr: e, in: in, name: spelled(e), parts: out}}
	case *syntax.Format:
		for _, p := range e.Parts {
			all(withoutNil(p.Ref))
		}
	case *syntax.FString:
		all(fields(e.Pieces))
	case *syntax.Conditional:
		return []mention{{
			expr: e, in: in, parts: reads(e.Cond, in), then: reads(e.Then, in), other: reads(e.Else, in),
		}}
	case *syntax.Comprehension:
		all([]syntax.Expr{e.Iter})
		in = in.file.comprehension(e, in)
		all(withoutNil(e.Value, e.Guard))
	case *syntax.Construct, *syntax.Literal, *syntax.Regex:
	default:
		all(operands(e))
	}
	return out
}

// definedName is the x.y of `x.y is defined`.
func definedName(e *syntax.IsDefined) syntax.Expr {
	if e.X == nil {
		return &syntax.Ref{Name: syntax.Name{Text: e.Attr.Name, At: e.Attr.At}}
	}
	return &syntax.AttrRef{X: e.X, Attr: e.Attr, At: e.At}
}

// fields are the references in the pieces of an f-string.
func fields(pieces []syntax.FPiece) (out []syntax.Expr) {
	for _, p := range pieces {
		if p.Ref != nil {
			out = append(out, p.Ref)
		}
		out = append(out, fields(p.Spec)...)
	}
	return out
}

// spelled is a short form of an expression for people.
func spelled(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Ref:
		return e.Name.Text
	case *syntax.AttrRef:
		return spelled(e.X) + "." + e.Attr.Name
	case *syntax.MapLookup:
		return spelled(e.X) + "[" + spelled(e.Key) + "]"
	case *syntax.Call:
		return e.Func.Text + "()"
	case *syntax.Literal:
		if e.Kind == syntax.StringLiteral {
			return strconv.Quote(shorten(e.Str))
		}
	case *syntax.Conditional:
		return "…"
	}
	return shorten(syntax.RenderSource(e))
}
