package pyregex

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// machine runs a program on a text. Offsets are in bytes, and never inside of a character.
type machine struct {
	frames []frame // alternatives not yet tried, the newest last
	saved  []int32 // marks that frames restore
	marks  []int32 // where groups begin (2n-2) and end (2n-1)
	last   int32   // the highest mark that is set; -1: none
	rounds []round // of repetitions
	apart  int32   // the frame of the innermost part that is matched on its own; -1: none
	round  int32   // the index of the innermost round; -1: outside of all
	end    int     // of the match

	budget   int // steps until the next look at the clock
	deadline time.Time
}

// round is the state of a repetition. Rounds do not change: the next one is new, and a frame that
// refers to an old one restores it.
type round struct {
	outer int32 // round of the repetition around this one
	count int32 // how often the part matched before this round; -1 at the first test
	start int32 // the offset at which a round began that must not be empty; -1: none
}

var machines = sync.Pool{New: func() any { return new(machine) }}

// recycle puts the machine into the pool, unless it has become large.
func (m *machine) recycle() {
	const large = 1 << 12
	if cap(m.frames) <= large && cap(m.saved) <= large && cap(m.rounds) <= large && cap(m.marks) <= large {
		machines.Put(m)
	}
}

const (
	steps      = 4096    // between looks at the clock
	mostMemory = 1 << 28 // bytes for the frames
)

func (m *machine) reset(groups int) {
	m.frames, m.saved, m.rounds = m.frames[:0], m.saved[:0], m.rounds[:0]
	m.last, m.apart, m.round, m.budget = -1, -1, -1, steps
	m.deadline = time.Time{}
	if cap(m.marks) < 2*groups {
		m.marks = make([]int32, 2*groups)
	}
	m.marks = m.marks[:2*groups]
}

// exhausted checks time and memory, once in some thousand steps.
func (m *machine) exhausted(limit time.Duration) bool {
	m.budget = steps
	now := time.Now()
	if m.deadline.IsZero() {
		m.deadline = now.Add(limit)
	}
	return now.After(m.deadline) || len(m.frames)*36+len(m.rounds)*12+len(m.saved)*4 > mostMemory
}

func (m *machine) run(r *Regexp, text string, limit time.Duration) (bool, error) {
	if len(text) > 1<<30 {
		return false, ErrTooLong
	}
	m.reset(r.groups)
	pc, p := 0, 0
	for {
		if m.budget--; m.budget <= 0 && m.exhausted(limit) {
			return false, ErrTooLong
		}
		ok := true
		i := &r.program[pc]
		pc++
		switch i.op {
		case opMatch:
			m.end = p
			return true, nil
		case opFail:
			ok = false
		case opUnit:
			n := i.unit.at(text, p)
			ok = n > 0
			p += n
		case opText:
			if ok = strings.HasPrefix(text[p:], i.text); ok {
				p += len(i.text)
			}
		case opPlace:
			ok = holds(i, text, p)
		case opMark:
			m.mark(int32(i.number), p)
		case opRef:
			p, ok = m.reference(i, text, p)
		case opCondition:
			if _, _, held := m.held(i.number); !held {
				pc = i.to
			}
		case opJump:
			pc = i.to
		case opBranch:
			way, next := r.way(i.ways, 0, text, p)
			if ok = way >= 0; ok {
				if next >= 0 || r.groups > 0 {
					m.push(frame{kind: nextWay, pc: int32(pc - 1), p: int32(p), extra: int32(next)}, m.round >= 0)
				}
				pc = i.ways[way]
			}
		case opUnits:
			from := p
			if p, ok = m.units(i, text, p); ok && p > from {
				from = minimum(i, text, from)
			}
			if ok && (p > from || r.groups > 0) {
				m.push(frame{kind: fewerUnits, pc: int32(pc), p: int32(p), extra: int32(from)}, m.round >= 0)
			}
		case opUnitsLazy:
			var count int
			if p, count = least(i, text, p); count < i.lo {
				ok = false
				break
			}
			m.push(frame{kind: moreUnits, pc: int32(pc - 1), p: int32(p), extra: int32(count)}, m.round >= 0)
		case opUnitsPossessive:
			p, ok = m.units(i, text, p)
		case opRepeat:
			m.open(round{outer: m.round, count: -1, start: -1})
			pc = i.to
		case opTest:
			pc = m.testGreedy(i, pc, p)
		case opTestLazy:
			pc = m.testLazy(i, pc, p)
		case opPossessive:
			pc = m.possessive(i, pc-1, p, 0, -1)
		case opAtomic:
			m.enter(frame{kind: atomic, pc: int32(pc - 1), p: int32(p)}, false)
		case opAhead, opNotAhead:
			before, there := back(text, p, i.number)
			if i.op == opNotAhead {
				if !there {
					pc = i.to
					break
				}
				m.enter(frame{kind: notAhead, pc: int32(pc - 1), p: int32(p)}, m.round >= 0)
			} else if ok = there; ok {
				m.enter(frame{kind: ahead, pc: int32(pc - 1), p: int32(p)}, false)
			}
			p = before
		case opEnd:
			pc, p, ok = m.leave(r.program, p)
		}
		if !ok {
			if pc, p, ok = m.backtrack(r, text); !ok {
				return false, nil
			}
		}
	}
}

