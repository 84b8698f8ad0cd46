package format

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// doc is a piece of text that knows where it may be broken, after Wadler ("A
// prettier printer"). A group is printed on one line when it fits there.
type doc struct {
	kind  docKind
	text  string
	parts []doc
	// forced: it cannot be on one line.
	forced bool
	// pending: it ends with a comment, which needs a line end after it.
	pending bool
	// breaks: it has a possible line end outside of groups.
	breaks bool
}

type docKind uint8

const (
	textDoc   docKind = iota
	softDoc           // nothing, or a new line in a broken group
	lineDoc           // a blank, or a new line
	hardDoc           // a new line
	emptyDoc          // an empty line in a broken group, before the line that follows
	brokenDoc         // text only in a broken group
	remarkDoc         // a comment: moves to the end of its line
	catDoc
	nestDoc
	groupDoc
)

var (
	soft  = doc{kind: softDoc, breaks: true}
	line  = doc{kind: lineDoc, breaks: true}
	hard  = doc{kind: hardDoc, breaks: true, forced: true}
	empty = doc{kind: emptyDoc}
)

func text(s string) doc   { return doc{kind: textDoc, text: s} }
func remark(s string) doc { return doc{kind: remarkDoc, text: s, pending: true} }

// ifBroken is text in a broken group only.
func ifBroken(s string) doc { return doc{kind: brokenDoc, text: s} }

// cat is one document after the other. A line end that may follow a pending comment does.
func cat(parts ...doc) doc {
	d := doc{kind: catDoc, parts: parts}
	for _, p := range parts {
		d.forced = d.forced || p.forced || d.pending && p.breaks
		d.pending = d.pending && !p.breaks || p.pending
		d.breaks = d.breaks || p.breaks
	}
	return d
}

func nest(d doc) doc {
	return doc{kind: nestDoc, parts: []doc{d}, forced: d.forced, pending: d.pending, breaks: d.breaks}
}

func group(d doc) doc {
	return doc{kind: groupDoc, parts: []doc{d}, forced: d.forced, pending: d.pending, breaks: d.forced}
}

// command is a document that is still to be printed.
type command struct {
	doc    *doc
	indent int
	flat   bool
}

// Lines are indented by levels, but not more than deepest: else blanks would outnumber the text of
// deeply nested expressions.
const indentation, deepest = 4, 25 * 4

type printer struct {
	out     *bytes.Buffer
	column  int
	remarks []string
}

func render(out *bytes.Buffer, d doc) {
	p := &printer{out: out}
	stack := []command{{doc: &d}}
	for len(stack) > 0 {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch c.doc.kind {
		case textDoc:
			p.write(c.doc.text)
		case remarkDoc:
			p.remarks = append(p.remarks, c.doc.text)
		case brokenDoc:
			if !c.flat {
				p.write(c.doc.text)
			}
		case emptyDoc:
			if !c.flat {
				p.newline(0)
			}
		case softDoc, lineDoc, hardDoc:
			if c.flat && c.doc.kind != hardDoc {
				if c.doc.kind == lineDoc {
					p.write(" ")
				}
				continue
			}
			p.newline(c.indent)
		case nestDoc:
			stack = append(stack, command{&c.doc.parts[0], min(c.indent+indentation, deepest), c.flat})
		case groupDoc:
			c.flat = !c.doc.forced && (c.flat || fits(&c.doc.parts[0], stack, Width-p.column))
			stack = append(stack, command{&c.doc.parts[0], c.indent, c.flat})
		case catDoc:
			for i := len(c.doc.parts) - 1; i >= 0; i-- {
				stack = append(stack, command{&c.doc.parts[i], c.indent, c.flat})
			}
		}
	}
	p.flush()
}

func (p *printer) write(s string) {
	if s == "" {
		return
	}
	p.out.WriteString(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		p.column = utf8.RuneCountInString(s[i+1:])
		return
	}
	p.column += utf8.RuneCountInString(s)
}

// flush ends the line. Comments are put last and trailing blanks are removed.
func (p *printer) flush() {
	p.trim()
	for _, r := range p.remarks {
		if p.column > 0 {
			p.out.WriteString("  ")
		}
		p.out.WriteString(r)
		p.column += 2 + len(r)
	}
	p.remarks = p.remarks[:0]
}

func (p *printer) trim() {
	b := p.out.Bytes()
	n := len(b)
	for n > 0 && b[n-1] == ' ' {
		n--
	}
	p.column -= len(b) - n
	p.out.Truncate(n)
}

func (p *printer) newline(indent int) {
	p.flush()
	p.out.WriteByte('\n')
	for range indent {
		p.out.WriteByte(' ')
	}
	p.column = indent
}

// fits reports whether there is room for a document on one line and for what follows up to the next
// line end.
func fits(d *doc, rest []command, room int) bool {
	stack := []command{{doc: d, flat: true}}
	below := len(rest)
	for room >= 0 {
		if len(stack) == 0 {
			if below == 0 {
				return true
			}
			below--
			stack = append(stack, rest[below])
			continue
		}
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch c.doc.kind {
		case textDoc:
			first, _, more := strings.Cut(c.doc.text, "\n")
			room -= utf8.RuneCountInString(first)
			if more {
				return room >= 0
			}
		case brokenDoc:
			if !c.flat {
				room -= len(c.doc.text)
			}
		case softDoc, lineDoc:
			if !c.flat {
				return true
			}
			if c.doc.kind == lineDoc {
				room--
			}
		case hardDoc:
			return true
		case groupDoc:
			stack = append(stack, command{doc: &c.doc.parts[0], flat: c.flat && !c.doc.forced})
		case nestDoc:
			stack = append(stack, command{doc: &c.doc.parts[0], flat: c.flat})
		case catDoc:
			for i := len(c.doc.parts) - 1; i >= 0; i-- {
				stack = append(stack, command{doc: &c.doc.parts[i], flat: c.flat})
			}
		}
	}
	return false
}
