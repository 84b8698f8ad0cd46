package eval

import (
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/python/pytext"
)

func (b *builder) root(x syntax.Expr) root { return newRoot(b.expr(x)) }

func (b *builder) expr(x syntax.Expr) expr { return b.assigned(x, nil) }

// assigned resolves an expression that stands on the right of left.
func (b *builder) assigned(x syntax.Expr, left *lhs) expr {
	if v, ok := constant(x); ok {
		return &literal{standing(x), v}
	}
	if b.direct {
		if err := b.unusable(x); err != nil {
			b.direct = false
			b.assigned(x, left) // for what is wrong with its names
			b.direct = true
			return &unusable{standing(x), err}
		}
	}
	switch x := x.(type) {
	case *syntax.Ref:
		return b.ref(x)
	case *syntax.AttrRef:
		if !b.namespaceOf(x) {
			return &literal{standing(x), types.Null{}}
		}
		return &attrRef{at: standing(x), x: b.root(x.X), attr: x.Attr.Name}
	case *syntax.List:
		n := &listExpr{at: standing(x)}
		for _, item := range x.Items {
			if left != nil && left.gradual {
				n.items = append(n.items, newRoot(b.assigned(item, left)))
			}
			n.parts = append(n.parts, b.assigned(item, left.whole()))
		}
		return n
	case *syntax.Dict:
		n := &dictExpr{at: standing(x)}
		for _, e := range x.Entries {
			n.entries = append(n.entries, dictEntry{e.Key, b.expr(e.Value)})
		}
		return n
	case *syntax.MapLookup:
		return &mapLookup{at: standing(x), x: b.expr(x.X), key: b.expr(x.Key)}
	case *syntax.Format:
		n := &format{at: standing(x), text: x.Text}
		for _, p := range x.Parts {
			n.parts = append(n.parts, formatPart{p.Match, b.expr(p.Ref)})
		}
		return n
	case *syntax.FString:
		return &fstring{at: standing(x), pieces: b.pieces(x.Pieces, map[string]expr{})}
	case *syntax.Conditional:
		defer b.perhaps()()
		return &conditional{at: standing(x), cond: b.root(x.Cond), then: newRoot(b.assigned(x.Then, left)), els: newRoot(b.assigned(x.Else, left))}
	case *syntax.Not:
		return &not{standing(x), b.expr(x.X)}
	case *syntax.Binary:
		if x.Op == "and" || x.Op == "or" {
			defer b.perhaps()()
			return &lazy{at: standing(x), op: string(x.Op), left: b.root(x.L), right: b.root(x.R)}
		}
		return &binary{at: standing(x), op: x.Op, placeless: x.Negated, l: b.expr(x.L), r: b.expr(x.R)}
	case *syntax.Regex:
		return b.matching(x)
	case *syntax.IsDefined:
		defer b.perhaps()()
		n := &isDefined{at: standing(x), attr: x.Attr.Name}
		if x.X == nil {
			n.v = b.ref(&syntax.Ref{Name: syntax.Name{Text: x.Attr.Name, At: x.Attr.At}})
		} else {
			n.x = new(b.root(x.X))
		}
		return n
	case *syntax.Comprehension:
		return b.comprehension(x, left)
	case *syntax.Construct:
		return b.construct(x, left)
	case *syntax.Lookup:
		return b.lookup(x)
	case *syntax.ShortLookup:
		n := &lookup{at: standing(x), x: b.expr(x.X), rel: x.Rel.Name}
		b.query(n, x.Named, x.Splats)
		return n
	case *syntax.Call:
		return b.call(x)
	}
	b.failAt(runtimeError("an expression of this kind can not stand here"), x.Where())
	return &literal{standing(x), types.Null{}}
}

// pieces resolves the fields of an f-string. Behind braces that are escaped the
// reference forgets fields, but still finds one that stood before them; known has
// these, by what is written in the braces.
func (b *builder) pieces(pieces []syntax.FPiece, known map[string]expr) []fpiece {
	out := make([]fpiece, 0, len(pieces))
	for _, p := range pieces {
		piece := fpiece{text: p.Text, conversion: p.Conversion, field: p.Field, isField: p.IsField}
		if p.Ref != nil {
			piece.x = b.expr(p.Ref)
			known[p.Field] = piece.x
		} else if p.IsField {
			piece.x = known[p.Field]
		}
		piece.spec = b.pieces(p.Spec, known)
		out = append(out, piece)
	}
	return out
}

