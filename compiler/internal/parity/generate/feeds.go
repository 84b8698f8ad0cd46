package generate

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

// Feeds makes a model in which some statements add to a handful of relations while
// others read them. Whether it compiles depends on when each relation is frozen.
// Unlike Case, Feeds does not try to make models that compile.
func Feeds(seed uint64) parity.Case {
	f := feeder{generator: &generator{Rand: rand.New(rand.NewPCG(seed, 34))}}
	return parity.Case{Area: "feeds", Name: fmt.Sprint(seed), Files: map[string]string{"main.cf": f.model()}}
}

// feeder writes statements for one place. self is the expression for the instance that
// is available there.
type feeder struct {
	*generator
	self string
}

func (f feeder) model() string {
	bounds := func() string { return pick(f.generator, []string{"[0:]", "[0:]", "[1:]", "[2:]", "[0:2]"}) }
	f.self = "self"
	body := indent(f.block(0, ""))
	f.self = "x1"
	top := f.block(0, "")
	return fmt.Sprintf(
		`implementation none for std::Entity:
end
implementation i for A:
%s
end
implementation c for C:
    self.a.%s = self.r
end
entity B:
    int key
end
entity A:
    int key
    int[] keys = [1, 2]
end
entity C:
end
A.r %s -- B%s
A.s %s -- B
A.o [0:1] -- A
A.m [0:] -- A%s
A.one [0:1] -- B
C.a [1] -- A.cs [0:]
C.r [0:] -- B
index B(key)
implement A using i%s
implement A using none
implement B using none
implement C using %s
nothing = []
three = 3
b1 = B(key=11)
b2 = B(key=12)
b7 = B(key=7)
x2 = A(key=2, r=[b1, b7], s=[b2, b1])
x1 = A(key=1, o=x2, r=b2, s=b1)
x2.o = %s
%s
`,
		body,
		f.relation(),
		bounds(),
		pick(f.generator, []string{"", ".rof [0:]"}),
		bounds(),
		pick(f.generator, []string{"", ".mof [0:]"}),
		pick(f.generator, []string{"", " when self.key == 1", " when self.key < 5", " when self.o is defined"}),
		pick(f.generator, []string{"c", "c", "none"}),
		pick(f.generator, []string{"x1", "x2", "A(key=3, r=[b1, b2], s=[b1, b2])"}),
		strings.Join(top, "\n"),
	)
}

func (f feeder) relation() string { return pick(f.generator, []string{"r", "s"}) }

// filled replaces each O of a template by an instance of A, and each N by a key.
func (f feeder) filled(templates ...string) string {
	text := pick(f.generator, templates)
	text = strings.ReplaceAll(text, "O",
		pick(f.generator, []string{f.self, f.self + ".o", "x2", "x1", f.self + ".o.o"}))
	return strings.ReplaceAll(text, "N", fmt.Sprint(1+f.IntN(9)))
}

// some returns a list of instances of B, or an expression that counts as one.
func (f feeder) some(loop string) string {
	if loop != "" && f.chance(25) {
		return pick(f.generator, []string{loop, "[" + loop + ", b1]", "[" + loop + ", " + loop + "]"})
	}
	return f.filled("O.r", "O.s", "[O.r, b1]", "b1", "b2", "B(key=N)", "[b1, b2]", "[B(key=N)]", "[q for q in O.r]",
		"[q for q in O.s if q.key > 3]", "(true ? O.r : O.s)", "(O.o is defined ? O.r : [])", "B[key=7]",
		"[[O.s], O.r]", "[B(key=O.key) for i in O.keys]", "[O.r, O.s]", "O.one")
}

// other returns a list of something else.
func (f feeder) other() string {
	return f.filled("O.m", "[O]", "[O.o]", "[O.m, O]", "[e.key for e in O.r]", "O.keys", "[O.key]", "[O.keys, O.key]",
		"[O.o.key]", "nothing", "[three]", `[f"{O.key}"]`, "[q.o for q in O.m]", "[true ? O.key : N]")
}

func (f feeder) condition() string {
	return f.filled("O.key > 1", "O.o is defined", "O.r is defined", "O.s is defined", "O.one is defined",
		"2 in O.keys", "b1 in O.r", "true", "O.m is defined and O.key < 5")
}

func (f feeder) block(depth int, loop string) []string {
	var lines []string
	for range 1 + f.IntN(2) + (2-depth)/2*(1+f.IntN(2)) {
		lines = append(lines, strings.Split(f.statement(depth, loop), "\n")...)
	}
	return lines
}

func (f feeder) statement(depth int, loop string) string {
	switch n := f.IntN(100); {
	case depth < 2 && n < 20:
		return "for e" + fmt.Sprint(depth) + " in " + pick(
			f.generator,
			[]string{f.filled("O.r", "O.s"), "[" + f.some(loop) + "]"},
		) + ":\n" + indent(f.block(depth+1, "e"+fmt.Sprint(depth))) + "\nend"
	case depth < 2 && n < 32:
		return "for e" + fmt.Sprint(depth) + " in " + f.other() + ":\n" + indent(f.block(depth+1, loop)) + "\nend"
	case depth < 2 && n < 44:
		text := "if " + f.condition() + ":\n" + indent(f.block(depth+1, loop))
		if f.chance(40) {
			text += "\nelse:\n" + indent(f.block(depth+1, loop))
		}
		return text + "\nend"
	case n < 78:
		return f.filled("O.") + f.relation() + pick(f.generator, []string{" = ", " += "}) + f.some(loop)
	case n < 84:
		return f.filled("O.m = ", "O.m += ") + f.filled("O", "x2", "[x1, x2]")
	case n < 89:
		return f.filled("O.one = ") + f.filled("b1", "b2", "B[key=7]")
	case n < 95:
		return f.fresh("v") + " = " + pick(f.generator, []string{f.some(loop), f.other()})
	}
	return "C(a=" + f.filled("O") + ", r=" + f.some(loop) + ")"
}
