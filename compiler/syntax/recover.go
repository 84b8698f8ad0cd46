package syntax

import (
	"slices"
	"strings"
)

// After the first error of a file the parser looks for further ones, so that they are reported
// together. The statement that failed is replaced by blanks, from its beginning to a place where
// something new certainly begins, and the text is parsed a second time:
//
//	implementation a for A:            implementation a for A:
//	    x = = 1                ─▶
//	    y = 2                              y = 2
//	end                                end
//
// Indentation decides, because people indent what belongs together: the failed statement ends at
// the next line that is not indented further. Where the indentation says nothing, only a keyword
// that begins a definition is trusted. An error that another one may have caused is not reported.
const (
	mostRecovered = 20       // further errors of one file
	mostReparsed  = 16 << 20 // bytes to parse once more
)

// nowhere is the mark of a symbol without tokens.
var nowhere = mark{offset: -1}

// mark is where a token begins.
type mark struct {
	offset int
	line   int32
	indent int32 // column of the first token on its line
	first  bool  // it is that one
}

// symbol is a symbol on the parser's stack, and where it begins.
type symbol struct {
	at   mark
	name int
}

// wreck is the state of a parser that stopped at an error.
type wreck struct {
	tables  *exactTables
	scanner *scanner
	stack   []int16
	symbols []symbol
	kind    int  // of the token looked at; -1: none
	at      mark // of the last token
	line    int32
	indent  int32
	refused string // left side of the production whose action found something wrong
}

// look reads the lookahead token and records where it begins.
func (w *wreck) look(t *token) {
	s := w.scanner
	s.skip()
	w.at = mark{offset: s.pos, line: s.line, first: s.line != w.line}
	if w.at.first {
		w.indent = s.place(s.pos).Col
	}
	w.at.indent = w.indent
	w.kind = s.next(t)
	w.line = s.line // what follows on the last line of a text is not the first of it
}

func (w *wreck) shift() {
	w.symbols = append(w.symbols, symbol{w.at, w.tables.kinds[w.kind]})
}

func (w *wreck) reduce(symbols, left int) {
	from := len(w.symbols) - symbols
	made := symbol{nowhere, left}
	for _, s := range w.symbols[from:] {
		if s.at != nowhere {
			made.at = s.at
			break
		}
	}
	w.symbols = append(w.symbols[:from], made)
}

func (w *wreck) stopped(stack []int16) *wreck {
	w.stack = stack
	return w
}

// recovered returns the errors after the first one, in the order of the text.
func recovered(file *File, text string, first *Error, w *wreck) []*Error {
	var found []*Error
	line := first.At.Start.Line
	for budget := mostReparsed; w != nil && len(found) < mostRecovered-1; {
		from, to, ok := w.damage(text)
		if budget -= len(text); !ok || budget < 0 {
			break
		}
		text = text[:from] + blank(text[from:to]) + text[to:]
		var e *Error
		e, w = parse(&File{Path: file.Path, Namespace: file.Namespace, Lines: file.Lines}, text)
		if w == nil || w.at.offset < to {
			break
		}
		if !w.follows() && (e.At.Start.Line > line || w.refused != "") {
			found = append(found, e)
			line = e.At.Start.Line
		}
	}
	return found
}

// blank replaces all bytes of a text but line ends by blanks.
func blank(text string) string {
	blanks := []byte(text)
	for i, c := range blanks {
		if c != '\n' {
			blanks[i] = ' '
		}
	}
	return string(blanks)
}

// follows reports whether an earlier error may have caused this one: something is closed that
// nothing opened, or the file ends too early.
func (w *wreck) follows() bool {
	if w.scanner.err != nil || w.refused != "" {
		return false
	}
	units := w.units()
	switch w.kind {
	case 0:
		return true
	case tEND, tELSE, tELIF:
		return !slices.ContainsFunc(units, func(u unit) bool { return u.block })
	case ')', ']', '}':
		return len(units) == 0 || units[len(units)-1].at == w.at
	}
	return false
}

// unit is a definition, a statement or an attribute that has begun.
type unit struct {
	at     mark
	block  bool // it ends in `end`
	member bool // of an entity
}

