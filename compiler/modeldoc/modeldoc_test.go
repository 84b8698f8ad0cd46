package modeldoc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/modeldoc"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

func compile(t *testing.T, text string) *eval.Result {
	t.Helper()
	f, err := syntax.Parse(syntax.FileInfo{Path: "main.cf", Namespace: "__config__"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return eval.Compile(context.Background(), eval.Input{Files: []*syntax.File{f}})
}

func document(t *testing.T, r *eval.Result) map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := modeldoc.New(r).Write(&b); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&b)
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Every kind of value has one form, in attributes as in variables; relations
// are lists of ids, also where they hold one instance or none.
func TestDocumentOfAModel(t *testing.T) {
	got := document(t, compile(t, `
entity A:
  string name
  int? opt = null
  float f = 2.0
end
A.peer [0:1] -- A.back [0:1]
implement A using none
implementation none for A: end
a = A(name="a<b>", peer=b)
b = A(name="b")
x = 2.0
big = 123456789012345678901234567890
l = [1, true, null, {"k": a}]
`))
	want := map[string]any{
		"__config__::a": map[string]any{"$ref": "1"}, "__config__::b": map[string]any{"$ref": "2"},
		"__config__::x": json.Number("2.0"), "__config__::big": json.Number("123456789012345678901234567890"),
		"__config__::l": []any{
			json.Number("1"),
			true,
			nil,
			map[string]any{"$dict": map[string]any{"k": map[string]any{"$ref": "1"}}},
		},
	}
	if diff := cmp.Diff(want, got["variables"]); diff != "" {
		t.Error(diff)
	}
	first := got["instances"].([]any)[0]
	if diff := cmp.Diff(map[string]any{
		"id": "1", "type": "__config__::A",
		"attributes": map[string]any{"name": "a<b>", "opt": nil, "f": json.Number("2.0")},
		"relations":  map[string]any{"requires": []any{}, "provides": []any{}, "peer": []any{"2"}, "back": []any{}},
	}, first); diff != "" {
		t.Error(diff)
	}
	if got["success"] != true || got["error"] != nil {
		t.Error("not a success:", got["error"])
	}
}

// A failed compile tells the class, the place and the causes.
func TestDocumentOfAFailure(t *testing.T) {
	got := document(t,
		compile(t, "entity A: string n end\nimplement A using none\nimplementation none for A: end\na = A(n=3)\n"))
	failure := got["error"].(map[string]any)
	if failure["kind"] != "inmanta.ast.AttributeException" {
		t.Error(failure["kind"])
	}
	at := failure["location"].(map[string]any)
	if at["file"] != "main.cf" || at["line"] != json.Number("4") {
		t.Error(at)
	}
	cause := failure["causes"].([]any)[0].(map[string]any)
	if cause["message"] != "Invalid value '3', expected string" {
		t.Error(cause)
	}
	if got["success"] != false {
		t.Error("a success")
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		v    types.Value
		want string
	}{
		{types.Unknown{}, `{"$unknown":true}`},
		{types.Float(math.Inf(1)), `{"$float":"inf"}`},
		{types.Float(math.NaN()), `{"$float":"nan"}`},
		{types.Float(1e22), `1e22`},
		{types.Float(1e-7), `1e-07`},
		{types.NewInt(new(big.Int).Lsh(big.NewInt(1), 64)), `18446744073709551616`},
		{&types.Object{Class: "a.B"}, `{"$python":"B"}`},
		{&types.Object{Class: "a.B", Base: types.Str("s")}, `"s"`},
		{&types.Reference{Type: "std::Environment",
			Args: []types.ReferenceArg{{Name: "name", Value: types.Str("HOME")}}},
			`{"$reference":{"type":"std::Environment","args":{"name":"HOME"}}}`},
	} {
		if got := string(modeldoc.Value(c.v)); got != c.want || !json.Valid([]byte(got)) {
			t.Errorf("%#v: %s, want %s", c.v, got, c.want)
		}
	}
}

// The resources alone are a list of objects, each with its attributes beside its
// id and what it requires.
func TestResourcesAlone(t *testing.T) {
	d := &modeldoc.Document{Success: true, Resources: slices.Values([]modeldoc.Resource{
		{
			ID:         []byte("m::A[a,name=x<y>]"),
			Attributes: []byte(`{"name":"x<y>","purged":false}`),
			Requires:   [][]byte{[]byte("m::B[a,name=z]"), []byte("m::B[a,name=\"]")},
		},
		{ID: []byte("m::B[a,name=z]"), Attributes: []byte(`{}`)},
	})}
	var b bytes.Buffer
	if err := d.WriteResources(&b); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, b.Bytes())
	}
	want := []map[string]any{
		{
			"id":       "m::A[a,name=x<y>],v=0",
			"requires": []any{"m::B[a,name=z]", "m::B[a,name=\"]"},
			"name":     "x<y>",
			"purged":   false,
		},
		{"id": "m::B[a,name=z],v=0", "requires": []any{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	if err := (&modeldoc.Document{Success: true}).WriteResources(&b); err != nil || b.String() != "[]\n" {
		t.Errorf("without an export: %s, %v", b.String(), err)
	}
}