// constant folds literals, and lists and dicts of them; lists are flattened.
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

// inconstant finds what keeps an expression from being a constant.
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

// shown is how an error shows an expression by itself: an f-string as its text.
func shown(x syntax.Expr) string {
	if f, is := x.(*syntax.FString); is {
		return pytext.Quote(f.Text)
	}
	return syntax.Render(x)
}

// ref resolves a variable. What is found nowhere is an error only when it is
// needed: a block that never runs may name what does not exist.
func (b *builder) ref(x *syntax.Ref) *ref {
	name := x.Name.Text
	n := &ref{at: standing(x), name: name}
	if ns, last, qualified := cutLast(name); qualified {
		b.qualified(n, ns, last)
		return n
	}
	depth := 0
	for block := b.top; block != nil; block = block.up {
		if i, ok := block.vars[name]; ok {
			n.kind, n.depth, n.index = refLocal, depth, i
			return n
		}
		if block.body {
			n.depth = depth
			if name == "self" {
				n.kind = refSelf
				return n
			}
			n.kind = refMember
			if i, ok := b.ns.vars[name]; ok {
				n.ns, n.index = b.ns, i
			} else {
				n.absent = b.noVariable(name).focused(&n.span)
				b.absent(n)
			}
			return n
		}
		depth++
	}
	if i, ok := b.ns.vars[name]; ok {
		n.kind, n.ns, n.index = refModule, b.ns, i
		return n
	}
	n.kind, n.absent = refAbsent, b.noVariable(name).focused(&n.span)
	b.absent(n)
	return n
}

// refAt resolves a name as if it stood where a call stands.
func (p *program) refAt(n *call, name string) *ref {
	b := &builder{p: p, ns: n.ns, top: n.names}
	return b.ref(&syntax.Ref{Name: syntax.Name{Text: name, At: n.span}})
}

func (b *builder) noVariable(name string) *Error {
	e := notFound("variable %s not found", name)
	top, self, ns := b.top, b.self, b.ns
	e.hint = func() string {
		names := slices.Clone(ns.names)
		for block := top; block != nil; block = block.up {
			names = append(names, block.names...)
		}
		if self != nil {
			names = append(names, attributeNames(self)...)
		}
		if hint := suggest("variable", name, names); hint != "" {
			return hint
		}
		return "a variable that is assigned in a `for` or an `if` is not seen outside of it"
	}
	return e
}

func (b *builder) qualified(n *ref, ns, last string) {
	n.kind = refModule
	space := b.ns.visible(ns)
	if space == nil {
		n.kind = refAbsent
		n.absent = noNamespace(ns).in(n).hinted(b.ns.suggestImport(ns))
		b.fail(n.absent)
		return
	}
	i, ok := space.vars[last]
	if !ok {
		n.kind = refAbsent
		n.absent = notFound("variable %s not found", last)
		n.absent.Hint = suggest("variable", last, space.names)
		space.bare(n.absent)
		n.absent.focused(&n.span)
		if !space.missing {
			b.absent(n)
		}
		return
	}
	n.ns, n.index = space, i
}

// namespaceOf checks the namespace at the root of `a::b.c.d`: when there is
// none, it is the whole that is wrong.
func (b *builder) namespaceOf(x *syntax.AttrRef) bool {
	ns, _, qualified := cutLast(rootName(x))
	if !qualified || b.ns.visible(ns) != nil {
		return true
	}
	b.fail(noNamespace(ns).located(renderer{x}, new(x.Where())))
	return false
}

// renderer gives the text of a tree that became no node.
type renderer struct{ syntax.Node }

func (r renderer) String() string { return syntax.Render(r.Node) }

