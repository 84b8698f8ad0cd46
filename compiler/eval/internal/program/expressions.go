package program

import (
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/python/pytext"
)

func (b *builder) root(x syntax.Expr) Root { return newRoot(b.expr(x)) }

func (b *builder) expr(x syntax.Expr) Expr { return b.assigned(x, nil) }

// assigned resolves an expression on the right side of an assignment.
func (b *builder) assigned(x syntax.Expr, left *lhs) Expr {
	if v, ok := constant(x); ok {
		return &Literal{standing(x), v}
	}
	if b.direct {
		if err := b.unusable(x); err != nil {
			b.direct = false
			b.assigned(x, left) // for the errors in its names
			b.direct = true
			return &Unusable{standing(x), err}
		}
	}
	switch x := x.(type) {
	case *syntax.Ref:
		return b.ref(x)
	case *syntax.AttrRef:
		if !b.namespaceOf(x) {
			return &Literal{standing(x), types.Null{}}
		}
		return &AttrRef{Written: standing(x), X: b.root(x.X), Attr: x.Attr.Name}
	case *syntax.List:
		n := &List{Written: standing(x)}
		for _, item := range x.Items {
			if left != nil && left.gradual {
				n.Items = append(n.Items, newRoot(b.assigned(item, left)))
			}
			n.Parts = append(n.Parts, b.assigned(item, left.whole()))
		}
		return n
	case *syntax.Dict:
		n := &Dict{Written: standing(x)}
		for _, e := range x.Entries {
			n.Entries = append(n.Entries, DictEntry{e.Key, b.expr(e.Value)})
		}
		return n
	case *syntax.MapLookup:
		return &MapLookup{Written: standing(x), X: b.expr(x.X), Key: b.expr(x.Key)}
	case *syntax.Format:
		n := &Format{Written: standing(x), Text: x.Text}
		for _, p := range x.Parts {
			n.Parts = append(n.Parts, formatPart{p.Match, b.expr(p.Ref)})
		}
		return n
	case *syntax.FString:
		return &FString{Written: standing(x), Pieces: b.pieces(x.Pieces, map[string]Expr{})}
	case *syntax.Conditional:
		defer b.perhaps()()
		n := &Conditional{Written: standing(x), Cond: b.root(x.Cond)}
		n.Then, n.Else = newRoot(b.assigned(x.Then, left)), newRoot(b.assigned(x.Else, left))
		return n
	case *syntax.Not:
		return &Not{standing(x), b.expr(x.X)}
	case *syntax.Binary:
		if x.Op == "and" || x.Op == "or" {
			defer b.perhaps()()
			return &Logical{Written: standing(x), Op: string(x.Op), Left: b.root(x.L), Right: b.root(x.R)}
		}
		return &Binary{Written: standing(x), Op: x.Op, Placeless: x.Negated, Left: b.expr(x.L), Right: b.expr(x.R)}
	case *syntax.Regex:
		return b.matching(x)
	case *syntax.IsDefined:
		defer b.perhaps()()
		n := &IsDefined{Written: standing(x), Attr: x.Attr.Name}
		if x.X == nil {
			n.V = b.ref(&syntax.Ref{Name: syntax.Name{Text: x.Attr.Name, At: x.Attr.At}})
		} else {
			n.X = new(b.root(x.X))
		}
		return n
	case *syntax.Comprehension:
		return b.comprehension(x, left)
	case *syntax.Construct:
		return b.construct(x, left)
	case *syntax.Lookup:
		return b.lookup(x)
	case *syntax.ShortLookup:
		n := &Lookup{Written: standing(x), X: b.expr(x.X), Rel: x.Rel.Name}
		b.query(n, x.Named, x.Splats)
		return n
	case *syntax.Call:
		return b.call(x)
	}
	b.failAt(RuntimeError("an expression of this kind can not stand here"), x.Where())
	return &Literal{standing(x), types.Null{}}
}

// pieces resolves the fields of an f-string. After escaped braces the reference
// forgets fields, but still finds one that stood before them; known has those by
// their text.
func (b *builder) pieces(pieces []syntax.FPiece, known map[string]Expr) []FPiece {
	out := make([]FPiece, 0, len(pieces))
	for _, p := range pieces {
		piece := FPiece{Text: p.Text, Conversion: p.Conversion, Field: p.Field, IsField: p.IsField}
		if p.Ref != nil {
			piece.X = b.expr(p.Ref)
			known[p.Field] = piece.X
		} else if p.IsField {
			piece.X = known[p.Field]
		}
		piece.Spec = b.pieces(p.Spec, known)
		out = append(out, piece)
	}
	return out
}

