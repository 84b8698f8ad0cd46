package syntax

import "strings"

func (p *parser) binary(l any, op token, r any) any {
	return &Binary{Op: Op(op.text), L: l.(Expr), R: r.(Expr), At: p.coarse(op)}
}

// keyDefined is `d[k] is defined`, sugar for
// `k in d and d[k] != null and d[k] != []`.
func (p *parser) keyDefined(m *MapLookup, is token) any {
	at := p.coarse(is)
	differs := func(from Expr) Expr { return &Binary{Op: "!=", L: m, R: from, At: at} }
	return &Binary{Op: "and",
		L: &Binary{Op: "and",
			L: &Binary{Op: "in", L: m.Key, R: m.X, At: at},
			R: differs(&Literal{Kind: NullLiteral, At: at}), At: at},
		R: differs(&List{At: at}), At: at,
	}
}

// mapLookup has the place of its parts, if both are known exactly.
func mapLookup(x, key any) any {
	n := &MapLookup{X: x.(Expr), Key: key.(Expr)}
	a, b := n.X.Where(), n.Key.Where()
	at := a
	if before(b.Start, a.Start) {
		at.Start = b.Start
	}
	if before(a.End, b.End) {
		at.End = b.End
	}
	at.Coarse = a.Coarse || b.Coarse
	n.At = at
	return n
}

func before(a, b Pos) bool { return a.Line < b.Line || a.Line == b.Line && a.Col < b.Col }

func (p *parser) construct(typ Name, paren token, list any) any {
	a := list.(*arguments).ordered()
	n := &Construct{Type: typ, Named: a.named, Splats: a.splats, At: from(p.coarse(paren), typ.At)}
	if twice := repeated(a.named); twice != "" {
		return p.refuse("constructor", &Error{
			Kind: KindRuntime, Message: "The attribute " + twice + " in the constructor call of " + typ.Text +
				" is already set.",
			At: n.At, Statement: Render(n),
		})
	}
	return n
}

func (p *parser) call(f Name, list any) any {
	a := list.(*arguments).ordered()
	n := &Call{Func: f, Args: a.args, Named: a.named, Splats: a.splats, At: f.At}
	if twice := repeated(a.named); twice != "" {
		return p.refuse("function_call", &Error{
			Kind: KindRuntime, Message: "Keyword argument " + twice + " repeated in function call " + f.Text + "()",
			At: n.At, Statement: Render(n),
		})
	}
	return n
}

// fewNames is the number of names up to which comparing all pairs is faster than a map.
const fewNames = 16

// repeated returns the first argument name that occurs a second time.
func repeated(named []Argument) string {
	if len(named) <= fewNames {
		for n, a := range named {
			for _, before := range named[:n] {
				if before.Name.Name == a.Name.Name {
					return a.Name.Name
				}
			}
		}
		return ""
	}
	seen := make(map[string]bool, len(named))
	for _, a := range named {
		if seen[a.Name.Name] {
			return a.Name.Name
		}
		seen[a.Name.Name] = true
	}
	return ""
}

// namespaceAccess refuses a.b where a::b must be meant.
func (p *parser) namespaceAccess(left, text string, at Span) int {
	meant := strings.ReplaceAll(text, ".", "::")
	p.refuse(left, &Error{
		Kind: KindNamespaceAccess,
		Message: "Syntax error: invalid namespace access `" + text +
			"`. Namespaces should be accessed with '::' rather than '.'. " +
			"The '.' separator is reserved for attribute and relation access. Did you mean: `" + meant + "`",
		At: at, Hint: "write " + meant,
	})
	return 1
}

// comprehension nests its clauses: the last `for` is the innermost, and the
// guard belongs to it.
func (p *parser) comprehension(bracket token, value, clauses, guard any) any {
	e := value.(Expr)
	for i, c := range clauses.([]forClause) {
		n := &Comprehension{Value: e, Var: c.variable, Iter: c.iter, At: p.coarse(bracket)}
		if g, ok := guard.(Expr); ok && i == 0 {
			n.Guard = g
		}
		e = n
	}
	return e
}

func (p *parser) guard(word token, cond, rest any) any {
	if rest == nil {
		return cond
	}
	return &Binary{Op: "and", L: cond.(Expr), R: rest.(Expr), At: p.coarse(word)}
}

func (p *parser) dictKey(t token) any {
	if len(interpolations(t.text)) > 0 {
		return p.wrong("dict_key", p.span(t), "String interpolation is not supported in dictionary keys. "+
			"Use raw string to use a key containing double curly brackets")
	}
	return t
}

func (p *parser) dict(brace token, pairs any) any {
	entries := pairs.([]DictEntry)
	for i, j := 0, len(entries)-1; i < j; i, j = i+1, j-1 {
		entries[i], entries[j] = entries[j], entries[i]
	}
	seen := make(map[string]Expr, len(entries))
	for _, e := range entries {
		if first, ok := seen[e.Key]; ok {
			other := first.Where()
			return p.refuse("map_def", &Error{
				Kind: KindDuplicate, Message: "duplicate key in dict " + e.Key,
				At: e.Value.Where(), Other: &other, Statement: Render(e.Value),
			})
		}
		seen[e.Key] = e.Value
	}
	return &Dict{Entries: entries, At: p.coarse(brace)}
}
