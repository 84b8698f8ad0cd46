package plugin

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"ordain.dev/ordain/compiler/types"
)

// A worker may send anything: decode returns a value or an error, and a value that it
// returns can be encoded again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`null`, `true`, `12345678901234567890`, `-1.5e300`, `"x"`, `[1,[null]]`, `{"d":[["k",1],["k",{"u":7}]]}`,
		`{"i":1}`, `{"s":0}`, `{"s":-1}`, `{"r":1,"type":"t::R","of":"string","args":[["n",{"r":1}]]}`,
		`{"o":2,"class":"C","text":"t","fields":[["f",2]]}`, `{"f":"inf"}`, `{"f":"x"}`, `{}`, ``, `[`, `nul`,
		`1e999`, `{"d":[[1,2]]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h := &Host{}
		h.wire = newCodec(h)
		v, err := h.wire.decode(raw)
		if err != nil {
			return
		}
		if v == nil {
			t.Fatal("neither a value nor an error")
		}
		b := &bytes.Buffer{}
		if err := h.wire.encode(b, v); err != nil {
			t.Fatalf("%v cannot be written: %v", v, err)
		}
		if !json.Valid(b.Bytes()) {
			t.Fatalf("%v was written as %s", v, b)
		}
	})
}

// A float stays a float in Python: it is written with a fraction or an exponent.
func TestFloatText(t *testing.T) {
	for f, want := range map[float64]string{0: "0.0", 1: "1.0", -2: "-2.0", 1e21: "1e+21", 0.1: "0.1",
		1e300: "1e+300", math.SmallestNonzeroFloat64: "5e-324"} {
		if got := floatText(f); got != want {
			t.Errorf("%v is written %s, want %s", f, got, want)
		}
		v, err := decodeNumber(floatText(f))
		if err != nil || v != types.Float(f) {
			t.Errorf("%v came back as %v, %v", f, v, err)
		}
	}
}

// A Python object that contains itself does not become a cycle in the engine, which walks
// values freely: the inner occurrence has no parts.
func TestCircles(t *testing.T) {
	for raw, want := range map[string]string{
		`{"r":1,"type":"m::S","args":[["a",[{"r":1}]]]}`: "m::S(a=[m::S()])",
		`{"r":1,"type":"m::S","args":[["a",` +
			`{"r":2,"type":"m::R","args":[["b",{"r":1}]]}]]}`: "m::S(a=m::R(b=m::S()))",
		`[{"r":1,"type":"m::S","args":[["a",1]]},` +
			`{"r":2,"type":"m::R","args":[["b",{"r":1}]]}]`: "[m::S(a=1), m::R(b=m::S(a=1))]",
		`[{"o":1,"class":"m.D","dataclass":["m::D"],` +
			`"fields":[["f",[{"o":1}]]]},{"o":1}]`: "[<m.D object>, <m.D object>]",
		`{"d":[["k",{"o":1,"class":"m.D","dataclass":["m::D"],` +
			`"fields":[["f",{"d":[["k",{"o":1}]]}]]}]]}`: "{'k': <m.D object>}",
	} {
		v, err := newCodec(&Host{}).decode(json.RawMessage(raw))
		if err != nil || types.Text(v) != want {
			t.Errorf("%s is %v, want %s", raw, v, want)
			continue
		}
		if !walkable(v, 20) {
			t.Errorf("%s is a circle", raw)
		}
	}
}

// walkable reports whether a value is nested at most depth levels.
func walkable(v types.Value, depth int) bool {
	var parts []types.Value
	switch v := v.(type) {
	case *types.List:
		parts = v.Items
	case *types.Dict:
		for _, each := range v.Values {
			parts = append(parts, each)
		}
	case *types.Reference:
		for _, each := range v.Args {
			parts = append(parts, each.Value)
		}
	case *types.Object:
		for _, each := range v.Fields {
			parts = append(parts, each.Value)
		}
	}
	for _, each := range parts {
		if depth == 0 || !walkable(each, depth-1) {
			return false
		}
	}
	return true
}

// The base of an object is a string or a number, whatever a worker sends.
func TestBaseOfAnObject(t *testing.T) {
	c := newCodec(&Host{})
	v, err := c.decode(json.RawMessage(`{"o":1,"class":"m.S","base":"text"}`))
	if o, is := v.(*types.Object); err != nil || !is || o.Base != types.Str("text") {
		t.Errorf("got %v, %v", v, err)
	}
	for _, base := range []string{`{"o":2}`, `{"o":3}`, `[1]`, `true`, `{"d":[]}`} {
		if v, err := newCodec(&Host{}).decode(json.RawMessage(`{"o":2,"class":"m.S","base":` + base +
			`}`)); err == nil {
			t.Errorf("%s is the base of %v", base, v)
		}
	}
}
