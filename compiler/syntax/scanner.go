package syntax

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ordain.dev/ordain/compiler/pyregex"
)

// token is a token of the text.
type token struct {
	text       string // decoded for strings, the pattern of a regex, else as written
	start, end Pos
	// first is the line on which the reference places the token: the one on
	// which it begins, also for a regex that hangs below its `matching`.
	first int32
}

// scanner splits text into tokens. The rules are tried in a fixed order and the first that matches
// wins, not the longest: `x <-1` has the relation arrow in it.
//
// It counts lines and columns as the reference does. A multi-line string advances the line number
// but not the beginning of the line, so columns after it, on its last line, count from the line on
// which the string began. Line ends between `matching` and its regex are not counted at all.
type scanner struct {
	text string // tokens are parts of it
	pos  int    // next byte
	line int32
	// Columns count from lineStart. marked and markedCol remember the last result of
	// place, so that the characters of a long line are counted once.
	lineStart int
	marked    int
	markedCol int32

	file     *File
	warnings []Warning
	err      *Error
}

var keywords = map[string]int{
	"typedef": tTYPEDEF, "as": tAS, "entity": tENTITY, "extends": tEXTENDS, "end": tEND, "in": tIN,
	"implementation": tIMPLEMENTATION, "for": tFOR, "matching": tMATCHING, "index": tINDEX,
	"implement": tIMPLEMENT, "using": tUSING, "when": tWHEN, "and": tAND, "or": tOR, "not": tNOT,
	"true": tTRUE, "false": tFALSE, "import": tIMPORT, "is": tIS, "defined": tDEFINED, "dict": tDICT,
	"null": tNULL, "undef": tUNDEF, "parents": tPARENTS, "if": tIF, "else": tELSE, "elif": tELIF,
}

var keywordKinds = func() map[int]bool {
	kinds := map[int]bool{}
	for _, k := range keywords {
		kinds[k] = true
	}
	return kinds
}()

func newScanner(file *File, text string) *scanner {
	return &scanner{text: text, line: 1, file: file, markedCol: 1}
}

// place returns the line and column of a byte, which must not precede that of the last call.
func (s *scanner) place(at int) Pos {
	if at < s.marked {
		return Pos{s.line, int32(utf8.RuneCountInString(s.text[s.lineStart:at])) + 1}
	}
	s.markedCol += int32(utf8.RuneCountInString(s.text[s.marked:at]))
	s.marked = at
	return Pos{s.line, s.markedCol}
}

func (s *scanner) newline(at int) {
	s.lineStart, s.marked, s.markedCol = at, at, 1
}

// next reads one token and returns its kind: 0 at the end, tBAD after an error.
func (s *scanner) next(t *token) int {
	s.skip()
	if s.pos >= len(s.text) {
		at := s.place(len(s.text))
		*t = token{start: at, end: at, first: s.line}
		return 0
	}
	return s.scan(t)
}

// skip skips blanks, line ends and comments.
func (s *scanner) skip() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t':
			s.pos++
		case '\n':
			s.pos++
			s.line++
			s.newline(s.pos)
		case '#':
			end := strings.IndexByte(s.text[s.pos:], '\n')
			s.pos += end + 1 // the text always ends in a newline
			s.line++
			s.newline(s.pos)
		default:
			return
		}
	}
}

func (s *scanner) scan(t *token) int {
	c := s.text[s.pos]
	switch {
	case c == 'm':
		if end, slash := s.regexEnd(); end > 0 {
			return s.regex(t, end, slash)
		}
		return s.word(t)
	case c == 'f' || c == 'r':
		if end := stringEnd(s.text, s.pos+1); end > 0 {
			kind, from := tRSTRING, s.pos+2
			if c == 'f' {
				kind = tFSTRING
			}
			s.simple(t, end)
			if c == 'f' {
				t.text = s.decode(from, end-1, "Invalid escape sequence in f-string.")
			} else {
				t.text = s.text[from : end-1]
			}
			return kind
		}
		return s.word(t)
	case isLetter(c):
		return s.word(t)
	case isDigit(c):
		return s.number(t, s.pos)
	case c == '"':
		if end := multiLineEnd(s.text, s.pos); end > 0 {
			return s.multiLine(t, end)
		}
		return s.quoted(t)
	case c == '\'':
		return s.quoted(t)
	}
	return s.operator(t, c)
}

