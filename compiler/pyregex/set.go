package pyregex

import "strings"

// set reads […].
func (p *parser) set() *node {
	here := p.at() - 1
	negated := p.match("^")
	next := func() token {
		t := p.get()
		if t == "" {
			p.failAt(here, "unterminated character set")
		}
		return t
	}
	var members []member
	for {
		this := next()
		if this == "]" && len(members) > 0 {
			break
		}
		from := p.member(this)
		if !p.match("-") {
			members = append(members, from)
			continue
		}
		that := next()
		if that == "]" {
			members = append(members, from, member{lo: '-', hi: '-'})
			break
		}
		to := p.member(that)
		if from.class != 0 || to.class != 0 || to.lo < from.lo {
			p.fail(this.size()+1+that.size(), "bad character range %s-%s", this, that)
		}
		members = append(members, member{lo: from.lo, hi: to.lo, ranged: true})
	}
	n := set(members, negated)
	if only := n.members[0]; len(n.members) == 1 && only.class == 0 && !only.ranged {
		n = literal(only.lo)
		if negated {
			n.kind = kNotLiteral
		}
	}
	return n
}

// member reads one character of a set, or a class such as \d.
func (p *parser) member(this token) member {
	if !this.escape() {
		r := this.char()
		return member{lo: r, hi: r}
	}
	c := string(this[1:])
	if strings.Contains(classes, c) {
		return member{class: c[0]}
	}
	var r rune
	switch {
	case strings.Contains(octal, c):
		r = p.octal(c + p.while(2, octal))
	case c == "8" || c == "9":
		p.fail(2, "bad escape %s", this)
	default:
		r = p.character(this)
	}
	return member{lo: r, hi: r}
}
