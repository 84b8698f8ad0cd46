package jsontext_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"ordain.dev/ordain/internal/jsontext"
)

// What is read quickly is what encoding/json reads; any other text is left to it.
func FuzzString(f *testing.F) {
	for _, s := range []string{`""`, `"plain"`, `"a \\"quote\\" \\\\ and \\/ \\n\\t\\r"`, `"\\u0041"`, `"é"`, `"\\`,
		`"`, `"a"b"`, `"\\b"`, `"a\\"`, "\"\x00\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := jsontext.String(raw)
		var want string
		if err := json.Unmarshal(raw, &want); ok && (err != nil || got != want) {
			t.Errorf("%q: %q, want %q, %v", raw, got, want, err)
		}
	})
}

// Any string, broken UTF-8 too, is written as encoding/json writes it.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", `a "quote" \ and /`, "é\n\t\x00\x7f", "<a&b>", "\xff\xfe", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := string(jsontext.AppendString([]byte("x"), s)) + "\n"; got != "x"+want.String() {
			t.Errorf("%q: %s, want %s", s, got, want.String())
		}
	})
}

// The members of any JSON object are those that encoding/json finds.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, `{"a": 1, "b" : [1, {"c": "}"}], "a":"x\"y" }`, `[{"a":1}]`, `null`,
		` {"\u0061":{}} `,
		`{"":"","a":{"b":{"c":[[]]}}}`, `"{"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		got, shape := jsontext.Members(text), jsontext.Measure(text)
		var want map[string]json.RawMessage
		err := json.Unmarshal(text, &want)
		if err != nil {
			want = nil
		}
		if len(got) != len(want) || (got == nil) != (want == nil) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
		for name, value := range want {
			if !bytes.Equal(got[name], value) {
				t.Errorf("%q: %s is %q, want %q", text, name, got[name], value)
			}
		}
		if shape.Values < len(want) || shape.Values > len(text)+1 || shape.Depth > len(text) {
			t.Errorf("%q: %+v", text, shape)
		}
	})
}

func TestShape(t *testing.T) {
	for text, want := range map[string]jsontext.Shape{
		`1`: {1, 0}, `[]`: {2, 1}, `[[],[]]`: {5, 2}, `{"a":[1,2,3]}`: {6, 2}, `{"a":"[[[,,,"}`: {3, 1},
	} {
		if got := jsontext.Measure([]byte(text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
