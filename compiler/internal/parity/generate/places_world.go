package generate

import (
	"slices"
	"strings"
)

// schema returns the definitions that the statements use. Their implementations are places too.
func (p places) schema() []string {
	g := p.generator
	pure := p
	pure.names, pure.bare, pure.stray = map[string][]string{"int": {"self"}}, true, 0
	dict := p
	dict.names, dict.bare = map[string][]string{}, true
	def := pick(g, []string{"1", "1", dict.leaf("int"), dict.leaf("str"), dict.leaf("nums")})
	if p.chance(3) {
		def = dict.filled("<lit>", 1)
	}
	between := "--"
	if p.chance(6) { // a relation with annotations
		between = p.top(false).filled(pick(g, []string{"<int>", "<any>, <bool>", "<leafs>", "(<bool> ? 1 : 2)"}), 1)
	}
	parts := []string{
		"typedef small as int matching " + pick(
			g,
			[]string{
				"self < 70",
				"self in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]",
				"(self > 100 ? false : true)",
				"not self in [99]",
				"(self < 70 or " + pure.filled("<bool>", 2) + ")",
				"(" + pure.filled("<int>", 1) + " == self or self < 80)",
			},
		),
		"typedef word as string matching /[a-z0-9<-]*/",
		"implementation none for std::Entity:\nend",
		"entity Root:\n    int level = 7\n    string tag = \"p\"\nend",
		"entity Node extends Root:\n    string key\n    int size = 1\n    int? limit = null\n    int[] nums = [4, " +
			"5]\n    dict opts = {\"k\": " + def + ", \"n\": \"n1\"}\n    bool on = true\nend",
		"entity Sub extends Node:\nend",
		"entity Leaf:\n    string key\n    int weight = 0\nend",
		"entity Twig extends Leaf:\nend",
		"entity Part:\n    string key\nend",
		"entity Mark:\n    string key\nend",
		"entity Box:\n    string s = \"\"\n    int? i = null\n    bool b = true\n    int[] l = []\n    list any = " +
			"[]\n    dict d = {}\n    small small = 1\n    word word = \"w\"\nend",
		"entity Pair:\nend",
		"entity IntSlot:\n    int v\nend", "entity StrSlot:\n    string v\nend", "entity BoolSlot:\n    bool? v\nend",
		"entity ListSlot:\n    int[] v\nend", "entity DictSlot:\n    dict? v\nend",
		"Node.one [1] -- Leaf", "Node.opt [0:1] -- Leaf.opt_of [0:]", "Node.many [0:] -- Leaf.owner [0:1]",
		"Node.all [0:] -- Leaf.all_of [0:]",
		"Root.more [0:] " + between + " Leaf", "Node.next [0:1] -- Node.prev [0:]",
		"Node.kids [0:] -- Node.elders [0:]", "Leaf.elder_of [0:] -- Node",
		"Part.owner [1] -- Node.parts [0:]", "Part.leaf [1] -- Leaf",
		"Box.leafs [0:] -- Leaf", "Box.nodes [0:] -- Node", "Box.parts [0:] -- Part", "Box.single [0:1] -- Leaf",
		"Box.things [0:] -- " + pick(g, []string{"Leaf", "Leaf", "std::Entity"}),
		"Pair.one [1] -- Leaf.pairs [0:]", "Pair.two [" + pick(g, []string{"2", "0:2", "1:"}) + "] -- Leaf",
		"index Node(key)", "index Leaf(key)", "index Part(owner, key)",
	}
	for _, e := range []string{"Part", "Mark", "Pair", "IntSlot", "StrSlot", "BoolSlot", "ListSlot", "DictSlot"} {
		parts = append(parts, "implement "+e+" using none")
	}
	return append(parts, p.implementations()...)
}

