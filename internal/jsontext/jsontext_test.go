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