// hopeless reports whether it is obvious that what begins at an instruction cannot match.
func (r *Regexp) hopeless(pc int, text string, p int) bool {
	switch i := &r.program[pc]; i.op {
	case opUnit:
		return i.unit.at(text, p) == 0
	case opText:
		return p >= len(text) || text[p] != i.text[0]
	case opPlace:
		return !holds(i, text, p)
	}
	return false
}

// way finds the next alternative of a branch that is not hopeless, and the one after it; -1: there is
// none.
func (r *Regexp) way(ways []int, from int, text string, p int) (way, next int) {
	way = -1
	for n := from; n < len(ways); n++ {
		if r.hopeless(ways[n], text, p) {
			continue
		}
		if way >= 0 {
			return way, n
		}
		way = n
	}
	return way, -1
}

// units matches a repetition of one character.
func (m *machine) units(i *inst, text string, p int) (int, bool) {
	count, u := 0, i.unit
	for count != i.hi {
		if p < len(text) && text[p] < utf8.RuneSelf {
			if c := text[p]; u.ascii[c>>6]>>(c&63)&1 == 0 {
				break
			}
			p++
			count++
			continue
		}
		n := u.at(text, p)
		if n == 0 {
			break
		}
		p += n
		count++
	}
	m.budget -= count >> 2
	return p, count >= i.lo
}

// least matches one character the minimum number of times.
func least(i *inst, text string, p int) (end, count int) {
	for count < i.lo {
		n := i.unit.at(text, p)
		if n == 0 {
			break
		}
		p += n
		count++
	}
	return p, count
}

// minimum is the offset after the minimum number of characters.
func minimum(i *inst, text string, p int) int {
	for range i.lo {
		if text[p] < utf8.RuneSelf {
			p++
			continue
		}
		_, n := utf8.DecodeRuneInString(text[p:])
		p += n
	}
	return p
}

// back returns the offset some characters before.
func back(text string, p, count int) (int, bool) {
	for ; count > 0; count-- {
		if p == 0 {
			return 0, false
		}
		p = previous(text, p)
	}
	return p, true
}

func previous(text string, p int) int {
	p--
	for text[p]&0xc0 == 0x80 {
		p--
	}
	return p
}

func holds(i *inst, text string, p int) bool {
	end := p == len(text)
	switch i.at {
	case atStart:
		return p == 0 || i.flags&multiLine != 0 && text[p-1] == '\n'
	case atTextStart:
		return p == 0
	case atEnd:
		return end || text[p] == '\n' && (p+1 == len(text) || i.flags&multiLine != 0)
	case atTextEnd:
		return end
	}
	if text == "" {
		return false // in an empty text Python finds neither
	}
	is := isWord
	if i.flags&uni == 0 {
		is = isASCIIWord
	}
	before, after := false, false
	if p > 0 {
		r, _ := utf8.DecodeLastRuneInString(text[:p])
		before = is(r)
	}
	if !end {
		r, _ := utf8.DecodeRuneInString(text[p:])
		after = is(r)
	}
	return (before != after) == (i.at == atWordEdge)
}

// mark records where a group begins or ends. Marks below it that were not set become empty.
func (m *machine) mark(n int32, p int) {
	for ; m.last < n; m.last++ {
		m.marks[m.last+1] = -1
	}
	m.marks[n] = int32(p)
}

// held is the range that a group has matched.
func (m *machine) held(group int) (from, to int, ok bool) {
	n := int32(2*group - 2)
	if n >= m.last {
		return 0, 0, false
	}
	from, to = int(m.marks[n]), int(m.marks[n+1])
	return from, to, from >= 0 && to >= from
}

func (m *machine) reference(i *inst, text string, p int) (int, bool) {
	from, to, ok := m.held(i.number)
	if !ok {
		return p, false
	}
	if i.fold == exact {
		m.budget -= (to - from) >> 6
		if !strings.HasPrefix(text[p:], text[from:to]) {
			return p, false
		}
		return p + to - from, true
	}
	m.budget -= to - from
	for from < to {
		if p == len(text) {
			return p, false
		}
		a, size := utf8.DecodeRuneInString(text[from:])
		b, n := utf8.DecodeRuneInString(text[p:])
		if i.fold.lower(a) != i.fold.lower(b) {
			return p, false
		}
		from, p = from+size, p+n
	}
	return p, true
}
