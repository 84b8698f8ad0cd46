package generate

import (
	_ "embed"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

//go:embed places.py
var placesLibrary string

// Places puts every kind of expression, nested two or three deep, at every place that
// takes an expression. How an expression is evaluated depends on its place and on when
// the variables in it get their values. The schema is always nearly the same:
//
//	Root ◁─ Node ─▶ Leaf    nodes and leaves, tied by relations of every multiplicity
//	         ◆── Part       found by its owner and a key
//	Box, Pair, Slot         take the values whose places are tried
//
// Templates describe the expressions and places: `(<int> + <int>)` is an expression with
// two holes, and `Box(i=<int>)` a place. A hole takes an expression of its kind; a hole
// with an exclamation mark takes only a name or a chain of attributes.
func Places(seed uint64) parity.Case {
	p := places{generator: &generator{Rand: rand.New(rand.NewPCG(seed, 233))}}
	p.plugins = p.chance(50)
	p.unknowns = p.plugins && p.chance(35)
	p.calm = p.chance(90)
	p.stray = pick(p.generator, []int{0, 0, 0, 0, 2, 4})
	return parity.Case{Area: "places", Name: fmt.Sprint(seed), Files: p.project()}
}

// Turns makes models of Places that print the order of execution: each block prints, and
// so do calls that wait for an expression. Further calls serve as a clock: the nth waits
// for n nested conditionals, so the output between two of them shows how many turns
// passed.
func Turns(seed uint64) parity.Case {
	p := places{generator: &generator{Rand: rand.New(rand.NewPCG(seed, 239))}, plugins: true, turns: true}
	p.unknowns = p.chance(15)
	p.calm = p.chance(95)
	return parity.Case{Area: "turns", Name: fmt.Sprint(seed), Files: p.project()}
}

// places writes expressions for one place. names has the names that are visible there, by
// kind.
type places struct {
	*generator
	names    map[string][]string
	plugins  bool
	unknowns bool
	calm     bool   // read nothing that is likely to be unset
	stray    int    // percentage of expressions of the wrong kind
	world    string // prefix of entities in another namespace: `w::`
	closed   int    // how many levels must not be constructed here, because that would not end
	bare     bool   // construct nothing, as in a condition
	turns    bool   // the model prints its order of execution
}

// The kinds of values, and the kinds of the lists' elements.
var (
	kinds    = []string{"int", "str", "bool", "dict", "nums", "leaf", "leafs", "node", "nodes", "part", "parts"}
	elements = map[string]string{"nums": "int", "leafs": "leaf", "nodes": "node", "parts": "part"}
	lists    = []string{"nums", "leafs", "leafs", "nodes", "parts"}
)

// with returns places with one more name, which hides equal names of other kinds.
func (p places) with(kind, name string, times int) places {
	names := map[string][]string{}
	for k, of := range p.names {
		names[k] = slices.DeleteFunc(slices.Clone(of),
			func(n string) bool { return n == name || strings.HasPrefix(n, name+".") })
	}
	for range times { // repeated, so that it is chosen more often
		names[kind] = append(names[kind], name)
	}
	p.names = names
	return p
}

// top returns what a file sees at its top level.
func (p places) top(far bool) places {
	p.names = map[string][]string{
		"int": {"i0"}, "str": {"s0"}, "bool": {"t0"}, "dict": {"d0"}, "nums": {"q0"},
		"leaf": {"l1", "l2", "l3"}, "leafs": {"ls"}, "node": {"n1", "n2"}, "nodes": {"ns"},
	}
	if far {
		p.world = "w::"
		for _, of := range p.names {
			for i, name := range of {
				of[i] = "w::" + name
			}
		}
	}
	return p
}

// attributes returns the attributes of an entity by kind. Those that may be unset come last.
type attributes map[string][]string

var (
	ofRoot = attributes{"int": {"level"}, "str": {"tag"}, "leafs": {"more"}}
	ofNode = attributes{
		"int": {"size", "level"}, "str": {"key", "tag"}, "bool": {"on"}, "dict": {"opts"}, "nums": {"nums"},
		"leaf": {"one"}, "leafs": {"many", "all", "more"}, "nodes": {"kids", "elders", "prev"}, "parts": {"parts"},
	}
	ofLeaf = attributes{"int": {"weight"}, "str": {"key"}, "nodes": {"opt_of", "all_of", "elder_of"}}
	ofPart = attributes{"str": {"key"}, "node": {"owner"}, "leaf": {"leaf"}}
	ofBox  = attributes{
		"int":   {"small"},
		"str":   {"s"},
		"bool":  {"b"},
		"dict":  {"d"},
		"nums":  {"l"},
		"leafs": {"leafs"},
		"nodes": {"nodes"},
		"parts": {"parts"},
	}
	daring = map[string]attributes{
		"node": {"int": {"limit"}, "leaf": {"opt"}, "node": {"next"}},
		"leaf": {"node": {"owner"}},
	}
	byKind  = map[string]attributes{"node": ofNode, "leaf": ofLeaf, "part": ofPart}
	byOwner = []string{"node", "leaf", "part"}
)

// within returns what an implementation of an entity sees: the attributes, with and
// without self.
func (p places) within(kind string, of attributes, top bool) places {
	if p.names = map[string][]string{}; top {
		p = p.top(false)
	}
	for k, names := range of {
		for _, name := range names {
			p.names[k] = append(p.names[k], name, name, "self."+name)
		}
	}
	if kind != "" {
		p.names[kind] = append(p.names[kind], "self", "self", "self")
	}
	return p
}

// levels are entities with implementations. The implementations of a level construct only
// entities of later levels.
var levels = []*regexp.Regexp{
	regexp.MustCompile(`@(Node|Sub)\(`),
	regexp.MustCompile(`@(Leaf|Twig)\(`),
	regexp.MustCompile(`@Box\(`),
}

// path returns a name of the kind, or a chain of attributes that ends in one.
func (p places) path(kind string, depth int) string {
	type step struct{ of, name string }
	var steps []step
	for _, of := range byOwner {
		named := len(p.names[of]) > 0 || (of == "leaf" && depth == 0 && len(p.names["node"]) > 0)
		if !named || depth > 1 {
			continue
		}
		for _, name := range byKind[of][kind] {
			steps = append(steps, step{of, name})
		}
		if !p.calm {
			for _, name := range daring[of][kind] {
				steps = append(steps, step{of, name})
			}
		}
	}
	names := p.names[kind]
	switch {
	case len(steps) > 0 && (len(names) == 0 || p.chance(45)):
		s := pick(p.generator, steps)
		return p.path(s.of, depth+1) + "." + s.name
	case len(names) > 0:
		return pick(p.generator, names)
	}
	for _, k := range kinds {
		if len(p.names[k]) > 0 {
			return pick(p.generator, p.names[k])
		}
	}
	return "nothing"
}

// project returns the schema and statements. Sometimes the statements are in another
// module than the schema.
func (p places) project() map[string]string {
	imports := ""
	files := map[string]string{}
	if p.plugins {
		imports = "import m\n"
		files["libs/m/module.yml"] = moduleFile("m")
		files["libs/m/model/_init.cf"] = "\n"
		files["libs/m/plugins/__init__.py"] = placesLibrary
	}
	apart := p.chance(25)
	home := append(p.schema(), p.inhabitants()...)
	var near, far []string
	here, there := p.top(false), p.top(true)
	for range 1 + p.IntN(5) {
		if apart && p.chance(60) {
			far = append(far, there.statement(0)...)
			continue
		}
		near = append(near, strings.Join(here.statement(0), "\n"))
	}
	if p.turns {
		near = append(here.ladder(), near...)
	}
	parts := append(near, home...)
	switch p.IntN(4) {
	case 0:
		parts = append(slices.Clone(home), near...)
	case 1, 2:
		p.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	}
	text := imports + strings.Join(parts, "\n") + "\n"
	if !apart {
		files["main.cf"] = text
		return files
	}
	for _, name := range slices.Sorted(maps.Keys(homes)) {
		far = append(far, name+" = w::"+name)
	}
	files["libs/w/module.yml"] = moduleFile("w")
	files["libs/w/model/_init.cf"] = text
	files["main.cf"] = imports + "import w\n" + strings.Join(far, "\n") + "\n"
	return files
}
