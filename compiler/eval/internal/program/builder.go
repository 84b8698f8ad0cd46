package program

import (
	"fmt"
	"slices"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// builder resolves the syntax trees of one namespace: names become variables, slots,
// types and plug-ins. It collects errors and goes on with what it can.
type builder struct {
	p        *Program
	ns       *Namespace
	top      *naming
	stmt     syntax.Node // the statement in which errors are reported
	errs     []*Error
	warnings []Warning
	self     *types.Entity // the entity of the implementation whose body is being resolved
	// sure is set while what is resolved will certainly run.
	sure bool
	// assigning remembers which statements contain assignments to attributes.
	assigning map[syntax.Stmt]bool
	// direct is set in the condition of a typedef, which is evaluated at once.
	direct bool
	// outside is set while names are looked up as from outside of a block, where a
	// name that is only visible inside is no error.
	outside bool
}

// naming has the names of the variables of a block that is being resolved.
type naming struct {
	up    *naming
	vars  map[string]int
	names []string
	first []syntax.Span // where each of names is first assigned
	// module is set for the block above the body of an implementation: its names are
	// not found here, but shadowing them is reported.
	module *Namespace
	// body is set for the outermost block of an implementation, in which the
	// attributes of the instance are visible too.
	body bool
}

// holds reports whether this block or an outer one has a variable.
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

// failAt records an error at a name, in the current statement.
func (b *builder) failAt(err *Error, at syntax.Span) {
	if err.Place == nil {
		err.Place = &at
	}
	if err.Stmt == "" && b.stmt != nil {
		err.Stmt = syntax.Render(b.stmt)
	}
	b.fail(err)
}

// lhs is what a constructor on the right of an assignment may use of the left side.
type lhs struct {
	of   syntax.Expr // the instance
	own  string      // or the hidden variable that has it
	attr string
	hint *types.Entity // the type of the relation, where it is known
	// plain is the type of an attribute that is no relation and so takes no
	// instance.
	plain types.Type
	// gradual means that elements are taken as they arrive.
	gradual bool
}

// whole returns the left side for an expression that is needed as a whole.
func (l *lhs) whole() *lhs {
	if l == nil || !l.gradual {
		return l
	}
	out := *l
	out.gradual = false
	return &out
}

// block resolves the statements of a nested block.
func (b *builder) block(body []syntax.Stmt, loopVar *syntax.Ident, implementation bool) *Block {
	defer b.perhaps()()
	up := b.top
	b.top = newNaming(up)
	b.top.body = implementation
	if loopVar != nil {
		b.top.declare(loopVar.Name, loopVar.At)
	}
	b.declareVars(body)
	b.warnShadowed()
	out := &Block{Namespace: b.ns, Vars: b.top.names}
	for i := len(body) - 1; i >= 0; i-- {
		if st := b.statement(body[i]); st != nil {
			out.Stmts = append(out.Stmts, st)
			out.Promises = append(out.Promises, b.promisesOf(body[i])...)
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
				b.warn("VariableShadowWarning", b.top.first[i],
					"Variable `%s` shadowed: originally declared at %s, shadowed at %s", name, Short(first),
					Short(&b.top.first[i]))
				break
			}
		}
	}
}

// declared returns the place where a name of this block is first assigned; nil when
// the block has no such name.
func (n *naming) declared(name string) *syntax.Span {
	if i, have := n.vars[name]; have {
		return &n.first[i]
	}
	if n.module == nil {
		return nil
	}
	if i, have := n.module.Vars[name]; have {
		return &n.module.First[i]
	}
	return nil
}

// promisesOf returns the assignments to attributes in a statement of a block, as far
// as their instance is known outside of the block.
func (b *builder) promisesOf(st syntax.Stmt) []PromiseSpec {
	var specs []PromiseSpec
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

func (b *builder) collectPromises(st syntax.Stmt, hidden map[string]int, specs *[]PromiseSpec) {
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
		passUnset(of.Expr)
		*specs = append(*specs, PromiseSpec{Of: of, Attr: target.Attr.Name, Node: &assignNode{standing(st)}})
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

// assigns reports whether a statement contains an assignment to an attribute. It
// looks at each statement once, however deep blocks are nested.
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

// rootName returns the variable at the beginning of `a.b.c`.
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

// statement resolves one statement; nil for a definition.
func (b *builder) statement(st syntax.Stmt) Stmt {
	outer := b.stmt
	b.stmt = st
	defer func() { b.stmt = outer }()
	switch st := st.(type) {
	case *syntax.Assign:
		return b.assign(st)
	case *syntax.For:
		iter := newRoot(b.assigned(st.Iter, &lhs{gradual: true}))
		return &For{Written: standing(st), Iter: iter, Body: b.block(st.Body, &st.Var, false)}
	case *syntax.If:
		n := &If{Written: standing(st), Cond: b.root(st.Cond)}
		n.Then, n.Else = b.block(st.Then, nil, false), b.block(st.Else, nil, false)
		n.Promises = append(append(n.Promises, n.Then.Promises...), n.Else.Promises...)
		return n
	case *syntax.Relation:
		if len(st.Annotations) == 0 {
			return nil
		}
		n := &Annotations{Written: standing(st), Ends: b.p.annotated[st]}
		for _, x := range st.Annotations {
			n.Notes = append(n.Notes, &ExprStmt{standing(x), b.root(x)})
		}
		return n
	case syntax.Expr:
		return &ExprStmt{standing(st), b.root(st)}
	}
	return nil
}

func (b *builder) assign(st *syntax.Assign) Stmt {
	switch target := st.Target.(type) {
	case *syntax.Ref:
		index, ok := b.top.vars[target.Name.Text]
		if ns, last, qualified := CutName(target.Name.Text); qualified {
			ok = false
			if space := b.ns.Visible(ns); space != nil {
				if index, ok = space.Vars[last]; ok {
					return &Assign{Written: standing(st), Of: space, Index: index, Value: b.root(st.Value)}
				}
			}
		}
		if !ok {
			ns, last, _ := CutName(target.Name.Text)
			err := NotFound("variable %s not found", last)
			err.Hint = "a variable of another namespace can only be assigned there"
			if space := b.ns.Visible(ns); space == nil {
				err = noNamespace(ns).Hinted(b.ns.suggestImport(ns))
			} else {
				space.bare(err)
			}
			n := &Assign{Written: standing(st), Value: b.root(st.Value)}
			if n.Absent = err; b.p.in.Lint {
				b.failAt(err, *coarse(st.At))
			}
			return n
		}
		return &Assign{Written: standing(st), Index: index, Value: b.root(st.Value)}
	case *syntax.AttrRef:
		left := &lhs{of: target.X, attr: target.Attr.Name, gradual: true}
		n := &SetAttr{Written: standing(st), Of: b.root(target.X), Attr: target.Attr.Name, Extend: st.Extend}
		n.Value = newRoot(b.assigned(st.Value, left))
		return n
	}
	return nil
}
