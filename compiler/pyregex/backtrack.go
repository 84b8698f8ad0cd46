package pyregex

// frame is an alternative that has not been tried, or a part that is matched on its own.
type frame struct {
	kind     frameKind
	restores bool  // marks up to last were saved
	pc       int32 // of the instruction; fewerUnits: of the one after it
	p        int32
	round    int32
	last     int32
	rounds   int32 // how many rounds there were
	saved    int32 // how many marks had been saved before
	extra    int32 // by kind: the next alternative; the first offset; a count; the part around this one
	count    int32 // of rounds before a mustRound or mayRound
}

type frameKind uint8

const (
	nextWay    frameKind = iota
	fewerUnits           // match one character less
	moreUnits            // match one character more
	goOn                 // continue after a repetition
	once                 // one more round of a lazy repetition
	atomic               // this and the next kinds: parts that are matched on their own
	ahead
	notAhead
	mustRound // a required round of a possessive repetition
	mayRound  // an optional round of one
)

// push pushes a frame. Python saves the marks of groups only inside of repetitions; elsewhere it only
// resets, on backtracking, those above the highest mark at that time.
func (m *machine) push(f frame, saves bool) {
	f.round, f.last, f.rounds, f.saved = m.round, m.last, int32(len(m.rounds)), int32(len(m.saved))
	if f.restores = saves; saves {
		m.saved = append(m.saved, m.marks[:m.last+1]...)
	}
	m.frames = append(m.frames, f)
}

// enter begins a part that is matched on its own.
func (m *machine) enter(f frame, saves bool) {
	f.extra = m.apart
	m.push(f, saves)
	m.apart = int32(len(m.frames) - 1)
}

// restore restores the state in which the frame was pushed. The frame stays.
func (m *machine) restore(f *frame) {
	m.last, m.round = f.last, f.round
	m.rounds = m.rounds[:f.rounds]
	m.saved = m.saved[:f.saved]
	if f.restores {
		m.saved = m.saved[:f.saved+f.last+1]
		copy(m.marks, m.saved[f.saved:])
	}
}

// drop removes the newest frame and what it saved.
func (m *machine) drop() {
	top := len(m.frames) - 1
	m.saved = m.saved[:m.frames[top].saved]
	m.frames = m.frames[:top]
}

// backtrack continues with the newest alternative that is left.
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
			if pc, p, ok := m.lazyRound(f, program); ok {
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

// open begins a round, which becomes the innermost.
func (m *machine) open(r round) {
	m.round = int32(len(m.rounds))
	m.rounds = append(m.rounds, r)
}

// testGreedy is the test of a greedy repetition. It begins a required round; it tries an optional round
// before what follows; and no round follows one that matched nothing.
func (m *machine) testGreedy(i *inst, pc, p int) int {
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

// testLazy is the test of a lazy repetition: what follows is tried before an optional round.
func (m *machine) testLazy(i *inst, pc, p int) int {
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

// lazyRound begins a round of a lazy repetition after what follows did not match.
func (m *machine) lazyRound(f *frame, program []inst) (pc, p int, ok bool) {
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

// possessive begins the next round of a possessive repetition, or leaves it. For the parts inside of
// it, Python does not count it as a repetition.
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

// leave ends a part that is matched on its own, and drops the alternatives that it did not try.
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
