package generate

import (
	"fmt"
	"slices"
	"strings"
)

// stands are the places for an expression that are one statement.
var stands = []string{
	// arguments of constructors
	"@Box(i=<int>)", "@Box(s=<str>)", "@Box(b=<bool>)", "@Box(l=<nums>)", "@Box(d=<dict>)", "@Box(any=<nums>)",
	"@Box(small=<int>)", "@Box(word=<str>)", "@Box(i=<int>, s=<str>, l=<nums>)", "@Box(any=[<lit>, <dict>])",
	`@Box(**{"i": <int>})`, `@Box(**{"leafs": <leafs>, "s": <str>})`, `@Box(**{"d": <dict>}, nodes=<nodes>)`,
	"@Box(leafs=<leafs>)", "@Box(leafs=<leafs>)", "@Box(leafs=<leaf>)", "@Box(nodes=<nodes>)", "@Box(nodes=<node>)",
	"@Box(parts=<parts>)", "@Box(parts=<part>)", "@Box(single=<leaf>)", "@Box(things=<leafs>)",
	"@Box(leafs=<leafs>, nodes=<nodes>)", "@Pair(one=<leaf>)", "@Pair(one=<leaf>, two=[<leaf>, <leaf>])",
	"@Pair(two=<leafs>, one=<leaf>)", "@Mark(key=<str>)", "@Mark(key=<new>)",
	"@Part(owner=<node>, key=<new>, leaf=<leaf>)",
	// assignments
	"<id> = <any>", "<id> = <any>", "<id> = <list>", "<id> = [<any>, <any>]", "<var> = @Box()\n<var>.leafs = <leafs>",
	"<var> = @Box()\n<var>.nodes += <nodes>", "<var> = @Box()\n<var>.parts += <parts>\n<var>.leafs += <leaf>",
	"<var> = @Box(leafs=<leaf>)\n<var>.leafs += <leafs>",
	"<var> = @Box()\n<var>.single = <leaf>", "<var> = @IntSlot()\n<var>.v = <int>",
	"<var> = @StrSlot()\n<var>.v = <str>", "<var> = @BoolSlot()\n<var>.v = <bool>",
	"<var> = @ListSlot()\n<var>.v = <nums>", "<var> = @DictSlot()\n<var>.v = <dict>",
	"<var> = @Pair(one=<leaf>)\n<var>.two = [<leaf>, <leaf>]",
	// relations, from both ends
	"<node!>.all += <leafs>", "<node!>.all = <leaf>", "<node!>.more += <leafs>", "<node!>.more = <leafs>",
	"<node!>.kids += <nodes>", "<node!>.elders = <nodes>", "<node!>.all += [<leaf>, <leafs>]",
	"<leaf!>.all_of += <nodes>", "<leaf!>.all_of = <node>", "<leaf!>.elder_of += <nodes>",
	"<leaf!>.elder_of += <node>", "<node!>.kids += <node>", "<leaf!>.all_of += [<nodes>, <node>]",
	"<node!>.requires += <leafs>", "<leaf!>.provides = <nodes>",
	// an expression as a statement
	"<any>", "<list>", "m::told(<any>)", "m::told(y=1, x=<any>)", `m::told(**{"x": <any>})`, "m::told(<list>, <any>)",
}

// rash are places that mostly fail: optional ends, and reads of attributes that nothing sets.
var rash = []string{
	"@Box(**<dict>)", "<node!>.opt = <leaf>", "<node!>.next = <node>", "<node!>.prev += <nodes>",
	"<node!>.many += <leafs>", "<leaf!>.owner = <node>", "<leaf!>.opt_of += <nodes>", "<node!>.many = <leaf>",
	"<node!>.limit = <int>", "<node!>.one = <leaf>",
}

// statement returns a statement. Later statements see what it defines.
func (p places) statement(level int) []string {
	depth := pick(p.generator, []int{1, 2, 2, 2, 3})
	g := p.generator
	block := func(p places) string { return indent(p.block(level + 1)) }
	lines := func(text string) []string { return strings.Split(text, "\n") }
	switch n := p.IntN(100); {
	case level < 3 && n < 22:
		from, name := pick(g, lists), pick(g, []string{"x", "y", "e", "e", "f", "ls", "key"})
		return lines("for " + name + " in " + p.expression(from, depth) + ":\n" + block(p.loop(from, name)) + "\nend")
	case level < 3 && n < 27 && !p.blind("node"): // what exists may be read
		of, inner := pick(g, []string{"leaf .opt", "node .next", "int .limit"}), p
		kind, attribute, _ := strings.Cut(of, " ")
		path := p.path("node", 0) + attribute
		inner = inner.with(kind, path, 2)
		also := ""
		if p.chance(40) {
			also = " and " + inner.expression("bool", 1)
		}
		return lines("if " + path + " is defined" + also + ":\n" + block(inner) + p.otherwise(level) + "\nend")
	case level < 3 && n < 37:
		text := "if " + p.expression("bool", depth) + ":\n" + block(p)
		if p.chance(20) {
			text += "\nelif " + p.expression("bool", depth) + ":\n" + block(p)
		}
		return lines(text + p.otherwise(level) + "\nend")
	case n < 43:
		kind := pick(g, kinds)
		text := p.fresh("v")
		value := p.expression(kind, depth)
		if p.world == "" {
			p.names[kind] = append(p.names[kind], text)
		}
		return []string{text + " = " + value}
	}
	for {
		from := stands
		if !p.calm && p.chance(25) {
			from = rash
		}
		if stand := pick(g, from); p.allows(stand) {
			text := p.filled(strings.ReplaceAll(stand, "<var>", p.fresh("k")), depth)
			if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "(") { // or it continues the line before
				text = "0\n" + text
			}
			return lines(text)
		}
	}
}

func (p places) otherwise(level int) string {
	if !p.chance(40) {
		return ""
	}
	return "\nelse:\n" + indent(p.block(level+1))
}

// block returns the body of a statement. Nothing outside sees what it defines.
func (p places) block(level int) (lines []string) {
	names := map[string][]string{}
	for kind, of := range p.names {
		names[kind] = slices.Clone(of)
	}
	p.names = names
	for range pick(p.generator, []int{1, 1, 2}) {
		lines = append(lines, p.statement(level)...)
	}
	if p.turns {
		name := p.fresh("b")
		for _, loop := range p.names["loop"] {
			name += "-{" + loop + "}"
		}
		lines = append(lines, `m::told(f"`+name+`")`)
	}
	return lines
}

// ladder returns calls that wait longer and longer, and some that wait for an expression.
func (p places) ladder() (lines []string) {
	wait := "true"
	for i := range 9 {
		lines = append(lines, fmt.Sprintf(`m::told("%d", y=%s)`, i, wait))
		wait = "(" + wait + " ? true : false)"
	}
	for range 2 + p.IntN(5) {
		lines = append(lines,
			fmt.Sprintf(`m::told("%s", y=%s)`, p.fresh("e"), p.expression(pick(p.generator, kinds), 1+p.IntN(3))))
	}
	p.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}
