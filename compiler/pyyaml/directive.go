package pyyaml

const readingDirective = "while scanning a directive"

// directive reads a line that begins with %. Of those that are not known only the
// name is read.
func (s *scanner) directive() token {
	t := token{kind: directive, start: s.mark()}
	s.forward(1)
	t.value = s.directiveName(t.start)
	switch t.value {
	case "YAML":
		s.skip(' ')
		t.detail = s.directiveVersion(t.start)
		t.end = s.mark()
	case "TAG":
		s.skip(' ')
		t.handle = s.tagHandle("directive", t.start)
		if c := s.peek(0); c != ' ' {
			s.fail(readingDirective, t.start, "expected ' ', but found %s", quoted(c))
		}
		s.skip(' ')
		t.detail = s.tagURI("directive", t.start)
		if c := s.peek(0); !isSpaceOrEnd(c) {
			s.fail(readingDirective, t.start, "expected ' ', but found %s", quoted(c))
		}
		t.end = s.mark()
	default:
		t.end = s.mark()
		for !isBreakOrEnd(s.peek(0)) {
			s.forward(1)
		}
	}
	s.restOfLine(readingDirective, t.start)
	return t
}

// nameOf reads letters, digits, - and _.
func (s *scanner) nameOf(context string, start Mark) string {
	n := 0
	for isNameChar(s.peek(n)) {
		n++
	}
	if n == 0 {
		s.failName(context, start)
	}
	return s.take(n)
}

func (s *scanner) failName(context string, start Mark) {
	s.fail(context, start, "expected alphabetic or numeric character, but found %s", quoted(s.peek(0)))
}

func (s *scanner) directiveName(start Mark) string {
	name := s.nameOf(readingDirective, start)
	if !isSpaceOrEnd(s.peek(0)) {
		s.failName(readingDirective, start)
	}
	return name
}

// directiveVersion reads two numbers and gives the first, which is what counts.
func (s *scanner) directiveVersion(start Mark) string {
	major := s.directiveNumber(start)
	if c := s.peek(0); c != '.' {
		s.fail(readingDirective, start, "expected a digit or '.', but found %s", quoted(c))
	}
	s.forward(1)
	s.directiveNumber(start)
	if c := s.peek(0); !isSpaceOrEnd(c) {
		s.fail(readingDirective, start, "expected a digit or ' ', but found %s", quoted(c))
	}
	return major
}

func (s *scanner) directiveNumber(start Mark) string {
	n := 0
	for isDigit(s.peek(n)) {
		n++
	}
	switch {
	case n == 0:
		s.fail(readingDirective, start, "expected a digit, but found %s", quoted(s.peek(0)))
	case n > MostDigits:
		panic(&Error{Class: ClassValue, Name: s.name, Problem: TooManyDigits(n), ProblemMark: s.mark()})
	}
	return s.take(n)
}
