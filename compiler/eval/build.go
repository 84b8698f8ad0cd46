package eval

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/python/pytext"
)

// builder resolves the trees of one namespace: names become slots, types and
// plug-ins. It keeps the errors and goes on with what it can.
type builder struct {
	p    *program
	ns   *namespace
	top  *naming
	stmt syntax.Node // the statement that errors are reported in
	errs []*Error
	// warnings are what was found beside errors.
	warnings []Warning
	self     *types.Entity // of the implementation, where its body is resolved
	// sure is set while what is resolved will run in any case.
	sure bool
	// assigning remembers which blocks hold assignments to attributes.
	assigning map[syntax.Stmt]bool
	// direct is set in the condition of a typedef, which is evaluated at once.
	direct bool
	// outside: names are looked up as from outside of a block, where what is
	// seen only inside is no error.
	outside bool
}

// naming is a block while it is resolved: the names of its variables.
type naming struct {
	up    *naming
	vars  map[string]int
	names []string
	first []syntax.Span // where each of names is first assigned
	// module is set above the body of an implementation: what it would hide is
	// only told of, not found here.
	module *namespace
	// body is set for the outermost block of an implementation, whose names
	// are those of the instance too.
	body bool
}

// holds tells whether a variable of this or an outer block has the name.
func (n *naming) holds(name string) bool {
	for ; n != nil; n = n.up {
		if _, have := n.vars[name]; have {
			return true
		}
	}
	return false
}

func newNaming(up *naming) *naming {
	return &naming{up: up, vars: map[string]int{}}
}

func (n *naming) declare(name string, at syntax.Span) int {
	if i, have := n.vars[name]; have {
		return i
	}
	n.vars[name] = len(n.names)
	n.first = append(n.first, at)
	n.names = append(n.names, name)
	return len(n.names) - 1
}

func (b *builder) fail(err *Error) { b.errs = append(b.errs, err) }

func (b *builder) warn(kind string, at syntax.Span, text string, args ...any) {
	b.warnings = append(b.warnings, Warning{Kind: kind, Message: fmt.Sprintf(text, args...), At: at})
}

// failAt records an error at a name, reported in the current statement.
func (b *builder) failAt(err *Error, at syntax.Span) {
	if err.at == nil {
		err.at = &at
	}
	if err.Stmt == "" && b.stmt != nil {
		err.Stmt = syntax.Render(b.stmt)
	}
	b.fail(err)
}

// lhs is what a constructor on the right of an assignment may know of the left.
type lhs struct {
	of   syntax.Expr // the instance
	own  string      // or the hidden variable that holds it
	attr string
	hint *types.Entity // the type of the relation, where it is known
	// plain is the type of an attribute that is no relation: no instance goes there.
	plain types.Type
	// gradual: elements are consumed as they arrive.
	gradual bool
}

// whole is the same left side for what is needed as a whole.
func (l *lhs) whole() *lhs {
	if l == nil || !l.gradual {
		return l
	}
	out := *l
	out.gradual = false
	return &out
}

// block resolves the statements of a nested block.
func (b *builder) block(body []syntax.Stmt, loopVar *syntax.Ident, implementation bool) *block {
	defer b.perhaps()()
	up := b.top
	b.top = newNaming(up)
	b.top.body = implementation
	if loopVar != nil {
		b.top.declare(loopVar.Name, loopVar.At)
	}
	b.declareVars(body)
	b.warnShadowed()
	out := &block{ns: b.ns, vars: b.top.names}
	for i := len(body) - 1; i >= 0; i-- {
		if st := b.statement(body[i]); st != nil {
			out.stmts = append(out.stmts, st)
			out.promises = append(out.promises, b.promisesOf(body[i])...)
		}
	}
	b.top = up
	return out
}

func (b *builder) declareVars(body []syntax.Stmt) {
	for _, st := range body {
		a, ok := st.(*syntax.Assign)
		if !ok {
			continue
		}
		// `a::x = e` makes a variable of that name too, as in a module.
		if target, ok := a.Target.(*syntax.Ref); ok {
			b.top.declare(target.Name.Text, a.At)
		}
	}
}

func (b *builder) warnShadowed() {
	for i, name := range b.top.names {
		for up := b.top.up; up != nil; up = up.up {
			if first := up.declared(name); first != nil {
				b.warn(
					"VariableShadowWarning",
					b.top.first[i],
					"Variable `%s` shadowed: originally declared at %s, shadowed at %s",
					name,
					short(first),
					short(&b.top.first[i]),
				)
				break
			}
		}
	}
}

// declared tells where a name of this block is first assigned; nil when it is
// no name of the block.
func (n *naming) declared(name string) *syntax.Span {
	if i, have := n.vars[name]; have {
		return &n.first[i]
	}
	if n.module == nil {
		return nil
	}
	if i, have := n.module.vars[name]; have {
		return &n.module.first[i]
	}
	return nil
}

// promisesOf lists the assignments to attributes in a statement of a block
// whose instance is known outside of the block.
func (b *builder) promisesOf(st syntax.Stmt) []promiseSpec {
	var specs []promiseSpec
	hidden := map[string]int{}
	for _, name := range b.top.names {
		hidden[name]++
	}
	up := b.top
	b.top, b.outside = up.up, true
	b.collectPromises(st, hidden, &specs)
	b.top, b.outside = up, false
	return specs
}

