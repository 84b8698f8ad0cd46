package pyyaml

import "slices"

// unwind ends the block collections that begin right of a column.
func (s *scanner) unwind(column int) {
	if s.flow != 0 {
		return
	}
	for s.indent > column {
		s.indent = s.outer[len(s.outer)-1]
		s.outer = s.outer[:len(s.outer)-1]
		s.add(blockEnd, s.mark())
	}
}

// deeper tells whether a block collection begins at a column, and begins it.
func (s *scanner) deeper(column int) bool {
	if s.indent >= column {
		return false
	}
	s.outer = append(s.outer, s.indent)
	s.indent = column
	return true
}

// openBlock begins a block collection here, unless one goes on. Outside of
// brackets a key must be possible for that.
func (s *scanner) openBlock(k kind, what string) {
	if s.flow != 0 {
		return
	}
	if !s.mayKey {
		s.fail("", Mark{}, "%s are not allowed here", what)
	}
	if s.deeper(s.column - 1) {
		s.add(k, s.mark())
	}
}

func (s *scanner) openFlow(k kind) {
	s.saveKey()
	s.flow++
	s.mayKey = true
	s.indicator(k, 1)
}

func (s *scanner) closeFlow(k kind) {
	s.dropKey()
	s.flow--
	s.mayKey = false
	s.indicator(k, 1)
}

// blockEntry is a `-`. In brackets it is wrong, which the composer finds.
func (s *scanner) blockEntry() {
	s.openBlock(blockSequenceStart, "sequence entries")
	s.mayKey = true
	s.dropKey()
	s.indicator(blockEntry, 1)
}

// key is a `?`.
func (s *scanner) key() {
	s.openBlock(blockMappingStart, "mapping keys")
	s.mayKey = s.flow == 0
	s.dropKey()
	s.indicator(keyMark, 1)
}

// value is a `:`. If it ends a key, that is told before the tokens of the key.
func (s *scanner) value() {
	k := s.keys.last(s.flow)
	if k == nil {
		s.openBlock(blockMappingStart, "mapping values")
		s.mayKey = s.flow == 0
		s.dropKey()
		s.indicator(valueMark, 1)
		return
	}
	at := k.token - s.taken
	s.queue = slices.Insert(s.queue, at, token{kind: keyMark, start: k.at, end: k.at})
	if s.flow == 0 && s.deeper(k.at.Column-1) {
		s.queue = slices.Insert(s.queue, at, token{kind: blockMappingStart, start: k.at, end: k.at})
	}
	s.keys.list = s.keys.list[:len(s.keys.list)-1]
	s.mayKey = false // two keys do not follow each other
	s.indicator(valueMark, 1)
}
