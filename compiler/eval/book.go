package eval

// source is where a value comes from: all that provenance costs. What it means
// is worked out from the tree when somebody asks (provenance.go).
type source struct {
	at *place
	by *origin
	// expr is the right side of the statement that gave an element, where the
	// element itself was written somewhere else: `a.l = b.l`.
	expr    *place
	implied bool // by the other end of the relation
}

// stamp is a source by the numbers of the book: what a value carries until it
// is where it belongs.
type stamp struct {
	// at is where inmanta-core locates it; expr the expression it came through, or,
	// marked, where an element comes from that was there already when it was read at.
	at, by, expr number
	implied      bool
	// only: the other end takes one instance and has just been given it, so a
	// list cannot hold what is added to it.
	only bool
}

// book keeps places and origins by number. There are some thousands of them and
// a hundred times as many values that come from them: a variable tells its
// source in four bytes, an element of a list in sixteen, and no collector of
// garbage looks at either. The pieces lie in piles, so what grows is not copied.
type book struct {
	places  pile[*place]  // by number-1
	origins pile[*origin] // by number-1
	others  pile[other]   // see entry
	links   pile[link]    // of all chains, by number-1
}

// number is that of a place, of an origin or of a link. 0 is none, and the
// highest bit is free for one thing more.
type number uint32

const marked number = 1 << 31

// entry is the source of a variable: the number of the place, when it was set in
// the name in which its instance was made, as most are; else, marked, of an other.
type entry number

type other struct{ at, by number }

// chain holds the sources of the items of a list, in their order.
type chain struct{ first, last number }

// link is the source of one; at is marked when it is implied, expr as in a stamp.
type link struct{ at, by, expr, next number }

func (b *book) place(p *place) number {
	if p == nil {
		return 0
	}
	if n := int(p.Number); n == 0 || n > b.places.n || *b.places.at(n - 1) != p { // 0, or of another book
		b.places.add(p)
		p.Number = int32(b.places.n)
	}
	return number(p.Number)
}

func (b *book) placeOf(n number) *place {
	if n &^= marked; n == 0 {
		return nil
	}
	return *b.places.at(int(n) - 1)
}

func (b *book) origin(o *origin) number {
	if o == nil {
		return 0
	}
	if o.number == 0 {
		b.origins.add(o)
		o.number = number(b.origins.n)
	}
	return o.number
}

func (b *book) originOf(n number) *origin {
	if n == 0 {
		return nil
	}
	return *b.origins.at(int(n) - 1)
}

func (b *book) stamp(at *place, by *origin) stamp {
	return stamp{at: b.place(at), by: b.origin(by)}
}

// source is what a stamp stands for.
func (b *book) source(s stamp) source {
	return source{at: b.placeOf(s.at), by: b.originOf(s.by), expr: b.placeOf(s.expr), implied: s.implied}
}

// readFrom is where what was read at the place of a stamp comes from; nil when it was
// not there yet.
func (b *book) readFrom(s stamp) *place {
	if s.expr&marked == 0 {
		return nil
	}
	return b.placeOf(s.expr)
}

// add notes where one more item of a list comes from.
func (b *book) add(c *chain, from stamp) {
	l := link{at: from.at, by: from.by, expr: from.expr}
	if from.implied {
		l.at |= marked
	}
	b.links.add(l)
	added := number(b.links.n)
	if c.first == 0 {
		c.first = added
	} else {
		b.link(c.last).next = added
	}
	c.last = added
}

func (b *book) link(n number) *link { return b.links.at(int(n) - 1) }

// follow gives the source of the first item, and with the number that it gives
// that of the next; there has to be one.
func (b *book) follow(c *chain, before number) (source, number) {
	n := c.first
	if before != 0 {
		n = b.link(before).next
	}
	l := b.link(n)
	from := source{at: b.placeOf(l.at), by: b.originOf(l.by), expr: b.placeOf(l.expr), implied: l.at&marked != 0}
	if l.expr&marked != 0 {
		from.at, from.expr = from.expr, from.at
	}
	return from, n
}

// enter notes where the value of a variable comes from.
func (b *book) enter(v *variable, from stamp) {
	v.implied = from.implied
	if from.at == 0 || from.by == b.origin(v.usual()) {
		v.from = entry(from.at)
		return
	}
	b.others.add(other{from.at, from.by})
	v.from = entry(marked | number(b.others.n))
}

// sourceOf gives what enter noted.
func (b *book) sourceOf(v *variable) source {
	from := source{by: v.usual(), implied: v.implied}
	if n := number(v.from); n&marked == 0 {
		from.at = b.placeOf(n)
	} else {
		o := b.others.at(int(n&^marked) - 1)
		from.at, from.by = b.placeOf(o.at), b.originOf(o.by)
	}
	return from
}

// usual is in whose name the value of a variable mostly is set.
func (v *variable) usual() *origin {
	if v.owner == nil {
		return nil
	}
	return v.owner.made
}
