package eval_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

func parsed(t *testing.T, model string) eval.Input {
	t.Helper()
	f, err := syntax.Parse(syntax.FileInfo{Path: "main.cf", Namespace: "__config__"}, []byte(model))
	if err != nil {
		t.Fatal(err)
	}
	return eval.Input{Files: []*syntax.File{f}}
}

// An implementation that makes an instance which is implemented the same way would
// never end. It is stopped at the constructor.
func TestEndlessImplementationIsStopped(t *testing.T) {
	in := parsed(t, `entity A:
  int n
end
A.next [0:1] -- A.prev [0:1]
implementation more for A:
  self.next = A(n=self.n + 1)
end
implement A using more
A(n=0)
`)
	in.MaxIterations = 500
	r := eval.Compile(context.Background(), in)
	if r.Err == nil || !strings.Contains(r.Err.Message, "500 implementations stand above") {
		t.Fatal(r.Err)
	}
	if at := r.Err.Diagnostics()[0].Location.Line; at != 6 {
		t.Error("line", at)
	}
	if n := len(r.Instances); n != 501 { // the first one has none above it, the last one 500
		t.Error("instances", n)
	}
}

// A chain of implementations that ends is allowed, up to the limit.
func TestDeepImplementationsThatEnd(t *testing.T) {
	in := parsed(t, `entity A:
  int n
end
A.next [0:1] -- A
implementation more for A:
  self.next = A(n=self.n + 1)
end
implementation last for A: end
implement A using more when self.n < 499
implement A using last when self.n == 499
A(n=0)
`)
	in.MaxIterations = 500
	if r := eval.Compile(context.Background(), in); r.Err != nil || len(r.Instances) != 500 {
		t.Fatal(r.Err, len(r.Instances))
	}
}

// A list that feeds itself stays flat, so that only the memory shows it.
func TestListThatFeedsItselfIsStopped(t *testing.T) {
	in := parsed(t, `entity A:
  int n
end
entity B: end
implementation none for std::Entity: end
implement A using none
implement B using none
B.xs [0:] -- A
b = B()
b.xs += A(n=0)
for a in b.xs:
  b.xs += A(n=a.n + 1)
end
`)
	in.MemoryMax = 64 << 20
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r := eval.Compile(ctx, in)
	if r.Err == nil || !strings.Contains(r.Err.Message, "needs more than 64 MiB") {
		t.Fatal(r.Err)
	}
}

// Nested blocks and chains of parents cost as much as their size, not its square:
// ten thousand levels of either would take minutes and gigabytes.
func TestDepthCostsNoMoreThanSize(t *testing.T) {
	const n = 10_000
	var inherit strings.Builder
	inherit.WriteString("entity E0:\n  string name = \"x\"\nend\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&inherit, "entity E%d extends E%d:\nend\n", i, i-1)
	}
	fmt.Fprintf(&inherit, "implementation none for E0: end\nimplement E%d using none\ny = E%d()\nx = y.name\n", n-1,
		n-1)
	for name, model := range map[string]string{
		"if":      strings.Repeat("if true:\n", n) + "x = 1\n" + strings.Repeat("end\n", n),
		"elif":    "if false:\n x = 1\n" + strings.Repeat("elif false:\n x = 2\n", n) + "end\n",
		"inherit": inherit.String(),
		"list":    "x = " + strings.Repeat("[", n) + strings.Repeat("]", n),
		"dict":    "x = " + strings.Repeat(`{"a": `, n) + "1" + strings.Repeat("}", n),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := parsed(t, model)
			in.MemoryMax = 2 << 30
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if r := eval.Compile(ctx, in); r.Err != nil {
				t.Fatal(r.Err)
			}
		})
	}
}

// Instances that wait for themselves, each with a promise to the next, are freed one
// by one. Finding the next one to free must not look at all the others.
func TestManyCirclesOfPromises(t *testing.T) {
	const n = 20_000
	in := parsed(t, `entity A: end
entity B: end
A.left [0:] -- B
A.right [0:] -- B
implementation none for std::Entity: end
implementation wait for A:
  if self.left is defined:
    self.right = B()
  end
  if self.right is defined:
    self.left = B()
  end
end
implement A using wait
implement B using none
`+strings.Repeat("A()\n", n))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := eval.Compile(ctx, in)
	if r.Err != nil || len(r.Instances) != n {
		t.Fatal(r.Err, len(r.Instances))
	}
	if r.Rounds < n {
		t.Errorf("%d lists were frozen by themselves, fewer than circles", r.Rounds)
	}
}

// A regular expression that backtracks without end is given up. The error shows the
// expression, which has to be mended, and stays where the value is set.
func TestARegularExpressionWithoutEndIsShown(t *testing.T) {
	defer func(before time.Duration) { types.MatchLimit = before }(types.MatchLimit)
	types.MatchLimit = 50 * time.Millisecond
	_, result := errorsOf(
		t,
		"typedef slow as string matching   /^(a+)+$/\nentity A:\n    slow s\nend\nimplement A using "+
			"done\nimplementation done for A:\nend\nA(s=\""+strings.Repeat("a", 60)+"b\")\n",
	)
	d := result.Err.Diagnostic()
	if d.Location == nil || d.Location.Line != 8 || len(d.Causes) != 1 ||
		!strings.Contains(d.Causes[0].Message, "takes too long") {
		t.Fatalf("got %+v", d)
	}
	if at := d.Place(); at.Line != 1 || at.Column != 35 || at.EndColumn != 44 {
		t.Errorf("the error points at %+v", at)
	}
}
