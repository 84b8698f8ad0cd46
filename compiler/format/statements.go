package format

import "ordain.dev/ordain/compiler/syntax"

// parser lays out a text that is known to parse, so it looks ahead only as far as it must to find the
// end of each statement. When it does not understand something it is lost, and the file is not
// formatted.
type parser struct {
	tokens []token
	next   int
	lost   bool
}

func (p *parser) peek() *token { return p.ahead(0) }

func (p *parser) ahead(n int) *token { return &p.tokens[min(p.next+n, len(p.tokens)-1)] }

func (p *parser) done() bool { return p.peek().eof }

func (p *parser) at(text string) bool { return p.peek().is(text) }

func (p *parser) atKind(kind syntax.LexemeKind) bool {
	return !p.done() && p.peek().kind == kind
}

// take returns the next token. Comments before it for which there is no line of their own go to the
// end of its line.
func (p *parser) take() doc {
	t := p.peek()
	if t.eof {
		p.lost = true
		return doc{}
	}
	p.next++
	if t.before == nil && t.after == "" {
		return text(t.text)
	}
	var parts []doc
	for _, c := range t.before {
		parts = append(parts, remark(c.text))
	}
	parts = append(parts, text(t.text))
	if t.after != "" {
		parts = append(parts, remark(t.after))
	}
	return cat(parts...)
}

func (p *parser) expect(text string) doc {
	if !p.at(text) {
		p.lost = true
	}
	return p.take()
}

// lines collects documents that are on lines of their own, one below the other.
type lines struct{ parts []doc }

func (l *lines) add(after int, d doc) {
	if len(l.parts) > 0 {
		for range min(after-1, 2) {
			l.parts = append(l.parts, hard)
		}
		l.parts = append(l.parts, hard)
	}
	l.parts = append(l.parts, d)
}

// comments puts the comments before the next token on lines of their own.
func (p *parser) comments(l *lines) {
	t := p.peek()
	for _, c := range t.before {
		l.add(c.lines, text(c.text))
	}
	t.before = nil
}

func (p *parser) file() doc {
	var l lines
	p.statements(&l, func() bool { return false })
	p.comments(&l)
	if len(l.parts) > 0 {
		l.parts = append(l.parts, hard)
	}
	return cat(l.parts...)
}

// statements lays out statements up to the end of a block.
func (p *parser) statements(l *lines, end func() bool) {
	for !p.lost && !p.done() && !end() {
		p.comments(l)
		first := p.next
		after := p.peek().lines
		l.add(after, p.statement())
		p.lost = p.lost || p.next == first
	}
}

func (p *parser) statement() doc {
	switch {
	case p.at("import"):
		return p.words()
	case p.at("entity"):
		return p.entity()
	case p.at("implementation"):
		return p.implementation()
	case p.at("implement"):
		return p.implement()
	case p.at("typedef"):
		return p.typedef()
	case p.at("index"):
		return p.index()
	case p.at("for"):
		return p.forLoop()
	case p.at("if"):
		return p.conditional()
	case p.relates():
		return p.relation()
	}
	left := p.expression()
	if !p.at("=") && !p.at("+=") {
		return group(left)
	}
	return group(cat(left, text(" "), p.take(), text(" "), p.expression()))
}

// words lays out an import.
func (p *parser) words() doc {
	parts := []doc{p.take(), text(" "), p.name()}
	if p.at("as") {
		parts = append(parts, text(" "), p.take(), text(" "), p.take())
	}
	return cat(parts...)
}

// name is a::b::C.
func (p *parser) name() doc {
	d := p.take()
	for p.at("::") {
		d = cat(d, p.take(), p.take())
	}
	return d
}

// names is a list of names, on one line or one below the other.
func (p *parser) names() doc {
	parts := []doc{p.name()}
	for p.at(",") {
		parts = append(parts, p.take(), line, p.name())
	}
	return group(nest(cat(parts...)))
}

// block is the text between a colon and `end`, which begins with the documentation.
func (p *parser) block(body func(l *lines)) doc {
	colon := p.expect(":")
	inner := &lines{}
	body(inner)
	p.comments(inner)
	return cat(colon, below(inner), hard, p.expect("end"))
}

// below indents lines.
func below(l *lines) doc {
	if len(l.parts) == 0 {
		return doc{}
	}
	return nest(cat(append([]doc{hard}, l.parts...)...))
}

func (p *parser) atEnd() bool { return p.at("end") }

func (p *parser) entity() doc {
	head := []doc{p.take(), text(" "), p.take()}
	if p.at("extends") {
		head = append(head, text(" "), p.take(), text(" "), p.names())
	}
	return cat(group(cat(head...)), p.block(func(l *lines) {
		if p.atKind(syntax.MultiLine) {
			p.comments(l)
			l.add(0, p.take())
		}
		for !p.lost && !p.done() && !p.atEnd() {
			p.comments(l)
			after := p.peek().lines
			l.add(after, p.attribute())
		}
	}))
}