func (b *builder) collectPromises(st syntax.Stmt, hidden map[string]int, specs *[]promiseSpec) {
	nested := func(body []syntax.Stmt, loopVar string) {
		var names []string
		if loopVar != "" {
			names = append(names, loopVar)
		}
		for _, inner := range body {
			if a, ok := inner.(*syntax.Assign); ok {
				if target, ok := a.Target.(*syntax.Ref); ok && !target.Name.Qualified() {
					names = append(names, target.Name.Text)
				}
			}
		}
		for _, name := range names {
			hidden[name]++
		}
		for i := len(body) - 1; i >= 0; i-- {
			b.collectPromises(body[i], hidden, specs)
		}
		for _, name := range names {
			hidden[name]--
		}
	}
	switch st := st.(type) {
	case *syntax.Assign:
		target, ok := st.Target.(*syntax.AttrRef)
		if !ok || hidden[rootName(target)] > 0 {
			return
		}
		stmt := b.stmt
		b.stmt = st
		of := b.root(target.X)
		passUnset(of.expr)
		*specs = append(*specs, promiseSpec{of: of, attr: target.Attr.Name, n: &assignNode{standing(st)}})
		b.stmt = stmt
	case *syntax.If:
		if b.assigns(st) {
			nested(st.Then, "")
			nested(st.Else, "")
		}
	case *syntax.For:
		if b.assigns(st) {
			nested(st.Body, st.Var.Name)
		}
	}
}

// assigns reports whether a statement assigns to an attribute somewhere inside.
// Each is looked at once, however deep blocks are nested.
func (b *builder) assigns(st syntax.Stmt) bool {
	var bodies [2][]syntax.Stmt
	switch st := st.(type) {
	case *syntax.Assign:
		_, yes := st.Target.(*syntax.AttrRef)
		return yes
	case *syntax.If:
		bodies = [2][]syntax.Stmt{st.Then, st.Else}
	case *syntax.For:
		bodies[0] = st.Body
	default:
		return false
	}
	yes, known := b.assigning[st]
	if !known {
		yes = slices.ContainsFunc(bodies[0], b.assigns) || slices.ContainsFunc(bodies[1], b.assigns)
		if b.assigning == nil {
			b.assigning = map[syntax.Stmt]bool{}
		}
		b.assigning[st] = yes
	}
	return yes
}

// assignNode names an assignment in the errors of its promise.
type assignNode struct{ at }

// rootName is the variable at the beginning of `a.b.c`.
func rootName(x syntax.Expr) string {
	for {
		switch e := x.(type) {
		case *syntax.AttrRef:
			x = e.X
		case *syntax.Ref:
			return e.Name.Text
		default:
			return ""
		}
	}
}

// statement resolves one statement; nil for definitions.
func (b *builder) statement(st syntax.Stmt) stmt {
	outer := b.stmt
	b.stmt = st
	defer func() { b.stmt = outer }()
	switch st := st.(type) {
	case *syntax.Assign:
		return b.assign(st)
	case *syntax.For:
		return &forLoop{at: standing(st), iter: newRoot(b.assigned(st.Iter, &lhs{gradual: true})), body: b.block(st.Body, &st.Var, false)}
	case *syntax.If:
		n := &ifStmt{at: standing(st), cond: b.root(st.Cond), then: b.block(st.Then, nil, false), els: b.block(st.Else, nil, false)}
		n.promises = append(append(n.promises, n.then.promises...), n.els.promises...)
		return n
	case *syntax.Relation:
		if len(st.Annotations) == 0 {
			return nil
		}
		n := &annotations{at: standing(st), ends: b.p.annotated[st]}
		for _, x := range st.Annotations {
			n.notes = append(n.notes, &bare{standing(x), b.root(x)})
		}
		return n
	case syntax.Expr:
		return &bare{standing(st), b.root(st)}
	}
	return nil
}

func (b *builder) assign(st *syntax.Assign) stmt {
	switch target := st.Target.(type) {
	case *syntax.Ref:
		index, ok := b.top.vars[target.Name.Text]
		if ns, last, qualified := cutLast(target.Name.Text); qualified {
			ok = false
			if space := b.ns.visible(ns); space != nil {
				if index, ok = space.vars[last]; ok {
					return &assign{at: standing(st), of: space, index: index, value: b.root(st.Value)}
				}
			}
		}
		if !ok {
			ns, last, _ := cutLast(target.Name.Text)
			err := notFound("variable %s not found", last)
			err.Hint = "a variable of another namespace can only be assigned there"
			if space := b.ns.visible(ns); space == nil {
				err = noNamespace(ns).hinted(b.ns.suggestImport(ns))
			} else {
				space.bare(err)
			}
			n := &assign{at: standing(st), value: b.root(st.Value)}
			if n.absent = err; b.p.in.Lint {
				b.failAt(err, *coarse(st.At))
			}
			return n
		}
		return &assign{at: standing(st), index: index, value: b.root(st.Value)}
	case *syntax.AttrRef:
		left := &lhs{of: target.X, attr: target.Attr.Name, gradual: true}
		return &setAttr{at: standing(st), of: b.root(target.X), attr: target.Attr.Name, extend: st.Extend, value: newRoot(b.assigned(st.Value, left))}
	}
	return nil
}

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
			return &literal{standing(x), null}
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
	return &literal{standing(x), null}
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
		return null, true
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

// bare turns an error of looking in a namespace that has no file, which the
// reference lacks, into what it says then.
func (ns *namespace) bare(err *Error) {
	if ns.name == "std" && ns.file == nil {
		err.Kind, err.Hint, err.Message, err.foreign = "AssertionError", err.Message, "", true
	}
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

func noNamespace(ns string) *Error {
	return notFound("Namespace %s not found.\nTry importing it with `import %s`", ns, ns)
}

func cutLast(name string) (ns, last string, qualified bool) {
	i := strings.LastIndex(name, "::")
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+2:], true
}

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