// constant returns the value of a literal, or of a list or dict of literals. Lists
// in lists are flattened.
func constant(x syntax.Expr) (types.Value, bool) {
	switch x := x.(type) {
	case *syntax.Literal:
		switch x.Kind {
		case syntax.BoolLiteral:
			return types.Bool(x.Bool), true
		case syntax.IntLiteral:
			return types.NewInt(x.Int), true
		case syntax.FloatLiteral:
			return types.Float(x.Float), true
		case syntax.StringLiteral:
			return types.Str(x.Str), true
		}
		return types.Null{}, true
	case *syntax.List:
		l := &types.List{Items: make([]types.Value, 0, len(x.Items))}
		for _, item := range x.Items {
			v, ok := constant(item)
			if !ok {
				return nil, false
			}
			if inner, nested := v.(*types.List); nested {
				l.Items = append(l.Items, inner.Items...)
				continue
			}
			l.Items = append(l.Items, v)
		}
		return l, true
	case *syntax.Dict:
		d := &types.Dict{Values: map[string]types.Value{}}
		for _, e := range x.Entries {
			v, ok := constant(e.Value)
			if !ok {
				return nil, false
			}
			d.Keys = append(d.Keys, e.Key)
			d.Values[e.Key] = v
		}
		return d, true
	}
	return nil, false
}

// inconstant returns the part that keeps an expression from being a constant.
func inconstant(x syntax.Expr) syntax.Expr {
	var parts []syntax.Expr
	switch x := x.(type) {
	case *syntax.List:
		parts = x.Items
	case *syntax.Dict:
		for _, e := range x.Entries {
			parts = append(parts, e.Value)
		}
	}
	for _, part := range parts {
		if _, ok := constant(part); !ok {
			return inconstant(part)
		}
	}
	return x
}

// shown returns the text of an expression in an error: of an f-string its own text.
func shown(x syntax.Expr) string {
	if f, is := x.(*syntax.FString); is {
		return pytext.Quote(f.Text)
	}
	return syntax.Render(x)
}

// ref resolves a variable. One that does not exist is an error only when it is
// needed, since a block that never runs may name it.
func (b *builder) ref(x *syntax.Ref) *Ref {
	name := x.Name.Text
	n := &Ref{Written: standing(x), Name: name}
	if ns, last, qualified := CutName(name); qualified {
		b.qualified(n, ns, last)
		return n
	}
	depth := 0
	for block := b.top; block != nil; block = block.up {
		if i, ok := block.vars[name]; ok {
			n.Kind, n.Depth, n.Index = RefLocal, depth, i
			return n
		}
		if block.body {
			n.Depth = depth
			if name == "self" {
				n.Kind = RefSelf
				return n
			}
			n.Kind = RefMember
			if i, ok := b.ns.Vars[name]; ok {
				n.Namespace, n.Index = b.ns, i
			} else {
				n.Absent = b.noVariable(name).Focused(&n.Span)
				b.absent(n)
			}
			return n
		}
		depth++
	}
	if i, ok := b.ns.Vars[name]; ok {
		n.Kind, n.Namespace, n.Index = refModule, b.ns, i
		return n
	}
	n.Kind, n.Absent = refAbsent, b.noVariable(name).Focused(&n.Span)
	b.absent(n)
	return n
}

// RefAt resolves a name as if it stood where a call stands.
func (p *Program) RefAt(n *Call, name string) *Ref {
	b := &builder{p: p, ns: n.Namespace, top: n.names}
	return b.ref(&syntax.Ref{Name: syntax.Name{Text: name, At: n.Span}})
}

func (b *builder) noVariable(name string) *Error {
	e := NotFound("variable %s not found", name)
	top, self, ns := b.top, b.self, b.ns
	e.MakeHint = func() string {
		names := slices.Clone(ns.Names)
		for block := top; block != nil; block = block.up {
			names = append(names, block.names...)
		}
		if self != nil {
			names = append(names, AttributeNames(self)...)
		}
		if hint := Suggest("variable", name, names); hint != "" {
			return hint
		}
		return "a variable that is assigned in a `for` or an `if` is not seen outside of it"
	}
	return e
}

func (b *builder) qualified(n *Ref, ns, last string) {
	n.Kind = refModule
	space := b.ns.Visible(ns)
	if space == nil {
		n.Kind = refAbsent
		n.Absent = noNamespace(ns).In(n).Hinted(b.ns.suggestImport(ns))
		b.fail(n.Absent)
		return
	}
	i, ok := space.Vars[last]
	if !ok {
		n.Kind = refAbsent
		n.Absent = NotFound("variable %s not found", last)
		n.Absent.Hint = Suggest("variable", last, space.Names)
		space.bare(n.Absent)
		n.Absent.Focused(&n.Span)
		if !space.missing {
			b.absent(n)
		}
		return
	}
	n.Namespace, n.Index = space, i
}