func (b *builder) comprehension(x *syntax.Comprehension, left *lhs) expr {
	defer b.perhaps()()
	n := &comprehension{at: standing(x), ns: b.ns}
	n.iter = newRoot(b.assigned(x.Iter, &lhs{gradual: left != nil && left.gradual}))
	b.top = newNaming(b.top)
	b.top.declare(x.Var.Name, x.Var.At)
	n.element, n.unknown = newRoot(b.assigned(x.Value, left)), newRoot(&unknownElement{standing(x.Value)})
	if x.Guard != nil {
		cond := standing(&syntax.Conditional{Cond: x.Guard, Then: x.Value, Else: x.Value, At: x.At})
		guard := b.root(x.Guard)
		none := newRoot(&noElement{cond})
		n.element = newRoot(&conditional{at: cond, cond: guard, then: n.element, els: none, guarded: true})
		n.unknown = newRoot(&conditional{at: cond, cond: guard, then: n.unknown, els: none, guarded: true})
	}
	b.top = b.top.up
	return n
}

func (b *builder) call(x *syntax.Call) expr {
	n := &call{at: standing(x), name: x.Func.Text, ns: b.ns, names: b.top}
	for _, a := range x.Args { // what is wrong in them comes first
		n.args = append(n.args, b.expr(a))
	}
	for _, a := range x.Named {
		n.named = append(n.named, argument{name: a.Name.Name, x: root{expr: b.expr(a.Value)}})
	}
	for _, s := range x.Splats {
		part := b.expr(s.Expr)
		if b.direct {
			part = &unusable{
				standing(s.Expr),
				fail(
					"DirectExecuteException",
					"The statement **%s can not be executed in this context",
					syntax.RenderRepr(s.Expr),
				).in(part),
			}
		}
		n.splats = append(n.splats, splat{part, s.At})
	}
	thing, err := b.ns.find(x.Func)
	if err != nil {
		if !b.unloaded(x.Func.Text) {
			b.failAt(err, x.Func.At)
		}
		return &literal{standing(x), types.Unknown{}}
	}
	switch thing := thing.(type) {
	case *pluginInfo:
		n.plugin = thing
	case types.Primitive:
		if thing == types.ListT || thing == types.DictT {
			b.failAt(runtimeError("Can not call '%s', can only call plugin or primitive type cast", x.Func.Text).in(n), x.Func.At)
			return n
		}
		n.cast = thing
		if thing == types.Number {
			b.warn("TypeDeprecationWarning", x.Func.At, "Type 'number' is deprecated, use 'float' or 'int' instead")
		}
	default:
		b.failAt(runtimeError("Can not call '%s', can only call plugin or primitive type cast", x.Func.Text).in(n), x.Func.At)
		return n
	}
	seen := map[string]bool{}
	for _, a := range x.Named {
		if seen[a.Name.Name] {
			b.failAt(
				runtimeError("Keyword argument %s repeated in function call %s()", a.Name.Name, x.Func.Text).in(n),
				x.Func.At,
			)
		}
		seen[a.Name.Name] = true
	}
	n.parts = newRoot(callParts{n})
	return n
}

// unloaded tells names that may be those of plug-ins nobody looked for.
func (b *builder) unloaded(name string) bool {
	prefix, _, qualified := cutLast(name)
	ns := b.ns
	if qualified {
		if ns = b.ns.visible(prefix); ns == nil {
			return false
		}
	}
	module, _, _ := strings.Cut(ns.name, "::")
	return b.p.in.Unloaded[module]
}

func (b *builder) matching(x *syntax.Regex) expr {
	compiled, err := types.NewRegex(x.Pattern)
	if err != nil {
		b.failAt(runtimeError("%s", err), x.At)
		return &literal{standing(x), types.Null{}}
	}
	self := b.ref(&syntax.Ref{Name: syntax.Name{Text: "self", At: x.At}})
	return &matching{standing(x), self, compiled, x.Pattern}
}

// Constant gives the value of an expression, or the part of it that keeps it
// from being a constant.
func Constant(x syntax.Expr) (v types.Value, not syntax.Expr) {
	if v, is := constant(x); is {
		return v, nil
	}
	return nil, inconstant(x)
}