func (s *scanner) operator(t *token, c byte) int {
	var d byte
	if s.pos+1 < len(s.text) {
		d = s.text[s.pos+1]
	}
	switch c {
	case ':':
		if d == ':' {
			return s.take(t, 2, tSEP)
		}
		return s.take(t, 1, ':')
	case '-':
		if d == '-' || d == '>' {
			return s.take(t, 2, tREL)
		}
		if isDigit(d) || s.fraction(s.pos+1) {
			return s.number(t, s.pos+1)
		}
		return s.take(t, 1, tMINUS_OP)
	case '<':
		switch d {
		case '-':
			return s.take(t, 2, tREL)
		case '=':
			return s.take(t, 2, tCMP_OP)
		}
		return s.take(t, 1, tCMP_OP)
	case '>':
		if d == '=' {
			return s.take(t, 2, tCMP_OP)
		}
		return s.take(t, 1, tCMP_OP)
	case '!':
		if d == '=' {
			return s.take(t, 2, tCMP_OP)
		}
	case '=':
		if d == '=' {
			return s.take(t, 2, tCMP_OP)
		}
		return s.take(t, 1, '=')
	case '+':
		if d == '=' {
			return s.take(t, 2, tPEQ)
		}
		return s.take(t, 1, tPLUS_OP)
	case '*':
		if d == '*' {
			return s.take(t, 2, tDOUBLE_STAR)
		}
		return s.take(t, 1, '*')
	case '/':
		return s.take(t, 1, tDIVISION_OP)
	case '.':
		if s.fraction(s.pos) {
			return s.number(t, s.pos)
		}
		return s.take(t, 1, '.')
	case '[', ']', '(', ')', ',', '{', '}', '?', '%':
		return s.take(t, 1, int(c))
	}
	return s.illegal(t)
}

// simple fills in a token on one line and advances past it.
func (s *scanner) simple(t *token, end int) {
	t.start = s.place(s.pos)
	t.end = s.place(end)
	t.first = s.line
	s.pos = end
}

func (s *scanner) take(t *token, n, kind int) int {
	t.text = s.text[s.pos : s.pos+n]
	s.simple(t, s.pos+n)
	return kind
}

func (s *scanner) word(t *token) int {
	end := s.pos + 1
	for end < len(s.text) && (isLetter(s.text[end]) || isDigit(s.text[end]) || s.text[end] == '-') {
		end++
	}
	word := s.text[s.pos:end]
	upper := word[0] >= 'A' && word[0] <= 'Z'
	t.text = word
	s.simple(t, end)
	if upper {
		return tCID
	}
	if k, ok := keywords[t.text]; ok {
		return k
	}
	return tID
}

// fraction reports whether there is `.digits` at an offset.
func (s *scanner) fraction(at int) bool {
	return at+1 < len(s.text) && s.text[at] == '.' && isDigit(s.text[at+1])
}

// number reads an integer or float whose first digit, or point, is at from; a minus sign may precede
// it.
func (s *scanner) number(t *token, from int) int {
	end := from
	for end < len(s.text) && isDigit(s.text[end]) {
		end++
	}
	kind := tINT
	if s.fraction(end) {
		kind = tFLOAT
		end++
		for end < len(s.text) && isDigit(s.text[end]) {
			end++
		}
	}
	t.text = s.text[s.pos:end]
	s.simple(t, end)
	if kind == tINT && end-from > maxDigits {
		s.fail(&Error{
			Kind: KindValue,
			Message: "Exceeds the limit (4300 digits) for integer string conversion: value has " + strconv.Itoa(
				end-from,
			) + " digits; use sys.set_int_max_str_digits() to increase the limit",
			At:   s.spanOf(t.start, t.end),
			Hint: "calculate a number of this size: 10 ** 5000",
		})
	}
	return kind
}

// maxDigits is the largest number of digits that Python converts to an integer.
const maxDigits = 4300

// quoted reads a plain string.
func (s *scanner) quoted(t *token) int {
	end := stringEnd(s.text, s.pos)
	if end < 0 {
		return s.illegal(t)
	}
	from := s.pos + 1
	s.simple(t, end)
	t.text = s.decode(from, end-1, "Invalid escape sequence in string.")
	return tSTRING
}