// implementations writes the implementations of an entity, which conditions on it select.
func (p places) implementations() []string {
	none := func(e string) []string { return []string{"implement " + e + " using none"} }
	implement := func(e, kind string, of attributes, closed, times int) (parts []string) {
		for range times {
			in := p.within(kind, of, p.chance(60))
			in.closed = closed
			name := p.fresh("i")
			when := ""
			if p.chance(45) {
				in.bare = true
				when = " when " + in.filled("<bool>", 1+p.IntN(2))
				in.bare = false
			}
			parts = append(parts, "implementation "+name+" for "+e+":\n"+indent(in.block(1))+"\nend",
				"implement "+e+" using "+name+when)
			if when != "" {
				parts = append(parts, none(e)...)
			}
		}
		if times == 0 {
			parts = none(e)
		}
		return parts
	}
	times := func(percent int) int {
		if !p.chance(percent) {
			return 0
		}
		return pick(p.generator, []int{1, 1, 1, 2})
	}
	parents := []string{"implement Sub using parents", "implement Twig using parents"}
	if n := times(20); n > 0 {
		parents = append(append(parents, implement("Root", "", ofRoot, 1, n)...), "implement Node using parents")
	}
	return slices.Concat(parents,
		implement("Node", "node", ofNode, 1, times(75)),
		implement("Leaf", "leaf", ofLeaf, 2, times(20)),
		implement("Box", "", ofBox, 3, times(25)))
}

// homes are the variables of the world, with the kinds that they may have.
var homes = map[string][]string{
	"n1": {
		`Node(key="n1", one=l1)`,
		`Node(key="n1", one=l1, opt=l2)`,
		`Node(key="n1", one=l1, limit=3, opt=l1)`,
		`Node(key="n1", one=l1, next=n2)`,
	},
	"n2": {
		`Sub(key="n2", one=l2)`,
		`Node(key="n2", one=l2, size=2, on=false)`,
		`Sub(key="n2", one=l2, all=[l1, l3])`,
		`Node(key="n2", one=l2, more=ls)`,
		`Sub(key="n2", one=l2, **{"opts": {"k": 2}})`,
	},
	"l1": {`Leaf(key="l1")`},
	"l2": {`Twig(key="l2", weight=3)`},
	"l3": {`Leaf(key="l3", weight=1)`, `Leaf(key="l3", weight=i0)`, `Leaf(key="l3", all_of=n1)`},
	"ls": {"[l1, l2]", "[l1]", "[l3, l2]", "n1.all", "[x for x in [l1, l2]]", "[n1.more, l1]"},
	"ns": {"[n1, n2]", "[n2]", "[]", "l1.all_of"},
	"i0": {"2"}, "s0": {`"n1"`}, "d0": {`{"k": 5, "n": "n2"}`}, "q0": {"[1, 2]"}, "t0": {"true", "false"},
}

// late returns statements that add to relations, some of them once other relations are read.
var late = []string{
	"n1.all += l2", "n1.all += [l1, l2]", "l3.all_of += n1", "n1.more += n1.all", "l1.all_of += n2",
	"n2.more += n1.all", "n1.more = l2",
	"for e in ls:\n    e.all_of += n1\nend", "n2.all += [e for e in n1.more]", "n1.kids += n2", "n2.elders += [n1]",
	"n1.kids += n2.elders",
	"for e in n1.kids:\n    e.more += e.all\nend", "n2.more += n2.all",
	"if n1.all is defined:\n    n2.more += l1\nend", "for e in n2.more:\n    e.all_of += n1\nend",
	"if n2.all is defined:\n    n1.kids += n2\nelse:\n    l3.all_of += n2\nend", "l1.elder_of += n1.kids",
}

func (p places) inhabitants() (parts []string) {
	for _, name := range []string{"n1", "n2", "l1", "l2", "l3", "ls", "ns", "i0", "s0", "d0", "q0", "t0"} {
		value := pick(p.generator, homes[name])
		if p.calm && strings.Contains(value, "next=") {
			value = homes[name][0]
		}
		parts = append(parts, name+" = "+value)
	}
	parts = append(parts, `Part(owner=n1, key="c", leaf=l1)`, `Part(owner=n2, key="c", leaf=l2)`)
	for range p.IntN(3) {
		parts = append(parts, pick(p.generator, late))
	}
	return parts
}
