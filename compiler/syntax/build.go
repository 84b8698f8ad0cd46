package syntax

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// These functions build the tree for the actions of the grammar, from small nodes to large
// ones. The grammar recurses on the right, so lists are built backwards and reversed at the end.

type entityBody struct {
	doc        string
	attributes []*Attribute
}

type implementationBody struct {
	doc  string
	body []Stmt
}

type implementList struct {
	parents bool
	using   []Name
}

func (l implementList) join(m implementList) implementList {
	return implementList{l.parents || m.parents, append(l.using, m.using...)}
}

type forClause struct {
	variable Ident
	iter     Expr
}

// arguments are those of a call, constructor or lookup. The grammar pushes them from the last
// to the first.
type arguments struct {
	args   []Expr
	named  []Argument
	splats []Splat
}

func (a *arguments) push(one any) *arguments {
	switch one := one.(type) {
	case *Argument:
		a.named = append(a.named, *one)
	case Splat:
		a.splats = append(a.splats, one)
	default:
		a.args = append(a.args, one.(Expr))
	}
	return a
}

// ordered returns the arguments in the order of the text.
func (a *arguments) ordered() *arguments {
	slices.Reverse(a.args)
	slices.Reverse(a.named)
	slices.Reverse(a.splats)
	return a
}

func pushStmt(list, s any) any {
	l, _ := list.([]Stmt)
	return append(l, s.(Stmt))
}

func stmts(list any) []Stmt {
	l, _ := list.([]Stmt)
	slices.Reverse(l)
	return l
}

func pushExpr(list, e any) any {
	l, _ := list.([]Expr)
	return append(l, e.(Expr))
}

func exprs(list any) []Expr {
	l, _ := list.([]Expr)
	slices.Reverse(l)
	return l
}

func reversed(l []Ident) []Ident {
	slices.Reverse(l)
	return l
}

func pushPair(list, key, value any) any {
	l, _ := list.([]DictEntry)
	return append(l, DictEntry{Key: key.(token).text, Value: value.(Expr)})
}

func (p *parser) finish(doc, body any) {
	if t, ok := doc.(token); ok {
		p.doc = t.text
	}
	p.top = stmts(body)
}

// span is the place of a token of which the reference keeps the columns.
func (p *parser) span(t token) Span { return p.spanOf(t.start, t.end) }

// coarse is the place of a token of which the reference keeps only the line.
func (p *parser) coarse(t token) Span {
	return Span{File: p.file, Start: Pos{t.first, t.start.Col}, End: t.end, Coarse: true}
}

// from widens a coarse place to begin where start begins, if that is on its line.
func from(s, start Span) Span {
	if start.Start.Line == s.Start.Line {
		s.Start = start.Start
	}
	return s
}

func (p *parser) ident(t token) Ident { return Ident{Name: t.text, At: p.span(t)} }

func (p *parser) name(t token) Name { return Name{Text: t.text, At: p.span(t)} }

func (p *parser) join(n Name, t token) Name {
	n.Text += "::" + t.text
	n.At.End = t.end
	return n
}

// The functions that follow report errors that are found while parsing. They return nil, or 1
// to end the generated parser at once.

func (p *parser) wrong(left string, at Span, message string) any {
	return p.refuse(left, &Error{Kind: KindParser, Message: "Syntax error: " + message, At: at})
}

func (p *parser) badName(left string, name token, message string) int {
	p.wrong(left, p.span(name), message)
	if p.refused == nil {
		return 1
	}
	first, rest := name.text[:1], name.text[1:]
	switch message {
	case msgEntityName:
		p.refused.err.Hint = "write " + strings.ToUpper(first) + rest
	case msgAttributeName:
		p.refused.err.Hint = "write " + strings.ToLower(first) + rest
	}
	return 1
}

func (p *parser) badClass(ref any) int {
	p.wrong("class_ref_list", ref.(Expr).Where(), msgEntityName)
	return 1
}

func (p *parser) nullForDict(name token) int {
	return p.badName("attr", name, "null can not be assigned to dict, did you mean \"dict? "+name.text+" = null\"")
}

func (p *parser) hyphen(left, name string, at Span) any {
	return p.refuse(left, &Error{
		Kind: KindHyphen, Message: "The use of '-' in identifiers is not allowed. please rename " + name + ".",
		At: at, Statement: name, Hint: "for a subtraction, put blanks around the minus sign",
	})
}

// Constants.

func parseInt(text string) *big.Int {
	if small, err := strconv.ParseInt(text, 10, 64); err == nil {
		return big.NewInt(small)
	}
	n, _ := new(big.Int).SetString(text, 10)
	return n
}

// parseFloat returns infinity for a number that is too large, as Python does.
func parseFloat(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

// Unlimited is the upper bound of a multiplicity that has none.
const Unlimited = math.MaxInt

// multInt reads a bound of a multiplicity.
func multInt(t token) int {
	n, err := strconv.Atoi(t.text)
	if err != nil {
		return Unlimited
	}
	return n
}

func (p *parser) integer(t token) Expr {
	return &Literal{Kind: IntLiteral, Int: parseInt(t.text), At: p.coarse(t)}
}

func (p *parser) float(t token) Expr {
	return &Literal{Kind: FloatLiteral, Float: parseFloat(t.text), At: p.coarse(t)}
}

func (p *parser) null(t token) Expr {
	return &Literal{Kind: NullLiteral, At: p.coarse(t)}
}

func (p *parser) boolean(t token, v bool) Expr {
	return &Literal{Kind: BoolLiteral, Bool: v, At: p.coarse(t)}
}

func (p *parser) regex(t token) Expr {
	return &Regex{Pattern: t.text, At: p.coarse(t)}
}

// References.

func (p *parser) attrRef(x Expr, dot, attr token) Expr {
	at := from(p.coarse(dot), x.Where())
	at.End = attr.end
	return &AttrRef{X: x, Attr: p.ident(attr), At: at}
}

// refText is a reference as written.
func refText(ref any) string {
	var attrs []string
	for {
		switch r := ref.(type) {
		case *AttrRef:
			attrs = append(attrs, r.Attr.Name)
			ref = r.X
			continue
		case *Ref:
			attrs = append(attrs, r.Name.Text)
		}
		slices.Reverse(attrs)
		return strings.Join(attrs, ".")
	}
}

// refSpan is the place of a whole reference.
func refSpan(ref any) Span {
	switch r := ref.(type) {
	case *Ref:
		return r.Name.At
	case *AttrRef:
		at := refSpan(r.X)
		at.End = r.Attr.At.End
		return at
	}
	return Span{}
}
