// Package generate writes models for the differential fuzzer: programs that
// are nearly always valid, and use what decides the order of execution: lists
// that grow while they are read, optional relations, `is defined`, index
// lookups before the instance exists, statements in any order.
//
//	seed ─▶ plan: entities, attributes, relations ─▶ statements, shuffled ─▶ main.cf
//
// The plan says who gives each attribute its value (default, constructor or
// implementation), so that values are set once. One seed always gives the same
// model.
package generate

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

// Case makes the model of a seed.
func Case(seed uint64) parity.Case {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 20))}
	g.plan()
	text := g.write()
	return parity.Case{Area: "generated", Name: fmt.Sprint(seed), Files: map[string]string{"main.cf": text}}
}

// giver says who gives an attribute its value.
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
	parent     *entity
	attributes []*attribute
	relations  []*relation
	indexed    bool // by its attribute key, which the constructor gives
	depth      int  // constructors in implementations make deeper ones only
}

func (e *entity) all() []*attribute {
	if e.parent == nil {
		return e.attributes
	}
	return append(e.parent.all(), e.attributes...)
}

func (e *entity) allRelations() []*relation {
	if e.parent == nil {
		return e.relations
	}
	return append(e.parent.allRelations(), e.relations...)
}

func (e *entity) is(other *entity) bool {
	for ; e != nil; e = e.parent {
		if e == other {
			return true
		}
	}
	return false
}

type generator struct {
	*rand.Rand
	entities []*entity
	keys     int
	names    int
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, of []T) T { return of[g.IntN(len(of))] }

var primitives = []string{"int", "string", "bool", "float", "int[]", "string[]", "dict", "string?", "int?", "code", "even"}

func (g *generator) plan() {
	for n := range 2 + g.IntN(4) {
		e := &entity{name: fmt.Sprintf("E%d", n), depth: n}
		if n > 0 && g.chance(35) {
			e.parent = g.entities[g.IntN(n)]
		}
		if e.parent == nil {
			e.attributes = append(e.attributes, &attribute{name: "key", typ: "int", giver: byConstructor})
		}
		e.indexed = e.parent == nil && g.chance(60)
		for k := range g.IntN(4) {
			a := &attribute{name: fmt.Sprintf("a%d_%d", n, k), typ: pick(g, primitives), giver: giver(g.IntN(3))}
			if a.giver == byDefault {
				a.def = g.constant(a.typ)
			}
			e.attributes = append(e.attributes, a)
		}
		g.entities = append(g.entities, e)
	}
	for n := range 1 + g.IntN(5) {
		g.relate(n)
	}
}

// relate makes a relation. A relation that has to be assigned points to a
// deeper entity, which implementations may construct.
func (g *generator) relate(n int) {
	a, b := pick(g, g.entities), pick(g, g.entities)
	r := &relation{name: fmt.Sprintf("r%d", n), owner: a, target: b}
	switch g.IntN(4) {
	case 0:
		r.high = 1
	case 1:
		if b.depth > a.depth {
			r.low = 1
		}
	case 2:
		if b.depth > a.depth {
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

// write puts the model into text. Definitions and statements are shuffled: the
// order of statements must not matter.
func (g *generator) write() string {
	parts := []string{
		"typedef code as string matching /[a-z]+/",
		"typedef even as int matching self % 2 == 0",
	}
	for _, e := range g.entities {
		parts = append(parts, g.define(e)...)
	}
	top := &scope{}
	top.variables = append(top.variables,
		variable{name: "n0", typ: "int"}, variable{name: "s0", typ: "string"}, variable{name: "t0", typ: "bool"}, variable{name: "l0", typ: "int[]"})
	parts = append(parts, "n0 = "+g.constant("int"), "s0 = "+g.constant("string"), "t0 = "+g.constant("bool"), "l0 = "+g.constant("int[]"))
	for range 2 + g.IntN(5) {
		e := pick(g, g.entities)
		name := g.fresh("x")
		parts = append(parts, name+" = "+g.constructor(e, top, 1))
		top.variables = append(top.variables, variable{name: name, typ: e.name, entity: e})
	}
	for range 2 + g.IntN(8) {
		if st := g.statement(top, 0); st != "" {
			parts = append(parts, st)
		}
	}
	g.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, "\n") + "\n"
}

// define writes an entity with its relations, index and implementations.
func (g *generator) define(e *entity) []string {
	var b strings.Builder
	fmt.Fprintf(&b, "entity %s", e.name)
	if e.parent != nil {
		fmt.Fprintf(&b, " extends %s", e.parent.name)
	}
	b.WriteString(":\n")
	for _, a := range e.attributes {
		fmt.Fprintf(&b, "    %s %s", a.typ, a.name)
		if a.giver == byDefault {
			b.WriteString(" = " + a.def)
		}
		b.WriteString("\n")
	}
	b.WriteString("end")
	parts := []string{b.String()}
	for _, r := range e.relations {
		switch {
		case r.implicit:
		case r.inverse != nil:
			parts = append(parts, fmt.Sprintf("%s.%s %s -- %s.%s %s", e.name, r.name, bounds(r), r.target.name, r.inverse.name, bounds(r.inverse)))
		default:
			parts = append(parts, fmt.Sprintf("%s.%s %s -- %s", e.name, r.name, bounds(r), r.target.name))
		}
	}
	if e.indexed {
		parts = append(parts, fmt.Sprintf("index %s(key)", e.name))
	}
	return append(parts, g.implement(e)...)
}

// implement gives an entity the implementation that sets what it has to, and
// at times one that depends on a condition.
func (g *generator) implement(e *entity) []string {
	s := &scope{self: e}
	var lines []string
	for _, a := range e.all() {
		if a.giver == byImplementation {
			lines = append(lines, "self."+a.name+" = "+g.expression(a.typ, s, 2, a.name))
		}
	}
	for _, r := range e.allRelations() {
		if r.implicit || r.target.depth <= e.depth {
			continue
		}
		if r.low == 1 || (r.high == 0 && g.chance(30)) {
			lines = append(lines, fmt.Sprintf("self.%s = %s", r.name, g.constructor(r.target, s, 2)))
		}
	}
	for range g.IntN(3) {
		if st := g.statement(s, 1); st != "" {
			lines = append(lines, st)
		}
	}
	g.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	name := "i_" + e.name
	parts := []string{
		fmt.Sprintf("implementation %s for %s:\n%s\nend", name, e.name, indent(lines)),
		fmt.Sprintf("implement %s using %s", e.name, name),
	}
	if g.chance(30) {
		more := g.statement(&scope{self: e}, 1)
		parts = append(parts,
			fmt.Sprintf("implementation m_%s for %s:\n%s\nend", e.name, e.name, indent([]string{more})),
			fmt.Sprintf("implement %s using m_%s when %s", e.name, e.name, g.expression("bool", &scope{self: e}, 2, "")))
	}
	return parts
}

func (g *generator) fresh(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

func indent(lines []string) string {
	var out []string
	for _, text := range lines {
		for line := range strings.SplitSeq(text, "\n") {
			out = append(out, "    "+line)
		}
	}
	return strings.Join(out, "\n")
}
