package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// interpolation is one {{ name }} in a string: the byte offsets of the whole and of the name.
type interpolation struct{ start, end, nameStart, nameEnd int }

// interpolations finds {{ a.b }}: names of letters, digits, `.`, `_` and `-`.
func interpolations(s string) []interpolation {
	var found []interpolation
	for i := 0; i < len(s); {
		j := strings.Index(s[i:], "{{")
		if j < 0 {
			break
		}
		i += j
		if m, ok := interpolationAt(s, i); ok {
			found = append(found, m)
			i = m.end
		} else {
			i++
		}
	}
	return found
}

func interpolationAt(s string, at int) (interpolation, bool) {
	m := interpolation{start: at}
	m.nameStart = skipSpace(s, at+2)
	i := m.nameStart
	for i < len(s) && (isLetter(s[i]) || isDigit(s[i]) || s[i] == '.' || s[i] == '-') {
		i++
	}
	m.nameEnd = i
	i = skipSpace(s, i)
	if m.nameEnd == m.nameStart || !strings.HasPrefix(s[i:], "}}") {
		return m, false
	}
	m.end = i + 2
	return m, true
}

func skipSpace(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isPySpace(r) {
			break
		}
		i += n
	}
	return i
}

// isPySpace reports whether Python takes a character for white space.
func isPySpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// stringNode makes the node of a plain or multi-line string: a Format if it has interpolations,
// else a Literal.
func (p *parser) stringNode(t token, multi bool) Expr {
	at := p.coarse(t)
	if multi {
		at.Coarse = false
	}
	found := interpolations(t.text)
	if len(found) == 0 {
		return &Literal{Kind: StringLiteral, Str: t.text, At: at}
	}
	quote := int32(1)
	if multi {
		quote = 3
	}
	n := &Format{Text: t.text, At: at}
	line, lineStart := t.start.Line, 0
	col, done := t.start.Col+quote, 0
	for _, m := range found {
		before := t.text[done:m.nameStart]
		if lines := strings.Count(before, "\n"); lines > 0 {
			line += int32(lines)
			lineStart = done + strings.LastIndexByte(before, '\n') + 1
			col = int32(utf8.RuneCountInString(t.text[lineStart:m.nameStart])) + 1
		} else {
			col += int32(utf8.RuneCountInString(before))
		}
		done = m.nameStart
		ref := p.reference(t.text[m.nameStart:m.nameEnd], Pos{line, col})
		n.Parts = append(n.Parts, FormatPart{Match: t.text[m.start:m.end], Ref: ref})
	}
	return n
}

// reference builds the reference a.b.c of a text that begins at a place. Blanks around the names
// are allowed. As in inmanta-core, nothing checks that they are names.
func (p *parser) reference(text string, at Pos) Expr {
	var ref Expr
	for part := range strings.SplitSeq(text, ".") {
		name := strings.TrimFunc(part, isPySpace)
		left := int32(utf8.RuneCountInString(part) - utf8.RuneCountInString(strings.TrimLeftFunc(part, isPySpace)))
		start := Pos{at.Line, at.Col + left}
		span := p.spanOf(start, Pos{at.Line, start.Col + int32(utf8.RuneCountInString(name))})
		if ref == nil {
			ref = &Ref{Name: Name{Text: name, At: span}}
		} else {
			ref = &AttrRef{X: ref, Attr: Ident{Name: name, At: span}, At: span}
		}
		at.Col += int32(utf8.RuneCountInString(part)) + 1
	}
	return ref
}

