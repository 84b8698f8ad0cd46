package plugin

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
)

const echo = `
-- t/plugins/__init__.py --
import sys
from inmanta.plugins import plugin, deprecated, Context, PluginException, ModelType, allow_reference_values
from inmanta.execute.proxy import DynamicProxy, SequenceProxy, DictProxy
from inmanta.execute.util import Unknown
from inmanta.references import Reference, reference
from inmanta import ast

class Marked(str):
    def __new__(cls, text, note):
        self = str.__new__(cls, text)
        self.note = note
        return self

@plugin
def same(x: "any") -> "any":
    return x

@plugin
def marked(text: "string") -> "string":
    return Marked(text, "a note")

@plugin
def note(text: "string") -> "string":
    return text.note

@plugin
def show(x: "any") -> "string":
    return f"{type(x).__name__} {x}"

@plugin
def names(xs: "list") -> "list":
    return [f"{x.name}/{x.peer.name}" for x in xs]

@plugin
def attribute(x: "any", name: "string") -> "any":
    return getattr(x, name)

@plugin
def optional(x: "any") -> "string":
    try:
        return str(x.maybe)
    except ast.OptionalValueException:
        return "none"

@plugin
def both(x: "any") -> "any":
    missing = []
    for name in ("a", "b"):
        try:
            getattr(x, name)
        except ast.UnsetException as e:
            missing.append(e.get_result_variable())
    raise ast.MultiUnsetException("two", missing)

@plugin
def says(n: "int") -> None:
    for i in range(n):
        print("line", i)
    print("no newline", end="")

@plugin
def fails(how: "string") -> None:
    if how == "plugin":
        raise PluginException("use another value")
    if how == "compiler":
        raise ast.RuntimeException(None, "not like this")
    if how == "exit":
        sys.exit(3)
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "memory":
        bytearray(8 << 30)
    {}["absent"]

@plugin
def hangs() -> None:
    import time
    print("waiting for the device")
    time.sleep(300)

@plugin
def dies() -> None:
    import os
    print("for thanks")
    print("and fish")
    print("so long", file=sys.stderr)
    os._exit(7)

@plugin
def looked_up(ctx: Context, name: "string") -> "any":
    return DynamicProxy.return_value(ctx.get_resolver().lookup(name).get_value())

@plugin("renamed", allow_unknown=True)
def another(x: object | Reference, *rest: int, flag: "bool?" = None, **more: str) -> "bool":
    return isinstance(x, Unknown)

@deprecated(replaced_by="t::same")
@plugin
def old(x: list[str] | None) -> dict[str, int]:
    return {}

@reference("t::Env")
class Env(Reference[str]):
    def __init__(self, name: str | Reference[str]) -> None:
        super().__init__()
        self.name = name

@plugin
def env(name: str | Reference[str]) -> Reference[str]:
    return Env(name)

@plugin
def inner(x: "any") -> str:
    return x.ref.name

@plugin
def inner_allowed(x: "any") -> str:
    return allow_reference_values(x).ref.name
`

// Values of every kind come back from Python as they went.
func TestValuesSurviveTheTrip(t *testing.T) {
	p := open(t, echo)
	host := p.heap.add("t::Host", "name", types.Str("h"))
	big, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	for _, v := range []types.Value{
		types.Null{}, types.Bool(true), types.Bool(false), types.Int(0), types.Int(math.MinInt64),
		types.Int(math.MaxInt64),
		types.NewInt(big), types.Float(1), types.Float(-0.5), types.Float(1e300), types.Float(math.Inf(1)),
		types.Float(math.Inf(-1)),
		types.Str(""), types.Str("Ã©\u2028\U0001F600<&>\x00"),
		&types.List{Items: []types.Value{}},
		&types.List{Items: []types.Value{types.Int(1), types.Null{},
			&types.List{Items: []types.Value{types.Float(2)}}, host}},
		&types.Dict{Keys: []string{"z", "a"}, Values: map[string]types.Value{"z": types.Int(1), "a": types.Null{}}},
		host,
	} {
		got := p.value("t::same", v)
		equal := cmp.Options{
			cmp.Comparer(func(a, b types.BigInt) bool { return a.Cmp(b.Int) == 0 }),
			cmp.Comparer(func(a, b *types.Entity) bool { return a == b }),
			cmp.AllowUnexported(fakeInstance{}),
		}
		if diff := cmp.Diff(v, got, equal); diff != "" {
			t.Errorf("%v changed on the way:\n%s", v, diff)
		}
	}
	if f, ok := p.value("t::same", types.Float(math.NaN())).(types.Float); !ok || !math.IsNaN(float64(f)) {
		t.Errorf("nan came back as %v", f)
	}
	for _, one := range []types.Unknown{{Number: 7}, {Number: 8}} {
		if got := p.value("t::same", one); got != one {
			t.Errorf("unknown %v came back as %v", one, got)
		}
	}
}

