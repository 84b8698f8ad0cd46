package pyyaml

// possibleKey is a token that may turn out to begin a key, if a colon comes.
type possibleKey struct {
	flow  int // within so many brackets and braces
	token int // its number
	// required: it stands where only a key of a block mapping can.
	required bool
	at       Mark
}

// keyLength is how many characters a key without `?` may have.
const keyLength = 1024

// possibleKeys has one key at most for each bracket or brace that is open, the
// oldest first, which is the outermost one.
type possibleKeys struct{ list []possibleKey }

// first is the number of the first token that may be a key, or -1.
func (p *possibleKeys) first() int {
	if len(p.list) == 0 {
		return -1
	}
	return p.list[0].token
}

// last gives the key of this depth, if there is one.
func (p *possibleKeys) last(flow int) *possibleKey {
	if n := len(p.list); n > 0 && p.list[n-1].flow == flow {
		return &p.list[n-1]
	}
	return nil
}

// dropStaleKeys gives up keys that began too long ago. What is younger than a
// key that may still be one may be one too.
func (s *scanner) dropStaleKeys() {
	for len(s.keys.list) > 0 {
		k := s.keys.list[0]
		if k.at.Line == s.line && s.at-k.at.Index <= keyLength {
			return
		}
		s.giveUp(k)
		s.keys.list = s.keys.list[1:]
	}
}

// dropKey gives up the key of this depth: what comes now ends it.
func (s *scanner) dropKey() {
	if k := s.keys.last(s.flow); k != nil {
		s.giveUp(*k)
		s.keys.list = s.keys.list[:len(s.keys.list)-1]
	}
}

func (s *scanner) giveUp(k possibleKey) {
	if k.required {
		s.fail("while scanning a simple key", k.at, "could not find expected ':'")
	}
}

// saveKey remembers that the next token may begin a key.
func (s *scanner) saveKey() {
	if !s.mayKey {
		return
	}
	s.dropKey()
	s.keys.list = append(s.keys.list, possibleKey{
		flow: s.flow, token: s.taken + len(s.queue),
		required: s.flow == 0 && s.indent == s.column-1, at: s.mark(),
	})
}