// namespaceOf checks the namespace at the beginning of `a::b.c.d`. When there is
// none, the error is that of the whole expression.
func (b *builder) namespaceOf(x *syntax.AttrRef) bool {
	ns, _, qualified := CutName(rootName(x))
	if !qualified || b.ns.Visible(ns) != nil {
		return true
	}
	b.fail(noNamespace(ns).Located(renderer{x}, new(x.Where())))
	return false
}

// renderer is a syntax tree with the text that errors show.
type renderer struct{ syntax.Node }

func (r renderer) String() string { return syntax.Render(r.Node) }

func (b *builder) comprehension(x *syntax.Comprehension, left *lhs) Expr {
	defer b.perhaps()()
	n := &Comprehension{Written: standing(x), Namespace: b.ns}
	n.Iter = newRoot(b.assigned(x.Iter, &lhs{gradual: left != nil && left.gradual}))
	b.top = newNaming(b.top)
	b.top.declare(x.Var.Name, x.Var.At)
	n.Element, n.Unknown = newRoot(b.assigned(x.Value, left)), newRoot(&UnknownElement{standing(x.Value)})
	if x.Guard != nil {
		cond := standing(&syntax.Conditional{Cond: x.Guard, Then: x.Value, Else: x.Value, At: x.At})
		guard := b.root(x.Guard)
		none := newRoot(&NoElement{cond})
		n.Element = newRoot(&Conditional{Written: cond, Cond: guard, Then: n.Element, Else: none, Guarded: true})
		n.Unknown = newRoot(&Conditional{Written: cond, Cond: guard, Then: n.Unknown, Else: none, Guarded: true})
	}
	b.top = b.top.up
	return n
}

func (b *builder) call(x *syntax.Call) Expr {
	n := &Call{Written: standing(x), Name: x.Func.Text, Namespace: b.ns, names: b.top}
	for _, a := range x.Args { // their errors come first
		n.Args = append(n.Args, b.expr(a))
	}
	for _, a := range x.Named {
		n.Named = append(n.Named, Argument{Name: a.Name.Name, X: Root{Expr: b.expr(a.Value)}})
	}
	for _, s := range x.Splats {
		part := b.expr(s.Expr)
		if b.direct {
			part = &Unusable{
				standing(s.Expr),
				NewError("DirectExecuteException", "The statement **%s can not be executed in this context",
					syntax.RenderRepr(s.Expr)).In(part),
			}
		}
		n.Splats = append(n.Splats, Splat{part, s.At})
	}
	thing, err := b.ns.find(x.Func)
	if err != nil {
		if !b.unloaded(x.Func.Text) {
			b.failAt(err, x.Func.At)
		}
		return &Literal{standing(x), types.Unknown{}}
	}
	switch thing := thing.(type) {
	case *PluginInfo:
		n.Plugin = thing
	case types.Primitive:
		if thing == types.ListT || thing == types.DictT {
			b.failAt(notCallable(x).In(n), x.Func.At)
			return n
		}
		n.Cast = thing
		if thing == types.Number {
			b.warn("TypeDeprecationWarning", x.Func.At, "Type 'number' is deprecated, use 'float' or 'int' instead")
		}
	default:
		b.failAt(notCallable(x).In(n), x.Func.At)
		return n
	}
	seen := map[string]bool{}
	for _, a := range x.Named {
		if seen[a.Name.Name] {
			b.failAt(RuntimeError("Keyword argument %s repeated in function call %s()", a.Name.Name, x.Func.Text).In(n),
				x.Func.At)
		}
		seen[a.Name.Name] = true
	}
	n.Parts = newRoot(CallParts{n})
	return n
}

func notCallable(x *syntax.Call) *Error {
	return RuntimeError("Can not call '%s', can only call plugin or primitive type cast", x.Func.Text)
}

// unloaded reports whether a name may be that of a plug-in that was not looked for.
func (b *builder) unloaded(name string) bool {
	prefix, _, qualified := CutName(name)
	ns := b.ns
	if qualified {
		if ns = b.ns.Visible(prefix); ns == nil {
			return false
		}
	}
	module, _, _ := strings.Cut(ns.Name, "::")
	return b.p.in.Unloaded[module]
}

func (b *builder) matching(x *syntax.Regex) Expr {
	compiled, err := types.NewRegex(x.Pattern)
	if err != nil {
		b.failAt(RuntimeError("%s", err), x.At)
		return &Literal{standing(x), types.Null{}}
	}
	self := b.ref(&syntax.Ref{Name: syntax.Name{Text: "self", At: x.At}})
	return &Matching{standing(x), self, compiled, x.Pattern}
}

// Constant returns the value of an expression, or the part of it that keeps it
// from being a constant.
func Constant(x syntax.Expr) (v types.Value, not syntax.Expr) {
	if v, is := constant(x); is {
		return v, nil
	}
	return nil, inconstant(x)
}