// stringEnd finds the end of a quoted string that begins at an offset; -1 when none begins there or
// the line ends first.
func stringEnd(text string, at int) int {
	if at >= len(text) || text[at] != '"' && text[at] != '\'' {
		return -1
	}
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case quote:
			return i + 1
		case '\n':
			return -1
		case '\\':
			i++
			if i < len(text) && text[i] == '\n' {
				return -1
			}
		}
	}
	return -1
}

// multiLineEnd finds the end of a multi-line string that begins at an offset. Three to five quotes
// open it, as many as allow a match; the nearest three close it, with up to two more.
func multiLineEnd(text string, at int) int {
	run := quotes(text, at)
	for open := min(run, 5); open >= 3; open-- {
		i := strings.Index(text[at+open:], `"""`)
		if i < 0 {
			continue
		}
		end := at + open + i
		return end + min(quotes(text, end), 5)
	}
	return -1
}

func quotes(text string, at int) int {
	n := 0
	for at+n < len(text) && n < 6 && text[at+n] == '"' {
		n++
	}
	return n
}

func (s *scanner) multiLine(t *token, end int) int {
	raw := s.text[s.pos:end]
	t.start = s.place(s.pos)
	t.first = s.line
	t.text = s.decode(s.pos+3, end-3, "Invalid escape sequence in multi-line string.")
	s.pos = end
	lines := int32(strings.Count(raw, "\n"))
	s.line += lines
	tail := raw[strings.LastIndexByte(raw, '\n')+1:]
	t.end = Pos{s.line, int32(utf8.RuneCountInString(tail)) + 1}
	return tMLS
}

// regexEnd looks for `matching /…/` and returns its end and the offset of the first slash; 0 when
// there is none.
func (s *scanner) regexEnd() (end, slash int) {
	const word = "matching"
	if !strings.HasPrefix(s.text[s.pos:], word) {
		return 0, 0
	}
	i := s.pos + len(word)
	for i < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[i:])
		if !unicode.IsSpace(r) && (r < 0x1c || r > 0x1f) {
			break
		}
		i += n
	}
	if i == s.pos+len(word) || i >= len(s.text) || s.text[i] != '/' {
		return 0, 0
	}
	slash = i
	for i++; i < len(s.text); i++ {
		switch s.text[i] {
		case '/':
			if i == slash+1 {
				return 0, 0
			}
			return i + 1, slash
		case '\n':
			return 0, 0
		case '\\':
			i++
			if i < len(s.text) && s.text[i] == '\n' {
				return 0, 0
			}
		}
	}
	return 0, 0
}

func (s *scanner) regex(t *token, end, slash int) int {
	pattern := s.text[slash+1 : end-1]
	t.first = s.line
	t.start = s.place(slash)
	t.end = s.place(end)
	below := int32(strings.Count(s.text[s.pos:slash], "\n"))
	t.start.Line += below
	t.end.Line += below
	t.text = pattern
	s.pos = end
	if _, err := pyregex.Compile(pattern, NamedRune); err != nil {
		text := "/" + pattern + "/"
		s.fail(
			&Error{
				Kind:    KindParser,
				Message: "Syntax error: Regex error in " + text + ": '" + err.Error() + "'",
				At:      s.spanOf(t.start, t.end),
			},
		)
		return tBAD
	}
	return tREGEX
}

func (s *scanner) illegal(t *token) int {
	r, n := utf8.DecodeRuneInString(s.text[s.pos:])
	at := s.place(s.pos)
	s.pos += n
	*t = token{text: string(r), start: at, end: Pos{at.Line, at.Col + 1}, first: s.line}
	e := &Error{
		Kind:    KindParser,
		Message: "Syntax error: Illegal character '" + string(r) + "'",
		At:      s.spanOf(t.start, t.end),
	}
	switch r {
	case '"', '\'':
		e.Hint = "a string ends on the line on which it begins; use \"\"\" for text of several lines"
	case '/':
		e.Hint = "comments begin with #"
	}
	s.fail(e)
	return tBAD
}

func (s *scanner) spanOf(start, end Pos) Span {
	return Span{File: s.file, Start: start, End: end}
}

// fail keeps the first error.
func (s *scanner) fail(e *Error) {
	if s.err == nil {
		s.err = e
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
