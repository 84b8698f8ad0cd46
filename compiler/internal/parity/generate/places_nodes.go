package generate

import (
	"regexp"
	"slices"
	"strings"
)

var (
	hole = regexp.MustCompile(`<([a-z]+)(!?)>`)
	text = regexp.MustCompile(`^f?"|^\(<any!> is`)
)

// filled puts expressions into the holes of a template, and adds the prefix of entities.
func (p places) filled(template string, depth int) string {
	return strings.ReplaceAll(hole.ReplaceAllStringFunc(template, func(h string) string {
		m := hole.FindStringSubmatch(h)
		kind := m[1]
		switch kind {
		case "any":
			kind = pick(p.generator, kinds)
		case "lit": // a value that a dict may hold
			kind = pick(p.generator, []string{"int", "str", "bool", "nums", "dict"})
		case "plain": // a value that formats as itself
			kind = pick(p.generator, []string{"int", "str", "bool", "str"})
		case "list":
			kind = pick(p.generator, lists)
		case "id":
			return p.fresh("z")
		}
		if m[2] == "" {
			return p.expression(kind, depth)
		}
		path := p.path(kind, 0)
		if text.MatchString(template) &&
			!p.chance(3) { // no text names another namespace, nor `is defined` a variable there
			path = strings.TrimPrefix(path, p.world)
		}
		return path
	}), "@", p.world)
}

// nodes are the expressions that make a value of each kind from other values. `@` stands
// for the prefix of entities.
var nodes = map[string][]string{
	"int": {
		"(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>)", "(<int> % 3)", "(3 ** <int>)", `<dict!>["k"]`,
		"int(<int>)", "int(<bool>)", `int("4")`,
		"m::count(<list>)", "m::count(x=<list>)", "m::sizes(<node>)", `m::count(**{"x": <list>})`,
	},
	"str": {
		`"<{{ <plain!> }}>"`, `"{{<plain!>}}-{{ <plain!> }}"`, `f"<{<plain!>}>"`, `f"{<plain!>}-{<plain!>}"`,
		`f"{<str!>:>6}"`, `f"{<any!>!r:.1}"`, `f"{<int!>:0{<int!>}}"`, "(<str> + <str>)", "string(<plain>)",
		"m::shown(<any>)", "m::shown(<any>)", "m::shown(<any>, a=<any>)", `m::shown(<any>, **{"b": <any>})`,
		"m::key(<leaf>)", "m::key(x=<node>)", "m::kind(<any>)",
	},
	"bool": {
		"(<bool> and <bool>)", "(<bool> or <bool>)", "(not <bool>)", "(<int> in <nums>)", "(<leaf> in <leafs>)",
		"(<node> not in <nodes>)", "(<str> in <dict>)", "(<leafs> == <leafs>)", "(<node> == <node>)",
		"(<any> == <any>)", "(<any> != <any>)", "(<int> < <int>)", "(<int> >= <int>)", "(<str> == <str>)",
		"(<any> == null)", "bool(<plain>)", `(<dict!>["k"] is defined)`, `(<dict!>["z"] is defined)`,
		"(<any!> is defined)",
		"(<node!>.opt is defined)", "(<node!>.next is defined)", "(<node!>.limit is defined)",
		"(<node!>.all is defined)", "(<node!>.more is defined)", "(<node!>.many is defined)",
		"(<node!>.kids is defined)",
		"(<node!>.parts is defined)", "(<leaf!>.owner is defined)", "(<leaf!>.all_of is defined)",
		"(<leaf!>.opt_of is defined)", "(<node!>.size is defined)",
	},
	"dict": {
		`{"k": <int>}`,
		`{"k": <int>, "n": <lit>}`,
		`{'k': <int>, r"n": {"e": <nums>}}`,
		"m::boxed(<int>)",
		"m::boxed(n=<int>, x=<lit>)",
	},
	"leaf": {
		`@Leaf[key="l1"]`, `@Leaf[key="l2"]`, `@Leaf[key=<leaf!>.key]`, `@Leaf[key=(<bool> ? "l1" : "l3")]`,
		`@Leaf[key=string(<leaf!>.key)]`, "@Leaf[key=<str>]", `@Leaf[**{"key": "l1"}]`, "@Leaf(key=<new>)",
		"@Leaf(key=<new>)", "@Twig(key=<new>)", "@Leaf(key=<new>, weight=<int>)", "@Leaf(key=<new>, all_of=<nodes>)",
		`@Twig(key=<new>, **{"weight": <int>})`, `@Leaf(key=<new>, **{"elder_of": <nodes>})`,
		"@Leaf(key=<new>, owner=<node>)", `@Leaf(**{"key": <new>})`, `@Leaf(key="l1")`,
	},
	"node": {
		`@Node[key="n1"]`, `@Node[key="n2"]`, `@Node[key=<node!>.key]`, `@Node[key=m::same(<node!>.key)]`,
		`@Node[key=("n" + "1")]`, "@Node(key=<new>, one=<leaf>)", "@Node(key=<new>, one=<leaf>, kids=<nodes>)",
		"@Sub(key=<new>, one=<leaf>, all=<leafs>)", "@Node(key=<new>, one=<leaf>, size=<int>)",
		`@Node(key=<new>, one=<leaf>, **{"more": <leafs>})`, "@Node(key=<new>, one=<leaf>, opts=<dict>, on=<bool>)",
	},
	"part": {
		`<node!>.parts[key="c"]`, `<node!>.parts[key="c"]`, `<node!>.parts[key=(<bool> ? "c" : <str>)]`,
		`@Part[key="c", owner=<node>]`, `@Part[owner=<node>, key=m::same("c")]`,
		"@Part(owner=<node>, key=<new>, leaf=<leaf>)", `<node!>.parts[**{"key": "c"}]`,
	},
}

