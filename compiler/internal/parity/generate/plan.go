package generate

import "fmt"

// giver says what sets an attribute.
type giver uint8

const (
	byDefault giver = iota
	byConstructor
	byImplementation
)

type attribute struct {
	name, typ string
	giver     giver
	def       string // default
}

type relation struct {
	name     string
	target   *entity
	low      int
	high     int // 0: no limit
	inverse  *relation
	owner    *entity
	implicit bool // the other side assigns it
}

type entity struct {
	name       string
	place      string // namespace; empty for the main file
	parents    []*entity
	attributes []*attribute
	relations  []*relation
	indexed    bool  // by its attribute key, which the constructor sets
	depth      int   // implementations construct only deeper entities
	inherits   bool  // the implementations of its parents
	part       *part // of an owner
	made       []int // keys of instances that certainly exist
}

// all returns the attributes of an entity, its own first.
func (e *entity) all() []*attribute {
	found := append([]*attribute(nil), e.attributes...)
	names := map[string]bool{}
	for _, a := range found {
		names[a.name] = true
	}
	for _, p := range e.parents {
		for _, a := range p.all() {
			if !names[a.name] {
				names[a.name] = true
				found = append(found, a)
			}
		}
	}
	return found
}

func (e *entity) allRelations() []*relation {
	found := append([]*relation(nil), e.relations...)
	seen := map[*relation]bool{}
	for _, p := range e.parents {
		for _, r := range p.allRelations() {
			if !seen[r] {
				seen[r] = true
				found = append(found, r)
			}
		}
	}
	return found
}

func (e *entity) is(other *entity) bool {
	if e == other {
		return true
	}
	for _, p := range e.parents {
		if p.is(other) {
			return true
		}
	}
	return false
}

// reach returns the depth of an entity or of its deepest child. Its implementations
// construct only deeper entities, so that it cannot construct itself.
func (g *generator) reach(e *entity) int {
	depth := e.depth
	for _, child := range g.entities {
		if child.is(e) {
			depth = max(depth, child.depth)
		}
	}
	return depth
}

func (e *entity) root() bool { return len(e.parents) == 0 }

var primitives = []string{
	"int",
	"string",
	"bool",
	"float",
	"int[]",
	"string[]",
	"dict",
	"string?",
	"int?",
	"code",
	"even",
}

func (g *generator) plan() {
	for n := range 2 + g.IntN(4) {
		e := &entity{name: fmt.Sprintf("E%d", n), depth: n}
		if len(g.places) > 0 && g.chance(60) {
			e.place = pick(g, g.places)
		}
		g.inherit(e)
		if e.root() {
			e.attributes = append(e.attributes, &attribute{name: "key", typ: "int", giver: byConstructor})
		}
		e.indexed = e.root() && g.chance(60)
		for k := range g.IntN(4) {
			a := &attribute{name: fmt.Sprintf("a%d_%d", n, k), typ: pick(g, primitives), giver: giver(g.IntN(3))}
			if a.giver == byDefault {
				a.def = g.constant(a.typ)
			}
			e.attributes = append(e.attributes, a)
		}
		if g.exports && e.place != "" {
			e.attributes = append(e.attributes,
				&attribute{name: "name_" + e.name, typ: "name", giver: byImplementation})
		}
		g.entities = append(g.entities, e)
	}
	for n := range 1 + g.IntN(5) {
		g.relate(n)
	}
	for n := range g.IntN(3) {
		g.own(n)
	}
}

// inherit gives an entity parents that its place can see, sometimes other defaults for
// their attributes, and sometimes their implementations.
func (g *generator) inherit(e *entity) {
	var seen []*entity
	for _, p := range g.entities {
		if g.sees(e.place, p) {
			seen = append(seen, p)
		}
	}
	if len(seen) == 0 || !g.chance(40) {
		return
	}
	e.parents = []*entity{pick(g, seen)}
	e.inherits = g.chance(40)
	if other := pick(g, seen); g.chance(25) && !other.is(e.parents[0]) && !e.parents[0].is(other) {
		e.parents = append(e.parents, other)
		e.inherits = false // a common ancestor's values would be set twice
	}
	for _, a := range e.all() {
		if a.giver == byDefault && g.chance(20) {
			e.attributes = append(e.attributes,
				&attribute{name: a.name, typ: a.typ, giver: byDefault, def: g.constant(a.typ)})
		}
	}
}

// relate makes a relation. A relation that must be assigned points to a deeper entity,
// which implementations may construct.
func (g *generator) relate(n int) {
	a, b := pick(g, g.entities), pick(g, g.entities)
	r := &relation{name: fmt.Sprintf("r%d", n), owner: a, target: b}
	switch g.IntN(4) {
	case 0:
		r.high = 1
	case 1:
		if b.depth > g.reach(a) {
			r.low = 1
		}
	case 2:
		if b.depth > g.reach(a) {
			r.low, r.high = 1, 1
		}
	}
	a.relations = append(a.relations, r)
	if g.chance(60) {
		back := &relation{name: fmt.Sprintf("b%d", n), owner: b, target: a, inverse: r, implicit: true}
		if r.high != 1 && r.low == 0 && g.chance(30) {
			back.high = 1
		}
		r.inverse = back
		b.relations = append(b.relations, back)
	}
}

func bounds(r *relation) string {
	switch {
	case r.low == 1 && r.high == 1:
		return "[1]"
	case r.high == 0:
		return fmt.Sprintf("[%d:]", r.low)
	}
	return fmt.Sprintf("[%d:%d]", r.low, r.high)
}
