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
	// only: that other end takes one instance and has just been given it, so a
	// list cannot hold what is added to it.
	only bool
}

// book keeps places and origins by number. There are some thousands of them and
// a hundred times as many values that come from them: a variable tells its
// source in four bytes, an element of a list in twelve, and no collector of
// garbage looks at either.
type book struct {
	places  []*place  // by number-1
	origins []*origin // by number-1
	others  []written // see entry
}

// written is a source as it is kept. 0 is none.
type written struct{ at, by, expr number }

// number is that of a place, of an origin, or an entry; the highest bit is free
// for one thing more.
type number uint32

const marked number = 1 << 31

// entry is the source of a variable: the number of the place, when it was set in
// the name in which its instance was made, as most are; else, marked, of others.
type entry number

func (b *book) place(p *place) number {
	if p == nil {
		return 0
	}
	if n := int(p.Number); n == 0 || n > len(b.places) || b.places[n-1] != p { // 0, or of another book
		b.places = append(b.places, p)
		p.Number = int32(len(b.places))
	}
	return number(p.Number)
}

func (b *book) placeOf(n number) *place {
	if n &^= marked; n == 0 {
		return nil
	}
	return b.places[n-1]
}

func (b *book) origin(o *origin) number {
	if o == nil {
		return 0
	}
	if o.number == 0 {
		b.origins = append(b.origins, o)
		o.number = number(len(b.origins))
	}
	return o.number
}

func (b *book) originOf(n number) *origin {
	if n == 0 {
		return nil
	}
	return b.origins[n-1]
}

// write keeps a source.
func (b *book) write(from source) written {
	w := written{at: b.place(from.at), by: b.origin(from.by), expr: b.place(from.expr)}
	if from.implied {
		w.at |= marked
	}
	return w
}

// read gives what write kept.
func (b *book) read(w written) source {
	return source{at: b.placeOf(w.at), by: b.originOf(w.by), expr: b.placeOf(w.expr), implied: w.at&marked != 0}
}

// enter notes where the value of a variable comes from.
func (b *book) enter(v *variable, from source) {
	v.implied = from.implied
	if from.by == v.usual() || from.at == nil {
		v.from = entry(b.place(from.at))
		return
	}
	b.others = append(b.others, written{at: b.place(from.at), by: b.origin(from.by)})
	v.from = entry(marked | number(len(b.others)))
}

// sourceOf gives what enter noted.
func (b *book) sourceOf(v *variable) source {
	from := source{by: v.usual(), implied: v.implied}
	if n := number(v.from); n&marked == 0 {
		from.at = b.placeOf(n)
	} else {
		other := b.others[n&^marked-1]
		from.at, from.by = b.placeOf(other.at), b.originOf(other.by)
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