// A dict keeps its identity: modules cache by it, and it crosses once.
func TestDictKeepsIdentity(t *testing.T) {
	p := open(t, echo)
	d := &types.Dict{Keys: []string{"k"}, Values: map[string]types.Value{"k": types.Str("v")}}
	for range 2 {
		if got := p.value("t::same", d); got != types.Value(d) {
			t.Errorf("got another dict: %v", got)
		}
	}
}

// A string of a class of its own is a string in the model, and the same object in the next plug-in.
func TestStringSubclass(t *testing.T) {
	p := open(t, echo)
	v, ok := p.value("t::marked", types.Str("text")).(*types.Object)
	if !ok || v.Base != types.Str("text") {
		t.Fatalf("got %#v", v)
	}
	if got := p.value("t::note", v); got != types.Str("a note") {
		t.Errorf("note is %v", got)
	}
}

// What plug-ins print of proxies is what models have printed for years.
func TestShow(t *testing.T) {
	p := open(t, echo)
	list := &types.List{
		Items: []types.Value{types.Int(1), types.Str("a"), types.Float(2), types.Bool(true), types.Null{}},
	}
	dict := &types.Dict{Keys: []string{"a"}, Values: map[string]types.Value{"a": list}}
	for v, want := range map[types.Value]string{
		list:         "SequenceProxy @[1, 'a', 2.0, True, null]",
		dict:         "DictProxy @{'a': [1, 'a', 2.0, True, null]}",
		types.Null{}: "NoneType None",
	} {
		if got := p.value("t::show", v); got != types.Str(want) {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

// A loop over instances that reads attributes and follows a relation crosses a
// few times, not once per instance; the next call of the kind not at all.
func TestReadingAListCrossesSeldom(t *testing.T) {
	p := open(t, echo)
	var items []types.Value
	for range 200 {
		peer := p.heap.add("t::Peer", "name", types.Str("p"))
		items = append(items, p.heap.add("t::Item", "name", types.Str("i"), "peer", peer))
	}
	crossings := 0
	answer := func(list []types.Value) {
		t.Helper()
		got := p.value("t::names", &types.List{Items: list}).(*types.List)
		if len(got.Items) != len(list) || got.Items[0] != types.Str("i/p") {
			t.Fatalf("got %v", got.Items)
		}
	}
	p.host.onAnswer = func(string) { crossings++ }
	answer(items)
	if crossings > 6 {
		t.Errorf("reading 200 instances took %d crossings", crossings)
	}
	crossings = 0
	answer(
		[]types.Value{
			p.heap.add("t::Item", "name", types.Str("i"), "peer", p.heap.add("t::Peer", "name", types.Str("p"))),
		},
	)
	if crossings != 0 {
		t.Errorf("a call whose reads were foreseen took %d crossings", crossings)
	}
}

// A variable without a value ends the call; the engine learns which.
func TestUnsetAbandonsTheCall(t *testing.T) {
	p := open(t, echo)
	x := p.heap.add("t::X", "a", nil, "b", nil, "c", types.Unknown{Number: 7})
	o := p.call("t::attribute", x, types.Str("a"))
	if len(o.Unset) != 1 || o.Unset[0].(fakeSlot).name != "t::X#1.a" {
		t.Fatalf("outcome %+v", o)
	}
	x.values["a"] = types.Int(5)
	if got := p.value("t::attribute", x, types.Str("a")); got != types.Int(5) {
		t.Errorf("after it was set: %v", got)
	}
	x.values["a"] = nil
	y := p.heap.add("t::X", "a", nil, "b", nil)
	if o := p.call("t::both", y); len(o.Unset) != 2 || o.Unset[0].(fakeSlot).name != "t::X#2.a" ||
		o.Unset[1].(fakeSlot).name != "t::X#2.b" {
		t.Errorf("outcome %+v", o)
	}
	if got := p.value("t::attribute", x, types.Str("c")); got != (types.Unknown{Number: 7}) {
		t.Errorf("an unknown attribute gave %v", got)
	}
	x.empty["maybe"] = true
	if got := p.value("t::optional", x); got != types.Str("none") {
		t.Errorf("an empty relation gave %v", got)
	}
	if o := p.call("t::attribute", x, types.Str("nope")); o.Err == nil || o.Err.Class != "AttributeError" {
		t.Errorf("a missing attribute gave %+v", o)
	}
	p.heap.variables["v"] = types.Int(3)
	p.heap.unset["w"] = true
	if got := p.value("t::looked_up", types.Str("v")); got != types.Int(3) {
		t.Errorf("variable: %v", got)
	}
	if o := p.call("t::looked_up", types.Str("w")); len(o.Unset) != 1 {
		t.Errorf("variable without value: %+v", o)
	}
	if o := p.call("t::looked_up", types.Str("z")); o.Err == nil || o.Err.Kind != "compiler" ||
		o.Err.Class != "inmanta.ast.NotFoundException" {
		t.Errorf("missing variable: %+v", o.Err)
	}
}

// Output arrives whole, in order, with the call that printed it.
func TestOutput(t *testing.T) {
	p := open(t, echo)
	o := p.call("t::says", types.Int(2))
	if diff := cmp.Diff([]string{"line 0", "line 1"}, o.Output); diff != "" {
		t.Error(diff)
	}
	if err := p.host.Finalize(nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"no newline"}, p.host.TakeOutput()); diff != "" {
		t.Error(diff)
	}
}

// Exceptions say what they are, and where in the module they were raised.
func TestErrors(t *testing.T) {
	p, err := tryOpen(t, echo, func(c *Config) { c.MemoryMax = 4 << 30 })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ how, kind, class, message string }{
		{"plugin", "plugin", "inmanta.ast.PluginException", "use another value"},
		{"compiler", "compiler", "inmanta.ast.RuntimeException", "not like this"},
		{"key", "external", "KeyError", "'absent'"},
		{"exit", "exit", "SystemExit", "3"},
		{"interrupt", "exit", "KeyboardInterrupt", ""},
		{"memory", "external", "MemoryError", ""},
	} {
		e := p.call("t::fails", types.Str(c.how)).Err
		if e == nil {
			t.Fatalf("%s: no error", c.how)
		}
		if e.Kind != c.kind || e.Class != c.class || e.Message != c.message {
			t.Errorf("%s: got %+v", c.how, e)
		}
		if !strings.HasSuffix(e.File, "libs/t/plugins/__init__.py") || e.Line == 0 ||
			strings.Contains(e.Trace, "ordain_worker") ||
			!strings.Contains(e.Trace, "in fails") {
			t.Errorf("%s: place %s:%d, trace\n%s", c.how, e.File, e.Line, e.Trace)
		}
	}
}

// A plug-in that does not come back is stopped, and the error says where it was.
func TestHang(t *testing.T) {
	p := open(t, echo, func(c *Config) { c.CallTimeout = 300 * time.Millisecond })
	out := p.call("t::hangs")
	e := out.Err
	if diff := cmp.Diff([]string{"waiting for the device"}, out.Output); diff != "" {
		t.Error(diff)
	}
	if e == nil || e.Class != "TimeoutError" || !strings.Contains(e.Message, "t::hangs") ||
		!strings.Contains(e.Trace, "in hangs") {
		t.Fatalf("got %+v", e)
	}
	if e := p.call("t::same", types.Int(1)).Err; e == nil {
		t.Error("the worker is gone, yet it answers")
	}
}

// A plug-in that kills its process fails; its last words are in the error, and
// what it printed is not lost.
func TestWorkerDies(t *testing.T) {
	p := open(t, echo)
	out := p.call("t::dies")
	e := out.Err
	if diff := cmp.Diff([]string{"for thanks", "and fish"}, out.Output); diff != "" {
		t.Error(diff)
	}
	if e == nil || !strings.Contains(e.Message, "exit status 7") || !strings.Contains(e.Message, "so long") {
		t.Fatalf("got %+v", e)
	}
}

// Signatures reach the engine in a form that needs no Python.
func TestSignatures(t *testing.T) {
	p := open(t, echo)
	s := p.plugins["t::renamed"]
	if s == nil || !s.AllowUnknown || len(s.Params) != 4 {
		t.Fatalf("got %+v", s)
	}
	kinds := []eval.ParamKind{s.Params[0].Kind, s.Params[1].Kind, s.Params[2].Kind, s.Params[3].Kind}
	if diff := cmp.Diff([]eval.ParamKind{eval.Positional, eval.VarArgs, eval.KeywordOnly, eval.VarKeywords},
		kinds); diff != "" {
		t.Error(diff)
	}
	if s.Params[0].Type.Kind != "union" || s.Params[2].Type.Name != "bool?" || !s.Params[2].HasDefault ||
		s.Params[1].Type.Name != "int" {
		t.Errorf("params %+v", s.Params)
	}
	old := p.plugins["t::old"]
	if !old.Deprecated || old.ReplacedBy != "t::same" || old.Params[0].Type.Kind != "nullable" ||
		old.Params[0].Type.Of[0].Kind != "list" ||
		old.Return.Kind != "dict" {
		t.Errorf("old: %+v", old)
	}
	if c := p.plugins["t::looked_up"]; len(c.Params) != 1 || c.Params[0].Name != "name" {
		t.Errorf("the injected Context is among the parameters: %+v", c.Params)
	}
}

// References live in Python; equal ones are one value of the model.
func TestReferences(t *testing.T) {
	p := open(t, echo)
	a := p.value("t::env", types.Str("HOME")).(*types.Reference)
	if a.Type != "t::Env" || a.Of != "string" || len(a.Args) != 1 || a.Args[0].Value != types.Str("HOME") {
		t.Fatalf("got %+v", a)
	}
	if b := p.value("t::env", types.Str("HOME")); b != types.Value(a) {
		t.Errorf("an equal reference is another value: %+v", b)
	}
	nested := p.value("t::env", a).(*types.Reference)
	if nested.Args[0].Value != types.Value(a) {
		t.Errorf("nested %+v", nested)
	}
	if b := p.value("t::env", a); b != types.Value(nested) {
		t.Errorf("an equal nested reference is another value: %+v", b)
	}
	x := p.heap.add("t::X", "ref", a)
	if o := p.call("t::inner", x); o.Err == nil || o.Err.Class != "inmanta.ast.UnexpectedReference" {
		t.Errorf("reading a reference unasked: %+v", o)
	}
	if got := p.value("t::inner_allowed", x); got != types.Str("HOME") {
		t.Errorf("allowed: %v", got)
	}
}

// All files that cannot be imported are named, and all plug-ins without a
// signature; what only follows from another file is not. What hangs is not
// waited for.
func TestFurtherLoadErrors(t *testing.T) {
	_, err := tryOpen(t, `
-- a/plugins/__init__.py --
import nowhere_to_be_found
-- a/plugins/sub.py --
def f(:
-- b/plugins/__init__.py --
from inmanta_plugins.a import f
-- c/plugins/__init__.py --
from inmanta.plugins import plugin
@plugin
def f(x): pass
@plugin
def g(x: "int") -> "int":
    return x
@plugin
def h(x): pass
-- c/plugins/z.py --
1 / 0
`)
	var load *LoadError
	if !errors.As(err, &load) {
		t.Fatalf("got %v", err)
	}
	said := []string{load.Class + " " + filepath.Base(load.File)}
	for _, other := range load.Others {
		said = append(said, other.Class+" "+filepath.Base(other.File))
	}
	want := []string{
		"ModuleNotFoundError __init__.py",
		"SyntaxError sub.py",
		"ZeroDivisionError z.py",
		"RuntimeException __init__.py",
		"RuntimeException __init__.py",
	}
	for i := range said {
		said[i] = said[i][strings.LastIndex(strings.Fields(said[i])[0], ".")+1:]
	}
	if !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

// A file that is no Python is an error of the line that imports it, and is shown itself.
func TestSyntaxErrorInAnImportedFile(t *testing.T) {
	for _, c := range []struct{ name, init, place, unread string }{
		{"imported", "import os\n\nfrom . import sub\n", "__init__.py:3", "sub.py:2"},
		{"in turn", "", "sub.py:0", "sub.py:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tryOpen(t, "-- t/plugins/__init__.py --\n"+c.init+"-- t/plugins/sub.py --\nx = 1\ndef f(:\n")
			var load *LoadError
			if !errors.As(err, &load) || load.Unread == nil {
				t.Fatalf("got %v", err)
			}
			if got := fmt.Sprintf("%s:%d", filepath.Base(load.File), load.Line); got != c.place {
				t.Errorf("at %s, want %s", got, c.place)
			}
			if got := fmt.Sprintf("%s:%d", filepath.Base(load.Unread.File.Path),
				load.Unread.Start.Line); got != c.unread {
				t.Errorf("about %s, want %s", got, c.unread)
			}
		})
	}
}

// A module whose Python code cannot be imported is named, with file and line.
func TestLoadErrors(t *testing.T) {
	for _, c := range []struct{ name, source, class, message string }{
		{"absent package", "import nowhere_to_be_found\n", "ModuleNotFoundError", "nowhere_to_be_found"},
		{"syntax", "def f(:\n", "SyntaxError", "invalid syntax"},
		{"no annotation", "from inmanta.plugins import plugin\n@plugin\ndef f(x): pass\n", "RuntimeException",
			"should be annotated"},
		{"set", "from inmanta.plugins import plugin\n@plugin\ndef f(x: set[str]): pass\n", "TypingException",
			"not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tryOpen(t, "-- t/plugins/__init__.py --\n"+c.source)
			var load *LoadError
			if !errors.As(err, &load) {
				t.Fatalf("got %v", err)
			}
			if !strings.HasSuffix(load.Class, c.class) || !strings.Contains(load.Message, c.message) {
				t.Errorf("got %+v", load)
			}
		})
	}
}