func (p *parser) attribute() doc {
	parts := []doc{p.name()}
	for p.at("[") || p.at("]") || p.at("?") {
		parts = append(parts, p.take())
	}
	parts = append(parts, text(" "), p.take())
	if p.at("=") {
		parts = append(parts, text(" "), p.take(), text(" "), p.operand())
	}
	return group(cat(parts...))
}

func (p *parser) implementation() doc {
	head := []doc{p.take(), text(" "), p.take(), text(" "), p.expect("for"), text(" "), p.name()}
	return cat(group(cat(head...)), p.block(func(l *lines) { p.statements(l, p.atEnd) }))
}

// documented adds the documentation string that may follow a definition.
func (p *parser) documented(d doc) doc {
	if !p.atKind(syntax.MultiLine) {
		return d
	}
	var l lines
	p.comments(&l)
	l.add(1, p.take())
	return cat(append([]doc{d, hard}, l.parts...)...)
}

func (p *parser) implement() doc {
	parts := []doc{p.take(), text(" "), p.name(), text(" "), p.expect("using"), text(" "), p.names()}
	if p.at("when") {
		parts = append(parts, nest(cat(line, p.take(), text(" "), p.expression())))
	}
	return p.documented(group(cat(parts...)))
}

func (p *parser) typedef() doc {
	parts := []doc{p.take(), text(" "), p.take(), text(" "), p.expect("as"), text(" "), p.name(), text(" "), p.take()}
	if p.tokens[p.next-1].kind != syntax.Matching {
		parts = append(parts, text(" "), p.expression())
	}
	return p.documented(group(cat(parts...)))
}

func (p *parser) index() doc {
	head := cat(p.take(), text(" "), p.name())
	open := p.expect("(")
	names := p.names()
	return group(cat(head, open, names, p.expect(")")))
}

func (p *parser) forLoop() doc {
	head := []doc{p.take(), text(" "), p.take(), text(" "), p.expect("in"), text(" "), p.expression()}
	return cat(group(cat(head...)), p.block(func(l *lines) { p.statements(l, p.atEnd) }))
}

// conditional is if … elif … else … end.
func (p *parser) conditional() doc {
	var parts []doc
	for branch := 0; !p.lost; branch++ {
		if branch > 0 {
			own := &lines{}
			p.comments(own)
			parts = append(append(parts, hard), own.parts...)
			if len(own.parts) > 0 {
				parts = append(parts, hard)
			}
		}
		last := p.at("else")
		head := []doc{p.take()}
		if !last {
			head = append(head, text(" "), p.expression())
		}
		parts = append(parts, group(cat(head...)), p.expect(":"))
		inner := &lines{}
		p.statements(inner, func() bool { return p.at("end") || p.at("elif") || p.at("else") })
		outer := p.outer()
		p.comments(inner)
		parts = append(parts, below(inner))
		if p.at("end") || last {
			break
		}
		p.peek().before = outer
	}
	return cat(append(parts, hard, p.expect("end"))...)
}

// outer takes the comments before elif and else that are on their level of indentation, because they
// are about what follows.
func (p *parser) outer() []comment {
	t := p.peek()
	if p.at("end") {
		return nil
	}
	n := len(t.before)
	for n > 0 && t.before[n-1].col <= t.col {
		n--
	}
	outer := t.before[n:]
	t.before = t.before[:n]
	return outer
}

// relates reports whether a relation begins here: a::B.x …
func (p *parser) relates() bool {
	n := 0
	for p.ahead(n).kind == syntax.LowerName && p.ahead(n+1).is("::") {
		n += 2
	}
	return p.ahead(n).kind == syntax.UpperName && !p.ahead(n).eof && p.ahead(n+1).is(".")
}

// ends reports whether the second side of a relation begins here, and not another annotation.
func (p *parser) ends() bool {
	n := 0
	for p.ahead(n).kind == syntax.LowerName && p.ahead(n+1).is("::") {
		n += 2
	}
	return p.ahead(n).kind == syntax.UpperName && !p.ahead(n+1).is("(") && !p.ahead(n+1).is("[")
}

func (p *parser) relation() doc {
	parts := []doc{p.side(), text(" ")}
	if p.at("--") || p.at("->") || p.at("<-") {
		parts = append(parts, p.take(), text(" "))
	} else {
		for more := true; more && !p.lost && !p.done() && !p.ends(); {
			parts = append(parts, p.expression())
			if more = p.at(","); more {
				parts = append(parts, p.take())
			}
			parts = append(parts, text(" "))
		}
	}
	return p.documented(group(cat(append(parts, p.side())...)))
}

// side is A.x [n:m], or A alone.
func (p *parser) side() doc {
	parts := []doc{p.name()}
	if !p.at(".") {
		return parts[0]
	}
	parts = append(parts, p.take(), p.take(), text(" "), p.expect("["))
	for !p.lost && !p.at("]") {
		parts = append(parts, p.take())
	}
	return cat(append(parts, p.take())...)
}
