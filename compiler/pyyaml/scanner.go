package pyyaml

// scanner makes tokens of characters.
type scanner struct {
	*reader
	queue []token // not taken yet
	taken int     // tokens
	done  bool
	// flow counts the brackets and braces that are open; in them indentation means
	// nothing.
	flow int
	// indent is the column of the innermost block collection, from 0, or -1;
	// outer are those around it.
	indent int
	outer  []int
	// mayKey: a key may begin here, and so may a block collection.
	mayKey bool
	keys   possibleKeys
}

func newScanner(name string, text []byte) *scanner {
	return &scanner{reader: newReader(name, text), indent: -1, mayKey: true}
}

// peekToken gives the next token.
func (s *scanner) peekToken() *token {
	for s.needsMore() {
		s.scan()
	}
	if len(s.queue) == 0 { // all were taken
		m := s.mark()
		s.queue = append(s.queue, token{kind: streamEnd, start: m, end: m})
	}
	return &s.queue[0]
}

// next tells whether the next token is of one of some kinds.
func (s *scanner) next(kinds ...kind) bool {
	t := s.peekToken()
	for _, k := range kinds {
		if t.kind == k {
			return true
		}
	}
	return false
}

// takeToken gives the next token and goes on to the one behind it.
func (s *scanner) takeToken() token {
	t := *s.peekToken()
	s.queue = s.queue[1:]
	s.taken++
	return t
}

// needsMore: the first token in the queue may begin a key, so that another one
// would come before it.
func (s *scanner) needsMore() bool {
	if s.done || len(s.queue) == 0 {
		return !s.done
	}
	s.dropStaleKeys()
	return s.keys.first() == s.taken
}

func (s *scanner) add(k kind, start Mark) {
	s.queue = append(s.queue, token{kind: k, start: start, end: s.mark()})
}

// indicator adds a token of n characters.
func (s *scanner) indicator(k kind, n int) {
	start := s.mark()
	s.forward(n)
	s.add(k, start)
}

// scan adds the next token to the queue, and those that its column brings about.
func (s *scanner) scan() {
	s.toNextToken()
	s.dropStaleKeys()
	s.unwind(s.column - 1)
	switch c := s.peek(0); {
	case c == end:
		s.streamEnd()
	case c == '%' && s.column == 1:
		s.unwind(-1)
		s.dropKey()
		s.mayKey = false
		s.queue = append(s.queue, s.directive())
	case c == '-' && s.column == 1 && s.separates('-'):
		s.documentMark(documentStart)
	case c == '.' && s.column == 1 && s.separates('.'):
		s.documentMark(documentEnd)
	case c == '[':
		s.openFlow(flowSequenceStart)
	case c == '{':
		s.openFlow(flowMappingStart)
	case c == ']':
		s.closeFlow(flowSequenceEnd)
	case c == '}':
		s.closeFlow(flowMappingEnd)
	case c == ',':
		s.mayKey = true
		s.dropKey()
		s.indicator(flowEntry, 1)
	case c == '-' && isBlankOrEnd(s.peek(1)):
		s.blockEntry()
	case c == '?' && (s.flow != 0 || isBlankOrEnd(s.peek(1))):
		s.key()
	case c == ':' && (s.flow != 0 || isBlankOrEnd(s.peek(1))):
		s.value()
	case c == '*' || c == '&':
		s.word(s.anchor)
	case c == '!':
		s.word(s.tag)
	case (c == '|' || c == '>') && s.flow == 0:
		s.mayKey = true // behind it a line begins
		s.dropKey()
		s.queue = append(s.queue, s.blockScalar())
	case c == '\'' || c == '"':
		s.word(s.quoted)
	case s.beginsPlain(c):
		s.word(s.plain)
	default:
		s.fail("while scanning for the next token", Mark{}, "found character %s that cannot start any token", quoted(c))
	}
}

// word adds a token that a key may begin with. No key begins right behind it.
func (s *scanner) word(scan func() token) {
	s.saveKey()
	s.mayKey = false
	s.queue = append(s.queue, scan())
}

// toNextToken goes over spaces, comments and ends of lines.
func (s *scanner) toNextToken() {
	if s.at == 0 && s.peek(0) == byteOrderMark {
		s.forward(1)
	}
	for {
		s.skip(' ')
		s.skipComment()
		if s.lineBreak() == "" {
			return
		}
		if s.flow == 0 {
			s.mayKey = true
		}
	}
}

func (s *scanner) streamEnd() {
	s.unwind(-1)
	s.dropKey()
	s.mayKey = false
	s.keys = possibleKeys{}
	s.add(streamEnd, s.mark())
	s.done = true
}

func (s *scanner) documentMark(k kind) {
	s.unwind(-1)
	s.dropKey()
	s.mayKey = false
	s.indicator(k, 3)
}