// literals holds the literals of the kinds that have any.
var plainLiterals = map[string][]string{
	"int": {
		"1",
		"2",
		"0",
		"-1",
		"3",
	}, "str": {`"x"`, `"l1"`, `"n1"`, "'l2'", `r"z"`, `"""m"""`}, "bool": {"true", "false"},
	"dict": {"{}", `{"k": 1}`, `{"k": 4, "n": "q"}`}, "nums": {"[]", "[1]", "[1, 2]", "[1, [2, 3]]"},
}

// expression makes an expression of a kind, nested up to a depth.
func (p places) expression(kind string, depth int) string {
	if p.chance(p.stray) {
		kind = pick(p.generator, append(kinds, "nothing"))
	}
	if p.unknowns && p.chance(6) {
		return pick(
			p.generator,
			[]string{
				"m::unknown()",
				"m::unknown()",
				"m::unknown()",
				"m::unknown()",
				"null",
				"m::nothing()",
				"m::mixed()",
			},
		)
	}
	if kind == "new" {
		return p.key()
	}
	sub := func(template string) string { return p.filled(template, depth-1) }
	switch n := p.IntN(100); {
	case depth <= 0 || n < 20:
		return p.leaf(kind)
	case n < 30:
		return sub("(<bool> ? <" + kind + "> : <" + kind + ">)")
	case n < 35 && p.plugins:
		return sub(
			strings.ReplaceAll(
				pick(
					p.generator,
					[]string{
						"m::same(<KIND>)",
						"m::told(<KIND>)",
						"m::same(x=<KIND>)",
						`m::same(**{"x": <KIND>})`,
						"m::same(<KIND>, y=<any>)",
					},
				),
				"KIND",
				kind,
			),
		)
	case elements[kind] != "":
		return p.list(kind, depth)
	}
	for range 20 {
		if node := pick(p.generator, append(nodes[kind], "")); p.allows(node) {
			return sub(node)
		}
	}
	return p.leaf(kind)
}

var constructs = regexp.MustCompile(`@[A-Z]\w+\(`)

