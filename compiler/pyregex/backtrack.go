package pyregex

// frame is a way that was not tried, or a part that is matched for itself.
type frame struct {
	kind     frameKind
	restores bool  // marks up to last were saved
	pc       int32 // of the instruction; fewerUnits: of the one after it
	p        int32
	round    int32
	last     int32
	rounds   int32 // how many there were
	saved    int32 // how many marks were saved before
	extra    int32 // the next of the ways; the first place; how often; the part around this one
	count    int32 // of rounds before a mustRound or mayRound
}

type frameKind uint8

const (
	nextWay    frameKind = iota
	fewerUnits           // go back one character
	moreUnits            // one character more
	goOn                 // what follows a repetition
	once                 // one more round of a lazy repetition
	atomic               // from here on: parts that are matched for themselves
	ahead
	notAhead
	mustRound // a round that a possessive repetition must have
	mayRound  // and one that it may have
)

// push keeps a way. Python saves the groups' marks only inside of repetitions:
// elsewhere it forgets those above the highest one of then, and no more.
func (m *machine) push(f frame, saves bool) {
	f.round, f.last, f.rounds, f.saved = m.round, m.last, int32(len(m.rounds)), int32(len(m.saved))
	if f.restores = saves; saves {
		m.saved = append(m.saved, m.marks[:m.last+1]...)
	}
	m.frames = append(m.frames, f)
}

// enter begins a part that is matched for itself.
func (m *machine) enter(f frame, saves bool) {
	f.extra = m.apart
	m.push(f, saves)
	m.apart = int32(len(m.frames) - 1)
}

// restore brings back what was when the frame was pushed. The frame stays.
func (m *machine) restore(f *frame) {
	m.last, m.round = f.last, f.round
	m.rounds = m.rounds[:f.rounds]
	m.saved = m.saved[:f.saved]
	if f.restores {
		m.saved = m.saved[:f.saved+f.last+1]
		copy(m.marks, m.saved[f.saved:])
	}
}

// drop forgets the newest frame and what it saved.
func (m *machine) drop() {
	top := len(m.frames) - 1
	m.saved = m.saved[:m.frames[top].saved]
	m.frames = m.frames[:top]
}

// backtrack finds the newest way that is left.
func (m *machine) backtrack(r *Regexp, text string) (pc, p int, ok bool) {
	program := r.program
	for len(m.frames) > 0 {
		f := &m.frames[len(m.frames)-1]
		switch f.kind {
		case nextWay:
			m.restore(f)
			if f.extra >= 0 {
				ways := program[f.pc].ways
				way, next := r.way(ways, int(f.extra), text, int(f.p))
				f.extra = int32(next)
				return ways[way], int(f.p), true
			}
		case fewerUnits:
			m.restore(f)
			for f.p > f.extra {
				f.p = int32(previous(text, int(f.p)))
				m.budget--
				if !r.hopeless(int(f.pc), text, int(f.p)) {
					return int(f.pc), int(f.p), true
				}
			}
		case moreUnits:
			m.restore(f)
			i := &program[f.pc]
			if int(f.extra) != i.hi {
				if n := i.unit.at(text, int(f.p)); n > 0 {
					f.extra++
					f.p += int32(n)
					return int(f.pc) + 1, int(f.p), true
				}
			}
		case goOn:
			m.restore(f)
			pc, p = int(f.pc)+1, int(f.p)
			m.round = m.rounds[m.round].outer
			m.drop()
			return pc, p, true
		case once:
			if pc, p, ok := m.onceMore(f, program); ok {
				return pc, p, true
			}
			continue
		case notAhead, mayRound:
			m.restore(f)
			m.apart = f.extra
			pc, p = program[f.pc].to, int(f.p)
			m.drop()
			return pc, p, true
		case atomic, ahead, mustRound:
			m.apart = f.extra
		}
		m.drop()
	}
	return 0, 0, false
}

// open begins a round and makes it the innermost.
func (m *machine) open(r round) {
	m.round = int32(len(m.rounds))
	m.rounds = append(m.rounds, r)
}

// again is the test of a greedy repetition: what must be repeated is, what may
// be is tried first, and a round that matched nothing is not followed by one.
func (m *machine) again(i *inst, pc, p int) int {
	r := m.rounds[m.round]
	count := int(r.count) + 1
	switch {
	case count < i.lo:
		m.open(round{r.outer, int32(count), r.start})
		return i.to
	case (i.hi < 0 || count < i.hi) && int32(p) != r.start:
		m.push(frame{kind: goOn, pc: int32(pc - 1), p: int32(p)}, true)
		m.open(round{r.outer, int32(count), int32(p)})
		return i.to
	}
	m.round = r.outer
	return pc
}

// againLazy is the test of a lazy repetition: what follows is tried first.
func (m *machine) againLazy(i *inst, pc, p int) int {
	r := m.rounds[m.round]
	count := int(r.count) + 1
	if count < i.lo {
		m.open(round{r.outer, int32(count), r.start})
		return i.to
	}
	m.push(frame{kind: once, pc: int32(pc - 1), p: int32(p)}, r.outer >= 0)
	m.round = r.outer
	return pc
}

// onceMore begins the round that a lazy repetition did without.
func (m *machine) onceMore(f *frame, program []inst) (pc, p int, ok bool) {
	m.restore(f)
	i := &program[f.pc]
	r := m.rounds[f.round]
	count := int(r.count) + 1
	p = int(f.p)
	m.drop()
	if i.hi >= 0 && count >= i.hi || int32(p) == r.start {
		return 0, 0, false
	}
	m.open(round{r.outer, int32(count), int32(p)})
	return i.to, p, true
}

// possessive begins the next round of a repetition that does not go back, or
// leaves it. For what is inside, Python does not count it as a repetition.
func (m *machine) possessive(i *inst, pc, p, count int, start int32) int {
	f := frame{kind: mustRound, pc: int32(pc), p: int32(p), count: int32(count)}
	if count >= i.lo {
		if i.hi >= 0 && count >= i.hi || int32(p) == start {
			return i.to
		}
		f.kind = mayRound
	}
	m.enter(f, f.kind == mayRound)
	return pc + 1
}

// leave ends a part that is matched for itself: the ways that it did not try
// are forgotten.
func (m *machine) leave(program []inst, p int) (pc, end int, ok bool) {
	f := m.frames[m.apart]
	m.frames = m.frames[:m.apart]
	m.saved = m.saved[:f.saved]
	m.rounds = m.rounds[:f.rounds]
	m.apart = f.extra
	i := &program[f.pc]
	switch f.kind {
	case notAhead:
		return 0, 0, false
	case ahead:
		return i.to, int(f.p), true
	case mustRound:
		return m.possessive(i, int(f.pc), p, int(f.count)+1, -1), p, true
	case mayRound:
		return m.possessive(i, int(f.pc), p, int(f.count)+1, f.p), p, true
	}
	return i.to, p, true
}