// fstring splits f"…" as Python's string.Formatter does. inmanta-core stops looking for fields at
// the first piece without one: at an escaped brace or at {}. Later fields stay unresolved.
func (p *parser) fstring(t token) any {
	pieces, problem := splitFormat(t.text)
	if problem != "" {
		return p.refuse("constant", &Error{
			Kind: KindParser, Message: "Syntax error: Invalid f-string: " + problem, At: p.span(t),
			Hint: "for a brace that is text, write it twice",
		})
	}
	n := &FString{Text: t.text, At: p.span(t)}
	length := func(s string) int32 { return int32(utf8.RuneCountInString(s)) }
	col := t.start.Col + 2
	resolving := true
	for _, f := range pieces {
		if f.text != "" {
			n.Pieces = append(n.Pieces, FPiece{Text: f.text})
		}
		resolving = resolving && f.name != ""
		if !f.field {
			continue
		}
		piece := FPiece{IsField: true, Field: f.name, Conversion: f.conversion}
		if resolving {
			col += length(f.text) + 1
			piece.Ref = p.reference(f.name, Pos{t.start.Line, col})
			col += length(f.name)
		}
		if f.spec != "" {
			inner, problem := splitFormat(f.spec)
			if problem != "" {
				return p.refuse("constant",
					&Error{Kind: KindParser, Message: "Syntax error: Invalid f-string: " + problem, At: p.span(t)})
			}
			col++
			within := resolving
			for _, g := range inner {
				if g.text != "" {
					piece.Spec = append(piece.Spec, FPiece{Text: g.text})
				}
				within = within && g.name != ""
				if !g.field {
					continue
				}
				sub := FPiece{IsField: true, Field: g.name, Conversion: g.conversion}
				if within {
					col += length(g.text) + 1
					sub.Ref = p.reference(g.name, Pos{t.start.Line, col})
					col += length(g.name) + 1
				}
				if g.spec != "" {
					sub.Spec = []FPiece{{Text: g.spec}}
				}
				piece.Spec = append(piece.Spec, sub)
			}
		}
		if resolving {
			col++
		}
		n.Pieces = append(n.Pieces, piece)
	}
	return n
}

// rawField is literal text and the replacement field that follows it, if any.
type rawField struct {
	text       string
	field      bool
	name       string
	conversion rune
	spec       string
}

// splitFormat cuts a format string into pieces as Python does; problem is Python's message. A
// doubled brace ends a piece without a field.
func splitFormat(s string) (pieces []rawField, problem string) {
	for len(s) > 0 {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			return append(pieces, rawField{text: s}), ""
		}
		doubled := i+1 < len(s) && s[i+1] == s[i]
		switch {
		case doubled:
			pieces = append(pieces, rawField{text: s[:i+1]})
			s = s[i+2:]
			continue
		case s[i] == '}':
			return nil, "Single '}' encountered in format string"
		case i+1 == len(s):
			return nil, "Single '{' encountered in format string"
		}
		f := rawField{text: s[:i], field: true}
		if s, problem = f.read(s[i+1:]); problem != "" {
			return nil, problem
		}
		pieces = append(pieces, f)
	}
	return pieces, ""
}

// read reads a field up to its closing brace and returns the text that follows.
func (f *rawField) read(s string) (rest, problem string) {
	end := 0
scan:
	for ; end < len(s); end++ {
		switch s[end] {
		case '{':
			return "", "unexpected '{' in field name"
		case '[':
			if j := strings.IndexByte(s[end:], ']'); j >= 0 {
				end += j
			} else {
				end = len(s) - 1
			}
		case '}', ':', '!':
			break scan
		}
	}
	if end == len(s) {
		return "", "expected '}' before end of string"
	}
	f.name = s[:end]
	stop := s[end]
	s = s[end+1:]
	if stop == '}' {
		return s, ""
	}
	if stop == '!' {
		if s == "" {
			return "", "end of string while looking for conversion specifier"
		}
		r, n := utf8.DecodeRuneInString(s)
		f.conversion = r
		s = s[n:]
		if s == "" {
			return "", "unmatched '{' in format spec"
		}
		switch s[0] {
		case '}':
			return s[1:], ""
		case ':':
			s = s[1:]
		default:
			return "", "expected ':' after conversion specifier"
		}
	}
	depth := 1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				f.spec = s[:i]
				return s[i+1:], ""
			}
		}
	}
	return "", "unmatched '{' in format spec"
}
