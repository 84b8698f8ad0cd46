package eval_test

import (
	"context"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
)

// hintsOf compiles a model with the data trace and returns the hints of its errors.
func hintsOf(t *testing.T, model string, trace bool) string {
	t.Helper()
	file, err := syntax.Parse(syntax.FileInfo{Path: "main.cf", Namespace: "__config__"}, []byte(model))
	if err != nil {
		t.Fatal(err)
	}
	result := eval.Compile(context.Background(), eval.Input{Files: []*syntax.File{file}, DataTrace: trace})
	if result.Err == nil {
		t.Fatal("the model compiles")
	}
	var b strings.Builder
	for _, d := range result.Diagnostics() {
		b.WriteString(d.Render())
	}
	return b.String()
}

// Two implementations disagree about a port. The trace follows each value through
// the variables that passed it on, and names the implementations that ran.
func TestDataTraceFollowsVariables(t *testing.T) {
	const model = `entity Host:
    int port
end
implementation h for Host:
    self.port = standard
end
implement Host using h
standard = base
base = 8080
wanted = 9090
a = Host()
a.port = wanted
`
	const host = "__config__::Host (instantiated at main.cf:11)"
	text := hintsOf(t, model, true)
	at := 0
	for _, want := range []string{
		host + ".port = 9090, written at main.cf:12   a.port = wanted",
		"wanted = 9090, written at main.cf:10   wanted = 9090",
		host + ".port, written at main.cf:5   self.port = standard",
		"in implementation __config__::h of " + host + ", chosen at main.cf:7",
		"standard = 8080, written at main.cf:8   standard = base",
		"base = 8080, written at main.cf:9   base = 8080",
	} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is not said, or not in its turn:\n%s", want, text)
		}
		at += i + len(want)
	}
	if plain := hintsOf(t, model, false); strings.Contains(plain, "data trace") {
		t.Errorf("a trace that nobody asked for:\n%s", plain)
	}
}

// A file has no owner: the trace shows where the file was made.
func TestDataTraceOfAnUnsetAttribute(t *testing.T) {
	text := hintsOf(t, `entity Host:
end
entity File:
    string owner
end
implementation h for Host:
    File()
end
implementation f for File:
end
implement Host using h
implement File using f
a = Host()
`, true)
	for _, want := range []string{
		"__config__::File (instantiated at main.cf:7).owner: nothing was assigned",
		"File made at main.cf:7   File()",
		"in implementation __config__::h of __config__::Host (instantiated at main.cf:13), chosen at main.cf:11",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said:\n%s", want, text)
		}
	}
}

// The same key in two indexes leads to two instances. The error names both, and the
// indexes that found them.
func TestIndexCollisionIsExplained(t *testing.T) {
	text := hintsOf(t, `entity Host:
    string name
    int port
end
implementation h for Host:
end
implement Host using h
index Host(name)
index Host(port)
a = Host(name="a", port=1)
b = Host(name="b", port=2)
c = Host(name="a", port=2)
`, false)
	for _, want := range []string{
		"index __config__::Host(name) finds __config__::Host (instantiated at main.cf:10) by name='a'",
		"index __config__::Host(port) finds __config__::Host (instantiated at main.cf:11) by port=2",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said:\n%s", want, text)
		}
	}
}
