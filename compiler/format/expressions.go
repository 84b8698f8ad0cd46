package format

import "ordain.dev/ordain/compiler/syntax"

// piece is an operand with the operator before it; the first has none.
type piece struct {
	op      doc
	level   int
	operand doc
}

// levels are the precedences of operators, loosest first. A long expression is broken before the
// loosest.
var levels = map[string]int{
	"?": 0, "or": 1, "and": 2,
	"==": 3, "!=": 3, "<": 3, ">": 3, "<=": 3, ">=": 3, "in": 3, "not": 3,
	"+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "**": 6,
}

const lastLevel = 6

// expression lays out operands and operators. A colon is part of it only in `c ? a : b`.
func (p *parser) expression() doc {
	pieces := []piece{{operand: p.operand()}}
	conditions := 0
	for !p.lost && !p.done() {
		t := p.peek()
		level, is := levels[t.text]
		switch {
		case t.is(":") && conditions > 0:
			conditions--
			level = 0
		case !is || !t.is(t.text):
			return chain(pieces, 0)
		case t.is("?"):
			conditions++
		}
		op := p.take()
		if t.is("not") { // not in
			op = cat(op, text(" "), p.expect("in"))
		}
		pieces = append(pieces, piece{op, level, p.operand()})
	}
	return chain(pieces, 0)
}

// chain breaks an expression before its loosest operators, if it must.
func chain(pieces []piece, level int) doc {
	if len(pieces) == 1 {
		return pieces[0].operand
	}
	var all []doc
	first := true
	for start := 0; start < len(pieces); {
		end := start + 1
		for end < len(pieces) && level < lastLevel && pieces[end].level != level {
			end++
		}
		if end-start == len(pieces) {
			return chain(pieces, level+1)
		}
		part := chain(pieces[start:end], level+1)
		if !first {
			part = cat(line, pieces[start].op, text(" "), part)
		} else if end-start > 1 {
			part = nest(part) // indented further than the looser operators below it
		}
		all = append(all, part)
		first, start = false, end
	}
	return group(cat(all[0], nest(cat(all[1:]...))))
}

func (p *parser) operand() doc {
	switch t := p.peek(); {
	case t.is("not"):
		return cat(p.take(), text(" "), p.operand())
	case t.is("("):
		open := p.take()
		inner := p.expression()
		return p.closed(cat(open, nest(cat(soft, inner))), ")")
	case t.is("["):
		return p.bracket("]", p.expression)
	case t.is("{"):
		return p.bracket("}", p.pair)
	case t.kind == syntax.LowerName || t.kind == syntax.UpperName:
		return p.reference()
	}
	return p.take()
}

// closed is a group with its closing bracket. A comment after that does not break the group.
func (p *parser) closed(inner doc, bracket string) doc {
	last := &lines{}
	p.comments(last)
	if len(last.parts) > 0 {
		inner = cat(inner, below(last), hard)
	} else {
		inner = cat(inner, soft)
	}
	t := p.peek()
	after := t.after
	t.after = ""
	d := group(cat(inner, p.expect(bracket)))
	if after != "" {
		d = cat(d, remark(after))
	}
	return d
}

// reference is a name and what may follow it: a.b, f(…), C[…], d["k"].
func (p *parser) reference() doc {
	d := p.take()
	for p.at("::") {
		d = cat(d, p.take(), p.take())
	}
	class := p.tokens[p.next-1].kind == syntax.UpperName
	switch {
	case p.at("("):
		return cat(d, p.bracket(")", p.argument))
	case class && p.at("["):
		return cat(d, p.bracket("]", p.argument))
	}
	for !p.lost && !class {
		switch {
		case p.at("."):
			d = cat(d, p.take(), p.take())
		case p.at("[") && p.isQuery():
			return cat(d, p.bracket("]", p.argument))
		case p.at("["):
			open := p.take()
			key := p.expression()
			d = cat(d, p.closed(cat(open, nest(cat(soft, key))), "]"))
		case p.at("is"):
			return cat(d, text(" "), p.take(), text(" "), p.expect("defined"))
		default:
			return d
		}
	}
	return d
}

// isQuery reports whether a bracket begins x.rel[k=v] and not d["k"].
func (p *parser) isQuery() bool {
	first := p.ahead(1)
	return first.is("]") || first.is("**") || first.kind == syntax.LowerName && p.ahead(2).is("=")
}

func (p *parser) argument() doc {
	switch {
	case p.at("**"):
		return cat(p.take(), p.expression())
	case p.peek().kind == syntax.LowerName && p.ahead(1).is("="):
		return cat(p.take(), p.take(), p.expression())
	}
	return p.expression()
}

func (p *parser) pair() doc { return cat(p.take(), p.expect(":"), text(" "), p.expression()) }

// bracket is a list of items between brackets, or a comprehension. It stays broken if the author broke
// the line after the opening bracket.
func (p *parser) bracket(closing string, item func() doc) doc {
	open := p.take()
	kept := p.peek().breaks()
	if p.at(closing) && len(p.peek().before) == 0 {
		return cat(open, p.take())
	}
	var parts []doc
	for !p.lost && !p.done() && !p.at(closing) {
		parts = append(parts, p.between(len(parts) == 0)...)
		parts = append(parts, item())
		if p.at("for") {
			parts = append(parts, p.clauses()...)
			break
		}
		if !p.at(",") {
			parts = append(parts, ifBroken(","))
			break
		}
		comma := p.take()
		if !p.at(closing) {
			parts = append(parts, comma)
			continue
		}
		// The printer decides about the last comma; a comment after it stays.
		parts = append(parts, ifBroken(","))
		if after := p.tokens[p.next-1].after; after != "" {
			parts = append(parts, remark(after))
		}
	}
	inner := cat(open, nest(cat(parts...)))
	inner.forced = inner.forced || kept
	return p.closed(inner, closing)
}

// between separates an item from the one before. In a broken list that is a line end, with an empty
// line and comments if the author has them.
func (p *parser) between(first bool) []doc {
	t := p.peek()
	after := t.lines
	if t.before != nil {
		after = t.before[0].lines
	}
	parts := []doc{line}
	switch {
	case first:
		parts[0] = soft
	case after > 1:
		parts = []doc{empty, line}
	}
	own := &lines{}
	p.comments(own)
	if len(own.parts) > 0 {
		parts = append(append(parts, own.parts...), hard)
	}
	return parts
}

// clauses are the `for x in l` and `if g` of a comprehension.
func (p *parser) clauses() []doc {
	var parts []doc
	for !p.lost && (p.at("for") || p.at("if")) {
		parts = append(parts, line, p.take(), text(" "))
		if p.tokens[p.next-1].is("for") {
			parts = append(parts, p.take(), text(" "), p.expect("in"), text(" "))
		}
		parts = append(parts, p.expression())
	}
	return parts
}
