package generate

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

// Heirs makes entities that inherit from each other in all ways, declare the same few
// attributes and relations repeatedly, with and without defaults, share indexes and
// implementations, and are constructed and looked up. Many of the models are wrong:
// they test which definition counts.
func Heirs(seed uint64) parity.Case {
	h := heirs{generator: &generator{Rand: rand.New(rand.NewPCG(seed, 144))}}
	return parity.Case{Area: "heirs", Name: fmt.Sprint(seed), Files: map[string]string{"main.cf": h.model()}}
}

type heirs struct {
	*generator
	names []string
	types map[string]string // of the attributes
}

func (h heirs) model() string {
	h.names = []string{"A", "B", "C", "D", "E"}[:3+h.IntN(3)]
	h.types = map[string]string{
		"n": pick(h.generator, []string{"string", "string", "string", "string?"}),
		"k": pick(h.generator, []string{"int", "int", "small", "int?"}),
		"m": pick(h.generator, []string{"dict", "int[]", "int[]", "bool"}),
	}
	parts := []string{
		"typedef small as int matching self < 10",
		"implementation none for std::Entity:\nend",
		"entity T:\n    int k = 1\nend",
		"implement T using none",
		"t = T()",
	}
	for i, name := range h.names {
		parts = append(parts, h.entity(i, name))
	}
	for range h.IntN(2) {
		parts = append(
			parts,
			fmt.Sprintf("%s.%s %s -- T%s", h.one(), pick(h.generator, []string{"r", "r", "r", "q", "q", "n"}),
				pick(h.generator, []string{"[0:]", "[0:1]", "[1]", "[1:]"}),
				pick(h.generator, []string{"", "", "", ".back [0:]"})),
		)
	}
	if h.chance(40) {
		parts = append(parts, fmt.Sprintf("%s.peer [0:1] -- %s.reep [0:1]", h.one(), h.one()))
	}
	for range h.IntN(2) {
		parts = append(parts,
			fmt.Sprintf("index %s(%s)", h.one(), pick(h.generator, []string{"k", "k", "n", "k, n", "n, k", "k"})))
	}
	for i, name := range h.names {
		parts = append(parts, h.implements(i, name)...)
	}
	for i := range 1 + h.IntN(4) {
		parts = append(parts, fmt.Sprintf("x%d = %s", i, h.constructor(i)))
		if h.chance(30) {
			parts = append(parts, fmt.Sprintf("y%d = x%d.%s", i, i, pick(h.generator, []string{"n", "k", "n", "k"})))
		}
		if h.chance(10) {
			parts = append(
				parts,
				fmt.Sprintf("x%d.%s = %s", i, pick(h.generator, []string{"r", "q", "peer", "n"}),
					pick(h.generator, []string{"t", "[t]", "null", "T(k=2)", `"n"`, "x0"})),
			)
		}
	}
	if h.chance(25) {
		parts = append(
			parts,
			fmt.Sprintf("z = %s[%s]", h.one(),
				pick(h.generator, []string{"k=0", "k=1", `n="a"`, `k=0, n="a"`, `n="z", k=1`})),
		)
	}
	h.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, "\n") + "\n"
}

func (h heirs) one() string { return pick(h.generator, h.names) }

func (h heirs) entity(i int, name string) string {
	var parents []string
	for j := range i {
		if j == 0 && i == 1 || h.chance([]int{0, 80, 60, 50, 40}[min(i, 4)]) {
			parents = append(parents, h.names[j])
		}
	}
	if len(parents) == 0 && i > 0 {
		parents = []string{h.names[h.IntN(i)]}
	}
	h.Shuffle(len(parents), func(i, j int) { parents[i], parents[j] = parents[j], parents[i] })
	text := "entity " + name
	if len(parents) > 0 {
		text += " extends " + strings.Join(parents, ", ")
	}
	text += ":\n"
	attribute := func(name string, percent int, defaults ...string) {
		typ := h.types[name]
		if h.chance(1) {
			typ = "float"
		}
		if h.chance(percent) {
			text += "    " + typ + " " + name + pick(h.generator, defaults) + "\n"
		}
	}
	first := 0
	if i == 0 {
		first = 100 // all entities inherit from the first one
	}
	attribute("n", 30+first, "", ` = "a"`, ` = "`+strings.ToLower(name)+`"`, " = undef", ` = "z"`)
	attribute("k", 20+first, "", " = 1", " = 2", " = undef")
	attribute("m", 20, "", map[string]string{"dict": ` = {"x": 1}`, "int[]": " = [1]", "bool": " = true"}[h.types["m"]])
	return text + "end"
}

func (h heirs) implements(i int, name string) []string {
	var parts []string
	uses := []string{"none"}
	if h.chance(50) {
		own := "i" + strings.ToLower(name)
		body := pick(
			h.generator,
			[]string{
				"v = self.k",
				`w = "{{ self.n }}"`,
				"v = k",
				"T(k=5)",
				"T(k=self.k)",
				`if self.n == "a":` + "\n        T(k=7)\n    end",
				"self.n = \"set\"",
			},
		)
		parts = append(
			parts,
			"implementation "+own+" for "+pick(h.generator,
				[]string{"A", "A", "A", name, h.names[h.IntN(i+1)]})+":\n    "+body+"\nend",
		)
		uses = []string{own, own, own + ", none"}
	}
	text := "implement " + name + " using " + pick(h.generator, uses)
	switch h.IntN(6) {
	case 0:
		text += ", parents"
	case 1:
		text = "implement " + name + " using parents"
	case 2:
		text += pick(
			h.generator,
			[]string{
				" when self.k == 1",
				` when self.n == "a"`,
				" when self.k > 0 and true",
				" when self.n is defined",
			},
		)
	}
	parts = append(parts, text)
	if h.chance(20) {
		parts = append(parts, "implement "+name+" using none")
	}
	return parts
}

func (h heirs) constructor(i int) string {
	var args []string
	give := func(percent int, values ...string) {
		if h.chance(percent) {
			args = append(args, pick(h.generator, values))
		}
	}
	give(70, `n="a"`, `n="z"`, `n="n`+fmt.Sprint(i)+`"`)
	give(80, "k="+fmt.Sprint(i), "k=1", "k=20")
	give(4, "m=[4]", "m={}", "m=null", "m=false")
	give(8, "r=t", "q=t", "r=[t]", "r=null", `**{"n": "q"}`, `**{"k": 4}`)
	return h.one() + "(" + strings.Join(args, ", ") + ")"
}