// units are those that are not complete, from the outermost to the innermost.
func (w *wreck) units() []unit {
	t := w.tables
	var list []unit
	for n, state := range w.stack {
		what := ""
		for _, name := range []string{"attr", "statement", "top_stmt"} {
			if t.jump[state][slices.Index(t.names, name)] > 0 {
				what = name
			}
		}
		if what == "" {
			continue
		}
		u := unit{at: w.at, member: what == "attr"}
		if n+1 < len(w.symbols) {
			next := w.symbols[n+1]
			switch name := t.names[next.name]; name {
			case "entity_body_outer", "stmt_list", "block":
				continue
			case "head", "top_stmt", "statement", "attr", "entity_body":
				if n+2 < len(w.symbols) {
					continue
				}
			default:
				u.at = next.at
				// One that was refused as a whole has its `end`.
				u.block = blocks[name] && !strings.HasSuffix(w.refused, "_def")
			}
		}
		if u.at != nowhere {
			list = append(list, u)
		}
	}
	return list
}

var blocks = map[string]bool{"tENTITY": true, "tIMPLEMENTATION": true, "tIF": true, "tFOR": true}

// damage is the part of the text to replace by blanks. ok is false when nothing after it can be
// trusted.
func (w *wreck) damage(text string) (from, to int, ok bool) {
	units := w.units()
	if len(units) == 0 {
		return 0, 0, false
	}
	failed := units[len(units)-1]
	depth := brackets(text[failed.at.offset:w.at.offset])
	if w.scanner.err != nil {
		if strings.Count(text[w.at.offset:], `"""`)%2 != 0 {
			return 0, 0, false // what follows may be the text of a string
		}
		w.nextLine()
		w.kind = -1
	}
	// Something that is indented but in no block belongs to a block that ended too early.
	for astray := len(units) == 1 && failed.at.indent > 1; ; {
		switch {
		case w.kind == 0:
			return 0, 0, false
		case w.kind > 0 && w.at.first:
			if from, to, ok := w.resume(units, depth, astray); ok {
				return from, to, true
			}
			astray = astray || w.at.indent < failed.at.indent
		}
		if w.kind > 0 {
			depth += deeper(w.kind)
		}
		if w.look(new(token)); w.scanner.err != nil {
			w.nextLine()
			w.kind = -1
		}
	}
}

// resume decides whether the lookahead token, the first of its line, ends the failed unit, and which
// part of the text is dropped then. depth is how many brackets are open in it. astray: a line
// of it was indented less than its beginning.
func (w *wreck) resume(units []unit, depth int, astray bool) (from, to int, ok bool) {
	n := len(units) - 1
	failed := units[n]
	switch {
	case opensTop[w.kind] && w.at.indent <= units[0].at.indent:
		return units[0].at.offset, w.at.offset, w.at.offset > units[0].at.offset
	case astray, w.at.line <= failed.at.line, depth > 0 && w.closesMore():
		return 0, 0, false
	}
	switch w.kind {
	case tEND, tELSE, tELIF:
		for k := n; k >= 0; k-- {
			if !units[k].block || units[k].at.indent != w.at.indent {
				continue
			}
			if k < n {
				return units[k+1].at.offset, w.at.offset, true
			}
			return failed.at.offset, w.scanner.pos, w.kind == tEND
		}
	case tID, tCID, tFOR, tIF, tDICT:
		fits := !failed.block && w.at.indent == failed.at.indent
		if failed.member {
			fits = fits && (w.kind == tID || w.kind == tDICT)
		}
		return failed.at.offset, w.at.offset, fits
	}
	return 0, 0, false
}

// nextLine skips the rest of a line that the scanner cannot read.
func (w *wreck) nextLine() {
	s := w.scanner
	s.err = nil
	s.pos += strings.IndexByte(s.text[s.pos:], '\n') + 1 // the text always ends in a newline
	s.line++
	s.newline(s.pos)
}

// closesMore reports whether the text from the lookahead token to the next definition closes more
// brackets than it opens.
func (w *wreck) closesMore() bool {
	const most = 64 << 10
	s := newScanner(&File{}, w.scanner.text)
	s.pos = w.at.offset
	for depth := 0; depth >= 0; {
		var t token
		kind := s.next(&t)
		if kind <= 0 || s.err != nil || opensTop[kind] || s.pos > w.at.offset+most {
			return false
		}
		if depth += deeper(kind); depth < 0 {
			return true
		}
	}
	return false
}

// brackets counts the brackets that a piece of text leaves open.
func brackets(text string) int {
	s := newScanner(&File{}, text)
	for depth := 0; ; {
		var t token
		kind := s.next(&t)
		if kind <= 0 || s.err != nil {
			return depth
		}
		depth += deeper(kind)
	}
}

func deeper(kind int) int {
	switch kind {
	case '(', '[', '{':
		return 1
	case ')', ']', '}':
		return -1
	}
	return 0
}
