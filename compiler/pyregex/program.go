package pyregex

// opcode is what an instruction does.
type opcode uint8

const (
	opMatch opcode = iota
	opFail
	opUnit            // one character
	opText            // several characters, as they are
	opPlace           // ^ $ \b
	opMark            // a group begins (even) or ends (odd)
	opRef             // what a group has matched
	opCondition       // jump if a group has matched nothing
	opJump            // jump
	opBranch          // try several places in turn
	opUnits           // a repetition of one character, greedy
	opUnitsLazy       //
	opUnitsPossessive //
	opRepeat          // the start of a repetition; its test is at `to`
	opTest            // the test of a repetition: another round, or continue
	opTestLazy        //
	opPossessive      // a possessive repetition, up to opEnd; continues at `to`
	opAtomic          // an atomic group, up to opEnd; continues at `to`
	opAhead           // what must follow, or precede, up to opEnd; continues at `to`
	opNotAhead        // what must not follow, or precede
	opEnd             // the end of one of the four above
)

// inst is an instruction. Its opcode decides which fields have a meaning.
type inst struct {
	op     opcode
	at     place
	fold   fold
	flags  flags
	unit   *unit
	text   string
	number int   // of a group or mark; how many characters to look back
	lo, hi int   // how often; hi below 0: without limit
	to     int   // where it continues
	ways   []int // where the branches begin
}

type compiler struct {
	program []inst
	groups  int
}

// emit appends an instruction and returns its index.
func (c *compiler) emit(i inst) int {
	c.program = append(c.program, i)
	return len(c.program) - 1
}

// here makes an instruction continue at the present end of the program.
func (c *compiler) here(at int) { c.program[at].to = len(c.program) }

func (c *compiler) sequence(s sequence, f flags) {
	for i := 0; i < len(s); i++ {
		if text, n := plainText(s[i:], f); n > 1 {
			c.emit(inst{op: opText, text: text})
			i += n - 1
			continue
		}
		c.node(s[i], f)
	}
}

// plainText returns the characters at the beginning of a sequence that match only themselves.
func plainText(s sequence, f flags) (string, int) {
	fold := foldOf(f)
	n := 0
	var text []rune
	for n < len(s) && s[n].kind == kLiteral && !fold.cased(s[n].char) && utf8Has(s[n].char) {
		text = append(text, s[n].char)
		n++
	}
	return string(text), n
}

// utf8Has reports whether a text can have a character at all.
func utf8Has(r rune) bool { return r < 0xd800 || r > 0xdfff }

func (c *compiler) node(n *node, f flags) {
	switch n.kind {
	case kLiteral, kNotLiteral, kAny, kSet:
		c.emit(inst{op: opUnit, unit: unitOf(n, f)})
	case kAt:
		c.emit(inst{op: opPlace, at: n.at, flags: f})
	case kRef:
		c.emit(inst{op: opRef, number: n.group, fold: foldOf(f)})
	case kGroup:
		c.group(n, f)
	case kBranch:
		c.branch(n, f)
	case kCondition:
		c.condition(n, f)
	case kRepeat:
		c.repeat(n, f)
	case kAtomic:
		c.apart(inst{op: opAtomic}, n.parts[0], f)
	case kLook:
		c.look(n, f)
	case kNever:
		c.emit(inst{op: opFail})
	}
}

func (c *compiler) group(n *node, f flags) {
	if n.group > 0 {
		c.emit(inst{op: opMark, number: 2*n.group - 2})
	}
	c.sequence(n.parts[0], f.with(n.add, n.del))
	if n.group > 0 {
		c.emit(inst{op: opMark, number: 2*n.group - 1})
	}
}

func (c *compiler) branch(n *node, f flags) {
	start := c.emit(inst{op: opBranch})
	var ways, ends []int
	for _, part := range n.parts {
		ways = append(ways, len(c.program))
		c.sequence(part, f)
		ends = append(ends, c.emit(inst{op: opJump}))
	}
	for _, end := range ends {
		c.here(end)
	}
	c.program[start].ways = ways
}

func (c *compiler) condition(n *node, f flags) {
	start := c.emit(inst{op: opCondition, number: n.group})
	c.sequence(n.parts[0], f)
	if len(n.parts) == 1 {
		c.here(start)
		return
	}
	end := c.emit(inst{op: opJump})
	c.here(start)
	c.sequence(n.parts[1], f)
	c.here(end)
}

func (c *compiler) repeat(n *node, f flags) {
	i := inst{lo: n.lo, hi: n.hi}
	if n.hi == unlimited {
		i.hi = -1
	}
	part := n.parts[0]
	if part.simple() {
		for part[0].kind == kGroup {
			f = f.with(part[0].add, part[0].del)
			part = part[0].parts[0]
		}
		i.op = [...]opcode{opUnits, opUnitsLazy, opUnitsPossessive}[n.manner]
		i.unit = unitOf(part[0], f)
		c.emit(i)
		return
	}
	if n.manner == possessive {
		i.op = opPossessive
		c.apart(i, part, f)
		return
	}
	i.op = opRepeat
	start := c.emit(i)
	c.sequence(part, f)
	c.here(start)
	i.op, i.to = opTest, start+1
	if n.manner == lazy {
		i.op = opTestLazy
	}
	c.emit(i)
}

// apart writes a part that is matched on its own.
func (c *compiler) apart(i inst, part sequence, f flags) {
	start := c.emit(i)
	c.sequence(part, f)
	c.emit(inst{op: opEnd})
	c.here(start)
}

func (c *compiler) look(n *node, f flags) {
	i := inst{op: opAhead}
	if n.negated {
		i.op = opNotAhead
	}
	if n.behind {
		w := n.parts[0].width()
		if w.lo > 1<<32-1 {
			fail("looks too much behind")
		}
		if w.lo != w.hi {
			fail("look-behind requires fixed-width pattern")
		}
		i.number = w.lo
	}
	c.apart(i, n.parts[0], f)
}
