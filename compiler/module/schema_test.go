package module

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"strconv"
	"testing"

	"ordain.dev/ordain/compiler/module/pydantic"
)

// What inmanta-core's models say of values (testdata/schema/record.py).
func TestSchemas(t *testing.T) {
	text, err := os.ReadFile("testdata/schema/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	good, bad := 0, 0
	for line := range bytes.Lines(text) {
		var c struct {
			Model string
			Raw   json.RawMessage
			Says  string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		schema := projectSchema()
		if c.Model == "ModuleV1Metadata" {
			schema = moduleSchema()
		}
		says := ""
		if wrong := schema.Check(decode(t, c.Raw).(*pydantic.Dict)); wrong != nil {
			says = wrong.Error()
			bad++
		} else {
			good++
		}
		if says != c.Says {
			t.Errorf("%s\n got %s\nwant %s", c.Raw, says, c.Says)
		}
	}
	if good < 100 || bad < 400 {
		t.Errorf("%d fit and %d do not", good, bad)
	}
}

// decode reads a value that record.py wrote.
func decode(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	if _, ok := plain.(map[string]any); !ok {
		return plain
	}
	var kinds map[string]json.RawMessage
	must(t, json.Unmarshal(raw, &kinds))
	for kind, raw := range kinds {
		switch kind {
		case "int":
			i, _ := new(big.Int).SetString(readJSON[string](t, raw), 10)
			return i
		case "float":
			f, err := strconv.ParseFloat(readJSON[string](t, raw), 64)
			must(t, err)
			return f
		case "bytes":
			var b []byte
			for _, c := range readJSON[[]int](t, raw) {
				b = append(b, byte(c))
			}
			return b
		case "other":
			o := readJSON[[3]string](t, raw)
			return pydantic.Other{Type: o[0], Repr: o[1], Text: o[2]}
		case "dict":
			d := &pydantic.Dict{}
			for _, pair := range readJSON[[][2]json.RawMessage](t, raw) {
				d.Keys, d.Values = append(d.Keys, decode(t, pair[0])), append(d.Values, decode(t, pair[1]))
			}
			return d
		}
		items := &pydantic.Items{Kind: kind}
		for _, item := range readJSON[[]json.RawMessage](t, raw) {
			items.Of = append(items.Of, decode(t, item))
		}
		return items
	}
	return nil
}

func readJSON[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	var v T
	must(t, json.Unmarshal(raw, &v))
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