// allows reports whether a template can be used here. Calls need plug-ins, conditions
// construct nothing, implementations construct no entity whose implementations could
// recur, and everything that the template names must be visible.
func (p places) allows(template string) bool {
	switch {
	case template == "" || (strings.Contains(template, "m::") && !p.plugins):
		return false
	case p.bare && constructs.MatchString(template):
		return false
	case slices.ContainsFunc(levels[:p.closed], func(of *regexp.Regexp) bool { return of.MatchString(template) }):
		return false
	case p.alone() && strings.Contains(template, "@"):
		return false
	}
	for _, h := range hole.FindAllStringSubmatch(template, -1) {
		if kind := h[1]; p.blind(kind) &&
			((h[2] != "" && kind != "any" && kind != "plain") || slices.Contains(byOwner, kind)) {
			return false
		}
	}
	return true
}

// alone reports whether no instance is visible, as in a typedef.
func (p places) alone() bool { return p.blind("node") && p.blind("leafs") }

// leaf returns a name of the kind, a literal, or the closest thing to one.
func (p places) leaf(kind string) string {
	some := plainLiterals[kind]
	if len(some) > 0 && (p.chance(20) || p.blind(kind)) {
		return pick(p.generator, some)
	}
	switch {
	case kind == "nothing":
		return "null"
	case elements[kind] != "" && (p.chance(15) || p.blind(kind)):
		if p.chance(40) || p.blind(elements[kind]) {
			return "[]"
		}
		return "[" + p.leaf(elements[kind]) + "]"
	case kind == "part":
		return p.path("node", 0) + `.parts[key="c"]`
	}
	return p.path(kind, 0)
}

// blind reports whether no name of the kind is visible.
func (p places) blind(kind string) bool {
	if len(p.names[kind]) > 0 {
		return false
	}
	return !slices.ContainsFunc(byOwner,
		func(of string) bool { return len(p.names[of]) > 0 && len(byKind[of][kind]) > 0 })
}

// key returns a key that nothing else has, unless it is made twice.
func (p places) key() string {
	name := p.fresh("z")
	if p.chance(30) {
		return `"` + name + `"`
	}
	var parts []string
	for range 1 + p.IntN(2) {
		if path := p.path(pick(p.generator, []string{"int", "str"}), 0); !strings.Contains(path, "::") {
			parts = append(parts, "-{"+path+"}")
		}
	}
	for _, loop := range p.names["loop"] {
		parts = append(parts, "-{"+loop+"}")
	}
	return `f"` + name + strings.Join(parts, "") + `"`
}

// list makes a list from elements, from lists, or with a comprehension.
func (p places) list(kind string, depth int) string {
	of := elements[kind]
	item := func(p places) string {
		if p.chance(30) {
			return p.expression(kind, depth-1)
		}
		return p.expression(of, depth-1)
	}
	switch n := p.IntN(10); {
	case n < 3:
		var items []string
		for range p.IntN(4) {
			items = append(items, item(p))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case n < 8:
		in, loops, guards := p, "", ""
		for range pick(p.generator, []int{1, 1, 1, 1, 1, 2}) {
			from, name := pick(p.generator, lists), pick(p.generator, []string{"x", "x", "y", "e", "key", "all"})
			if p.alone() {
				from = "nums"
			}
			loops += " for " + name + " in " + in.expression(from, depth-1)
			in = in.loop(from, name)
		}
		for range pick(p.generator, []int{0, 0, 0, 1, 1, 2}) {
			guards += " if " + in.expression("bool", depth-1)
		}
		return "[" + item(in) + loops + guards + "]"
	case n == 8 && p.plugins:
		return p.filled(
			strings.NewReplacer("LIST", kind, "ELEMENT", of).
				Replace(pick(p.generator, []string{"m::items(<LIST>)", "m::pair(<LIST>, <ELEMENT>)",
					"m::pair(<ELEMENT>)", "m::same([<ELEMENT>, <LIST>])"})),
			depth-1,
		)
	}
	return p.leaf(kind)
}

// loop returns places that also see the variable of a loop.
func (p places) loop(list, name string) places {
	p = p.with(elements[list], name, 3)
	part := map[string]string{"nums": "", "leafs": ".key", "nodes": ".key", "parts": ".key"}[list]
	p.names["loop"] = append(slices.Clone(p.names["loop"]), name+part)
	return p
}
