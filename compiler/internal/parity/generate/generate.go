// Package generate writes models for the differential fuzzer: programs that
// are nearly always valid, and that use the features which depend on the order of
// execution: lists that grow while they are read, optional relations, `is defined`,
// index lookups before the instance exists, plug-ins that read unset attributes,
// statements in any order.
//
//	seed ─▶ plan: entities, attributes, relations ─▶ places: main file, modules
//	     ─▶ instances ─▶ definitions ─▶ statements, shuffled ─▶ project
//
// The plan decides what sets each attribute (default, constructor or implementation),
// so that every value is set once. The same seed always makes the same project.
package generate

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

// Case makes the project for a seed.
func Case(seed uint64) parity.Case {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 21)), files: map[string]*file{}}
	g.choose()
	g.plan()
	return parity.Case{Area: "generated", Name: fmt.Sprint(seed), Files: g.write(), Export: g.exports}
}

type generator struct {
	*rand.Rand
	entities []*entity
	parts    []*part
	files    map[string]*file
	places   []string // namespaces of modules
	keys     int
	names    int

	plugins, unknowns, exports, policy bool
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, of []T) T { return of[g.IntN(len(of))] }

// choose decides what the project has besides a main file.
func (g *generator) choose() {
	if g.chance(55) {
		g.places = []string{"m0", "m1", "m0::s"}[:1+g.IntN(3)]
	}
	g.plugins = g.chance(60)
	g.unknowns = g.plugins && g.chance(20)
	g.exports = g.plugins && len(g.places) > 0 && g.chance(35)
	g.policy = g.chance(20)
}

// write distributes the model over files. It shuffles the definitions and statements of
// a file, because their order must not matter.
func (g *generator) write() map[string]string {
	types := ""
	if len(g.places) > 0 {
		types = "m0"
	}
	g.file(types).add("typedef code as string matching /[a-z]+/", "typedef even as int matching self % 2 == 0")
	tops := map[string]*scope{}
	for _, place := range append(append([]string(nil), g.places...), "") {
		tops[place] = g.instances(place, tops)
	}
	for _, e := range g.entities {
		g.define(e)
	}
	for _, p := range g.parts {
		g.definePart(p)
	}
	for _, place := range append(append([]string(nil), g.places...), "") {
		top, n := tops[place], 2+g.IntN(8)
		if place != "" {
			n = g.IntN(4)
		}
		for range n {
			g.file(place).add(g.statement(top, 0))
		}
		for range g.IntN(3) {
			g.file(place).add(g.sink(top))
		}
	}
	return g.project()
}

// instances starts a place with some constants and some instances that certainly
// exist. The main file sees those of the modules too.
func (g *generator) instances(place string, tops map[string]*scope) *scope {
	f, top := g.file(place), &scope{place: place}
	for _, c := range g.constants(place) {
		f.add(c.name + " = " + g.constant(c.typ))
		top.variables = append(top.variables, c)
	}
	if place == "" {
		for _, from := range g.places {
			for _, v := range tops[from].variables {
				v.name = g.ref("", from, v.name)
				top.variables = append(top.variables, v)
			}
		}
	}
	n := 2 + g.IntN(5)
	if place != "" {
		n = g.IntN(3)
	}
	for range n {
		e := pick(g, g.entities)
		if !g.sees(place, e) {
			continue
		}
		name := g.fresh("x")
		f.add(name + " = " + g.constructor(e, top, 1))
		e.made = append(e.made, g.keys)
		if earlier := g.instance(top, nil); earlier != "" && g.exports && g.chance(40) {
			f.add(name + ".requires = " + earlier)
		}
		top.variables = append(top.variables, variable{name: name, typ: e.name, entity: e, sure: true})
	}
	return top
}

// define writes an entity with its relations, index and implementations.
func (g *generator) define(e *entity) {
	home := g.file(e.place)
	var b strings.Builder
	fmt.Fprintf(&b, "entity %s", e.name)
	for i, p := range e.parents {
		b.WriteString([]string{" extends ", ", "}[min(i, 1)] + g.name(e.place, p))
	}
	b.WriteString(":\n")
	for _, a := range e.attributes {
		fmt.Fprintf(&b, "    %s %s", g.typeName(e.place, a.typ), a.name)
		if a.giver == byDefault {
			b.WriteString(" = " + a.def)
		}
		b.WriteString("\n")
	}
	b.WriteString("end")
	home.add(b.String())
	for _, r := range e.relations {
		if r.implicit {
			continue
		}
		at := e.place
		if !g.sees(at, r.target) {
			at = ""
		}
		back := g.name(at, r.target)
		if r.inverse != nil {
			back += fmt.Sprintf(".%s %s", r.inverse.name, bounds(r.inverse))
		}
		g.file(at).add(fmt.Sprintf("%s.%s %s -- %s", g.name(at, e), r.name, bounds(r), back))
	}
	if e.indexed {
		home.add(fmt.Sprintf("index %s(key)", e.name))
	}
	g.implement(e)
}

// implement gives an entity the implementation that sets its attributes, and sometimes
// one that depends on a condition. The implementations are in a place that sees
// everything they construct, which need not be the place of the entity.
func (g *generator) implement(e *entity) {
	attributes, relations := e.all(), e.allRelations()
	if e.inherits {
		attributes, relations = e.attributes, e.relations
	}
	at := e.place
	for _, r := range relations {
		if r.low == 1 && !g.sees(at, r.target) {
			at = ""
		}
	}
	if g.chance(20) {
		at = ""
	}
	s := &scope{self: e, place: at, variables: g.constants(at)}
	var lines []string
	for _, a := range attributes {
		if a.giver == byImplementation {
			lines = append(lines, "self."+a.name+" = "+g.expression(a.typ, s, 2, a.name))
		}
	}
	for _, r := range relations {
		if r.implicit || r.target.depth <= g.reach(e) || r.target.part != nil || !g.sees(at, r.target) {
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
	if g.chance(30) {
		lines = append(lines, g.sink(s))
	}
	g.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	f, typ := g.file(at), g.name(at, e)
	f.add(fmt.Sprintf("implementation i_%s for %s:\n%s\nend", e.name, typ, indent(lines)))
	switch {
	case e.inherits && g.chance(50):
		f.add(fmt.Sprintf("implement %s using i_%s, parents", typ, e.name))
	case e.inherits:
		f.add(fmt.Sprintf("implement %s using i_%s", typ, e.name), fmt.Sprintf("implement %s using parents", typ))
	default:
		f.add(fmt.Sprintf("implement %s using i_%s", typ, e.name))
	}
	if g.chance(40) {
		more := g.statement(s.inner(), 1)
		f.add(fmt.Sprintf("implementation m_%s for %s:\n%s\nend", e.name, typ, indent([]string{more})),
			fmt.Sprintf("implement %s using m_%s when %s", typ, e.name, g.refinement(s)))
	}
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
