package eval_test

import (
	"fmt"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/eval"
)

// errorsOf compiles a main file and lists the lines of its errors: the first one,
// then the further ones.
func errorsOf(t *testing.T, text string) (lines []int, result *eval.Result) {
	t.Helper()
	result = compile(t, map[string]string{"main.cf": text}, []string{"main.cf"})
	if result.Err == nil {
		t.Fatal("the model compiles")
	}
	for _, e := range append([]*eval.Error{result.Err}, result.Further...) {
		line := 0
		if l := e.Diagnostic().Location; l != nil {
			line = l.Line
		}
		lines = append(lines, line)
	}
	return lines, result
}

// Two services fail for different reasons, and so does a variable that has nothing
// to do with them: all three errors are reported in one compile, but none that only
// follows from them.
func TestIndependentErrorsAreReportedTogether(t *testing.T) {
	lines, _ := errorsOf(t, `entity A:
    int x
end
implement A using done
implementation done for A:
end
a = A(x="one")
b = A(x=2)
b.x = 3
c = int("no number")
d = c + 1
e = A(x=d)
`)
	if fmt.Sprint(lines) != "[10 7 9]" {
		t.Errorf("errors on lines %v", lines)
	}
}

// A thousand instances that fail in the same statement are one error, which counts
// the others.
func TestRepetitionsAreCounted(t *testing.T) {
	var text strings.Builder
	text.WriteString(
		"entity A:\n    int x\nend\nimplement A using wrong\nimplementation wrong for A:\n    self.x = \"text\"\nend\n",
	)
	for range 1000 {
		text.WriteString("A()\n")
	}
	lines, result := errorsOf(t, text.String())
	if fmt.Sprint(lines) != "[6]" {
		t.Fatalf("errors on lines %v, want one, on line 6", lines)
	}
	if d := result.Err.Diagnostic(); d.Repeats != 999 {
		t.Errorf("told that it holds for %d more instances, want 999", d.Repeats)
	}
}

// After an error no plug-in is called: it might do something that must not be done
// for a wrong model.
func TestNoPluginRunsAfterAnError(t *testing.T) {
	_, result := errorsOf(t, `import test
test::print("before")
x = int("no number")
y = 1
y = 2
z = test::print("after")
`)
	if len(result.Output) > 1 || len(result.Output) == 1 && result.Output[0] != "before" {
		t.Errorf("plug-ins printed %q", result.Output)
	}
	if len(result.Further) == 0 {
		t.Error("the second error is not told")
	}
}

// A model that fails and never ends is given up after a number of units.
func TestAnEndlessModelStopsAfterItsFirstError(t *testing.T) {
	errorsOf(t, `entity A:
end
implement A using more
implementation more for A:
    A()
end
A()
x = int("no number")
`)
}

// The chain of an error leads from the statement to the top level: an instance, the
// implementation that ran for it, the instance that this one was made for, and so
// on.
func TestChainLeadsToTheTopLevel(t *testing.T) {
	_, result := errorsOf(t, `entity Site:
    string name
end
entity Service:
    string name
    int port
end
index Service(name)
implement Site using site
implement Service using service
implementation site for Site:
    Service(name="web")
end
implementation service for Service:
    if true:
        self.port = "eighty"
    end
end
Site(name="main")
`)
	var got []string
	for _, step := range result.Err.Diagnostic().Chain {
		got = append(
			got,
			fmt.Sprintf("%s of %s at %d: %s", step.Implementation, step.Instance, step.Made.Line,
				strings.TrimSpace(step.Source)),
		)
	}
	want := `__config__::service of __config__::Service(name="web") at 12: Service(name="web")
__config__::site of __config__::Site(name="main") at 19: Site(name="main")`
	if strings.Join(got, "\n") != want {
		t.Errorf("the chain is\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// The error for what an instance lacks in the end shows what made the instance. Of a
// very deep chain it shows both ends.
func TestChainOfWhatIsMissing(t *testing.T) {
	_, result := errorsOf(t, `entity Link:
    int n
    string text
end
implement Link using more
implementation more for Link:
    if self.n > 0:
        Link(n = self.n - 1, text = self.n == 1 ? self.text : "set")
    end
end
Link(n=100, text="first")
entity Bare:
    string text
end
implement Bare using done
implementation done for Bare:
end
entity Maker:
end
implement Maker using make
implementation make for Maker:
    Bare()
end
Maker()
`)
	d := result.Err.Diagnostics()[0]
	if len(d.Chain) != 2 || d.Chain[0].Instance != "__config__::Bare" ||
		d.Chain[1].Implementation != "__config__::make" {
		t.Errorf("the chain is %+v", d.Chain)
	}
	_, result = errorsOf(t, `entity Link:
    int n
end
implement Link using more
implementation more for Link:
    if self.n > 0:
        Link(n = self.n - 1)
    end
    if self.n == 0:
        self.n = 5
    end
end
Link(n=100)
`)
	chain := result.Err.Diagnostic().Chain
	skipped := 0
	for _, step := range chain {
		skipped += step.Skipped
	}
	if len(chain)+skipped != 101 || skipped == 0 {
		t.Errorf("%d steps and %d left out, want 101 together", len(chain), skipped)
	}
}

// The definition phase goes on after an error, statement by statement, and does not
// report what only follows from it: uses of a type whose name is wrong, attributes
// of an entity whose parent is unknown, an index on them.
func TestDefinitionsAreAllChecked(t *testing.T) {
	lines, result := errorsOf(t, `import test
typedef port as integer matching self > 0
entity A extends Missing:
    strin name
    port number
end
entity B:
    string name = 5
    string name
end
A.bs [0:] -- C.a [1]
B.self [1] -- B
index A(missing_too)
index B(nam)
implement A using nobody
implementation broken for D:
    x = A(whatever=1, y=B(nme="x"))
    y = test::uper("a")
end
a = A(anything=3)
b = B(name="b", colour="red")
c = Bee()
d = Bee()
`)
	want := "[2 3 4 8 8 11 14 15 16 17 18 21 22]"
	if fmt.Sprint(lines) != want {
		for _, e := range append([]*eval.Error{result.Err}, result.Further...) {
			t.Log(e.Diagnostic().Render())
		}
		t.Errorf("errors on lines %v, want %s", lines, want)
	}
}
