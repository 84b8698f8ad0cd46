package pyyaml

import (
	"fmt"
	"unicode/utf8"
)

// charsAtOnce is how many characters PyYAML asks for at a time.
const charsAtOnce = 4096

// end is the character after the last one. It is not allowed in a text.
const end = 0

// reader gives the characters of a text, any number ahead, and knows where it
// stands. It fails by panic with an *Error, which Parse recovers.
type reader struct {
	name         string
	text         []byte
	file         textFile
	chars        []rune // all that were read so far; with end at the end
	complete     bool
	at           int
	line, column int
}

func newReader(name string, text []byte) *reader {
	r := &reader{name: name, text: text, file: textFile{left: text}, line: 1, column: 1}
	// Two pieces come at once. Of a text of one character the second read is that
	// which finds the end.
	first := r.read()
	if !r.complete && len(first) < 2 {
		first = append(first, r.read()...)
	}
	if !r.complete {
		first = append(first, r.read()...)
	}
	r.add(first)
	return r
}

// read takes a piece from the file.
func (r *reader) read() []rune {
	piece, err := r.file.read(charsAtOnce)
	if err != nil {
		err.Name, err.ProblemMark = r.name, r.badPlace()
		panic(err)
	}
	r.complete = len(piece) == 0
	return piece
}

// add appends a piece, if all its characters are allowed.
func (r *reader) add(piece []rune) {
	for i, c := range piece {
		if !allowed(c) {
			panic(&Error{
				Class: ClassReader, Name: r.name, Position: len(r.chars) + i, ProblemMark: r.placeBehind(piece[:i]),
				Problem: fmt.Sprintf("unacceptable character #x%04x: special characters are not allowed", c),
			})
		}
	}
	r.chars = append(r.chars, piece...)
	if r.complete {
		r.chars = append(r.chars, end)
	}
}

// badPlace is where the first byte stands that is of no character.
func (r *reader) badPlace() Mark {
	m := Mark{Line: 1, Column: 1}
	for rest := r.text; len(rest) > 0; {
		c, size := utf8.DecodeRune(rest)
		if c == utf8.RuneError && size == 1 {
			break
		}
		rest = rest[size:]
		if c == '\r' { // which ends a line, unless the one that follows does
			if len(rest) > 0 && rest[0] == '\n' {
				continue
			}
			c = '\n'
		}
		m.step(c)
		m.Index++
	}
	return m
}

// placeBehind is where a text ends that follows what was read.
func (r *reader) placeBehind(text []rune) Mark {
	m := Mark{Line: 1, Column: 1, Index: len(r.chars) + len(text)}
	for _, part := range [][]rune{r.chars, text} {
		for _, c := range part {
			m.step(c)
		}
	}
	return m
}

func (m *Mark) step(c rune) {
	switch {
	case isBreak(c):
		m.Line++
		m.Column = 1
	case c != byteOrderMark:
		m.Column++
	}
}

// need reads on until n characters are there, the current one being the first.
func (r *reader) need(n int) {
	for !r.complete && len(r.chars)-r.at < n {
		r.add(r.read())
	}
}

// peek gives a character ahead; end behind the last one.
func (r *reader) peek(i int) rune {
	if r.at+i >= len(r.chars) {
		r.need(i + 1)
		if r.at+i >= len(r.chars) {
			return end
		}
	}
	return r.chars[r.at+i]
}

// forward goes over n characters.
func (r *reader) forward(n int) {
	r.need(n + 1) // PyYAML looks at the one behind them
	m := r.mark()
	for _, c := range r.chars[r.at:min(r.at+n, len(r.chars))] {
		m.step(c)
		r.at++
	}
	r.line, r.column = m.Line, m.Column
}

// take goes over n characters and gives them.
func (r *reader) take(n int) string {
	r.need(n)
	text := string(r.chars[r.at:min(r.at+n, len(r.chars))])
	r.forward(n)
	return text
}

func (r *reader) mark() Mark { return Mark{Line: r.line, Column: r.column, Index: r.at} }

// skip goes over all characters that are c.
func (r *reader) skip(c rune) {
	for r.peek(0) == c {
		r.forward(1)
	}
}

// skipComment goes to the end of the line if a comment begins.
func (r *reader) skipComment() {
	if r.peek(0) != '#' {
		return
	}
	for !isBreakOrEnd(r.peek(0)) {
		r.forward(1)
	}
}

// lineBreak goes over the end of a line and gives what it means; empty: the line
// does not end here.
func (r *reader) lineBreak() string {
	switch c := r.peek(0); c {
	case '\n', nextLine:
		r.forward(1)
		return "\n"
	case lineSeparator, paragraphSeparator:
		r.forward(1)
		return string(c)
	}
	return ""
}

// separator tells whether a line begins with --- or ..., and nothing touches it.
// Whether a line begins is for the caller to know.
func (r *reader) separator() bool {
	return r.separates('-') || r.separates('.')
}

func (r *reader) separates(c rune) bool {
	r.need(3)
	return r.peek(0) == c && r.peek(1) == c && r.peek(2) == c && isBlankOrEnd(r.peek(3))
}

// fail refuses the text at the current character.
func (r *reader) fail(context string, start Mark, format string, args ...any) {
	panic(&Error{
		Class: ClassScanner, Name: r.name, Context: context, ContextMark: start,
		Problem: fmt.Sprintf(format, args...), ProblemMark: r.mark(),
	})
}
