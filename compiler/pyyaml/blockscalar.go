package pyyaml

import "strings"

// header is what stands behind the | or > of a block scalar.
type header struct {
	keep, strip bool // the empty lines at the end; the end of the last line
	indent      int  // how much deeper than what is around it; 0: as the first line is
}

const readingBlock = "while scanning a block scalar"

// blockScalar reads the lines of a scalar that | or > begins.
//
//	text: >-        the header
//
//	  first line    breaks before it count, spaces give the indentation
//	  second line   folded: joined by a space
//	    third line  which begins with a space: not folded
func (s *scanner) blockScalar() token {
	t := token{kind: scalar, start: s.mark(), style: Literal}
	if s.peek(0) == '>' {
		t.style = Folded
	}
	s.forward(1)
	h := s.blockHeader(t.start)
	s.restOfLine(readingBlock, t.start)

	var breaks, last string
	indent := max(s.indent+1, 1)
	if h.indent == 0 {
		var deepest int
		breaks, deepest, t.end = s.blockIndentation()
		indent = max(indent, deepest)
	} else {
		indent += h.indent - 1
		breaks, t.end = s.blockBreaks(indent)
	}
	var text strings.Builder
	for s.column-1 == indent && s.peek(0) != end {
		text.WriteString(breaks)
		word := !isSpaceOrTab(s.peek(0))
		n := 0
		for !isBreakOrEnd(s.peek(n)) {
			n++
		}
		text.WriteString(s.take(n))
		last = s.lineBreak()
		breaks, t.end = s.blockBreaks(indent)
		if s.column-1 != indent || s.peek(0) == end {
			break
		}
		switch join := t.style == Folded && last == "\n" && word && !isSpaceOrTab(s.peek(0)); {
		case !join:
			text.WriteString(last)
		case breaks == "":
			text.WriteByte(' ')
		}
	}
	if !h.strip {
		text.WriteString(last)
	}
	if h.keep {
		text.WriteString(breaks)
	}
	t.value = text.String()
	return t
}

// blockHeader reads + or -, and a digit, in either order.
func (s *scanner) blockHeader(start Mark) (h header) {
	chomp := func() bool {
		c := s.peek(0)
		if c != '+' && c != '-' {
			return false
		}
		h.keep, h.strip = c == '+', c == '-'
		s.forward(1)
		return true
	}
	digit := func() bool {
		c := s.peek(0)
		if !isDigit(c) {
			return false
		}
		if c == '0' {
			s.fail(readingBlock, start, "expected indentation indicator in the range 1-9, but found 0")
		}
		h.indent = int(c - '0')
		s.forward(1)
		return true
	}
	if chomp() {
		digit()
	} else if digit() {
		chomp()
	}
	if c := s.peek(0); !isSpaceOrEnd(c) {
		s.fail(readingBlock, start, "expected chomping or indentation indicators, but found %s", quoted(c))
	}
	return h
}

// restOfLine goes over the end of a line that may have a comment only.
func (s *scanner) restOfLine(context string, start Mark) {
	s.skip(' ')
	s.skipComment()
	if c := s.peek(0); !isBreakOrEnd(c) {
		s.fail(context, start, "expected a comment or a line break, but found %s", quoted(c))
	}
	s.lineBreak()
}

// blockIndentation goes over empty lines to the first that is not, and tells how
// far the deepest of them is indented.
func (s *scanner) blockIndentation() (breaks string, deepest int, end Mark) {
	end = s.mark()
	var all strings.Builder
	for {
		if s.peek(0) == ' ' {
			s.forward(1)
			deepest = max(deepest, s.column-1)
			continue
		}
		b := s.lineBreak()
		if b == "" {
			return all.String(), deepest, end
		}
		all.WriteString(b)
		end = s.mark()
	}
}

// blockBreaks goes over empty lines, and over the indentation of the next one.
func (s *scanner) blockBreaks(indent int) (breaks string, end Mark) {
	end = s.mark()
	var all strings.Builder
	for {
		for s.column-1 < indent && s.peek(0) == ' ' {
			s.forward(1)
		}
		b := s.lineBreak()
		if b == "" {
			return all.String(), end
		}
		all.WriteString(b)
		end = s.mark()
	}
}
