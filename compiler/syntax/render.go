package syntax

import (
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/python/pytext"
)

// Render renders a node as messages show it, in the reference's own way: `x = Construct(A)` or
// `a.b = Format('{{ c }}')`.
func Render(n Node) string {
	var r renderer
	r.str(n)
	return r.String()
}

// RenderSource renders a node in a form close to the source: `A(x=1)` instead of `Construct(A)`.
// The reference uses it for an expression inside another one.
func RenderSource(n Node) string {
	var r renderer
	r.pretty(n)
	return r.String()
}

// renderer writes the three forms that the reference has for a node: str, repr (inside calls and
// lookups) and pretty (inside operators and comprehensions).
type renderer struct{ strings.Builder }

func (r *renderer) add(parts ...string) {
	for _, p := range parts {
		r.WriteString(p)
	}
}

func (r *renderer) str(n Node) {
	switch n := n.(type) {
	case *Import:
		r.add("import ", n.Module.Text)
		if n.Alias != "" && n.Alias != n.Module.Text {
			r.add(" as ", n.Alias)
		}
	case *Entity:
		r.add("Entity(", n.Name.Name, ")")
	case *Attribute:
		r.add(n.Type.String(), " ", n.Name.Name, " = ")
		if n.Default != nil {
			r.str(n.Default)
		}
	case *Implementation:
		r.add("Implementation(", n.Name.Name, ")")
	case *Implement:
		r.add("Implement(", n.Entity.Text, ")")
	case *Relation:
		r.add("Relation(", n.Left.Entity.Text, ", ", n.Right.Entity.Text, ")")
	case *Typedef:
		r.add("Type(", n.Name.Name, ")")
	case *Index:
		r.add("index ", n.Entity.Text, "(")
		for i, a := range n.Attributes {
			r.comma(i, ", ")
			r.add(a.Name)
		}
		r.add(")")
	case *Assign:
		r.str(n.Target)
		r.add(" = ")
		r.str(n.Value)
	case *For:
		r.add("For(", n.Var.Name, ")")
	case *If:
		r.add("If")
	case *FString:
		r.add(pytext.Quote(n.Text))
	case *Comprehension:
		r.pretty(n)
	case *Conditional:
		r.str(n.Cond)
		r.add(" ? ")
		r.str(n.Then)
		r.add(" : ")
		r.str(n.Else)
	case Ident:
		r.add(n.Name)
	case Name:
		r.add(n.Text)
	default:
		r.repr(n)
	}
}

func (r *renderer) repr(n Node) {
	switch n := n.(type) {
	case *Literal:
		r.literal(n, false)
	case *Regex:
		r.add("/", n.Pattern, "/")
	case *Format:
		r.add("Format(", pytext.Quote(n.Text), ")")
	case *FString:
		r.add("StringFormatV2(", pytext.Quote(n.Text), ")")
	case *Ref, *AttrRef:
		r.add(refText(n))
	case *Call:
		r.add(n.Func.Text, "(")
		i := 0
		for ; i < len(n.Args); i++ {
			r.comma(i, ",")
			r.repr(n.Args[i])
		}
		for _, a := range distinct(n.Named) {
			r.comma(i, ",")
			r.add(a.Name.Name, "=")
			r.repr(a.Value)
			i++
		}
		r.splats(i, n.Splats)
		r.add(")")
	case *Construct:
		r.add("Construct(", n.Type.Text, ")")
	case *Lookup:
		r.add(n.Type.Text)
		r.query(n.Named, n.Splats)
	case *ShortLookup:
		r.str(n.X)
		r.add(".", n.Rel.Name)
		r.query(n.Named, n.Splats)
	case *MapLookup:
		r.repr(n.X)
		r.add("[")
		r.repr(n.Key)
		r.add("]")
	case *List:
		if constant(n) {
			r.value(n)
		} else {
			r.add("List()")
		}
	case *Dict:
		if constant(n) {
			r.value(n)
		} else {
			r.add("Dict()")
		}
	case *Comprehension:
		r.add("ListComprehension(value_expression=")
		r.repr(n.Value)
		r.add(", loop_var=", n.Var.Name, ", iterable=")
		r.repr(n.Iter)
		r.add(", guard=")
		if n.Guard == nil {
			r.add("None")
		} else {
			r.repr(n.Guard)
		}
		r.add(")")
	case *Not:
		r.add("Not(")
		r.str(n.X)
		r.add(")")
	case *Binary, *IsDefined:
		r.pretty(n)
	default:
		r.str(n)
	}
}

func (r *renderer) pretty(n Node) {
	switch n := n.(type) {
	case *Assign:
		if a, ok := n.Target.(*AttrRef); ok {
			r.pretty(a.X)
			r.add(".", a.Attr.Name)
		} else {
			r.str(n.Target)
		}
		r.add(" = ")
		r.pretty(n.Value)
	case *Call:
		r.add(n.Func.Text, "(")
		i := 0
		for ; i < len(n.Args); i++ {
			r.comma(i, ",")
			r.pretty(n.Args[i])
		}
		r.named(i, n.Named)
		r.splats(i+len(n.Named), n.Splats)
		r.add(")")
	case *Construct:
		r.add(n.Type.Text, "(")
		r.named(0, n.Named)
		for i, s := range n.Splats {
			r.comma(i+len(n.Named), ",")
			r.add("****")
			r.repr(s.Expr)
		}
		r.add(")")
	case *List:
		if constant(n) {
			r.value(n)
			return
		}
		r.add("[")
		for i, e := range n.Items {
			r.comma(i, ",")
			r.pretty(e)
		}
		r.add("]")
	case *Comprehension:
		r.add("[")
		r.pretty(n.Value)
		r.add(" for ", n.Var.Name, " in ")
		r.pretty(n.Iter)
		if n.Guard != nil {
			r.add(" if ")
			r.pretty(n.Guard)
		}
		r.add("]")
	case *Conditional:
		r.pretty(n.Cond)
		r.add(" ? ")
		r.pretty(n.Then)
		r.add(" : ")
		r.pretty(n.Else)
	case *Not:
		r.add("(not ")
		r.pretty(n.X)
		r.add(")")
	case *Binary:
		r.add("(")
		r.pretty(n.L)
		r.add(" ", string(n.Op), " ")
		r.pretty(n.R)
		r.add(")")
	case *IsDefined:
		if n.X != nil {
			r.pretty(n.X)
			r.add(".")
		}
		r.add(n.Attr.Name, " is defined")
	default:
		r.str(n)
	}
}

func (r *renderer) comma(i int, text string) {
	if i > 0 {
		r.add(text)
	}
}

func (r *renderer) named(i int, named []Argument) {
	for _, a := range named {
		r.comma(i, ",")
		r.add(a.Name.Name, "=")
		r.pretty(a.Value)
		i++
	}
}

func (r *renderer) splats(i int, splats []Splat) {
	for _, s := range splats {
		r.comma(i, ",")
		r.add("**")
		r.repr(s.Expr)
		i++
	}
}

// query prints the arguments of a lookup as Python prints a list of pairs.
func (r *renderer) query(named []Argument, splats []Splat) {
	r.add("[[")
	for i, a := range named {
		r.comma(i, ", ")
		r.add("(", pytext.Quote(a.Name.Name), ", ")
		r.repr(a.Value)
		r.add(")")
	}
	r.add("]")
	r.splats(1, splats)
	r.add("]")
}

// distinct drops repeated arguments, which the reference's messages do not show.
func distinct(named []Argument) []Argument {
	seen := map[string]bool{}
	for i, a := range named {
		if seen[a.Name.Name] {
			return named[:i]
		}
		seen[a.Name.Name] = true
	}
	return named
}

// constant reports whether the reference folds an expression into a constant.
func constant(e Expr) bool {
	switch e := e.(type) {
	case *Literal:
		return true
	case *List:
		for _, item := range e.Items {
			if !constant(item) {
				return false
			}
		}
		return true
	case *Dict:
		for _, entry := range e.Entries {
			if !constant(entry.Value) {
				return false
			}
		}
		return true
	}
	return false
}

// value prints a constant as Python prints the value: lists are flattened.
func (r *renderer) value(e Expr) {
	switch e := e.(type) {
	case *Literal:
		r.literal(e, true)
	case *List:
		r.add("[")
		first := true
		r.items(e, &first)
		r.add("]")
	case *Dict:
		r.add("{")
		for i, entry := range e.Entries {
			r.comma(i, ", ")
			r.add(pytext.Quote(entry.Key), ": ")
			r.value(entry.Value)
		}
		r.add("}")
	}
}

func (r *renderer) items(l *List, first *bool) {
	for _, item := range l.Items {
		if inner, ok := item.(*List); ok {
			r.items(inner, first)
			continue
		}
		if !*first {
			r.add(", ")
		}
		*first = false
		r.value(item)
	}
}

// literal prints a constant; inside a list or dict booleans are Python's.
func (r *renderer) literal(l *Literal, nested bool) {
	switch l.Kind {
	case NullLiteral:
		r.add("null")
	case BoolLiteral:
		word := strconv.FormatBool(l.Bool)
		if nested {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		r.add(word)
	case IntLiteral:
		r.add(l.Int.String())
	case FloatLiteral:
		r.add(pytext.Float(l.Float))
	case StringLiteral:
		r.add(pytext.Quote(l.Str))
	}
}

// String is the type as written.
func (t TypeRef) String() string {
	s := t.Name.Text
	if t.List {
		s += "[]"
	}
	if t.Nullable {
		s += "?"
	}
	return s
}
