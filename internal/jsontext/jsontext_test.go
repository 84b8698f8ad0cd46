package jsontext_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"ordain.dev/ordain/internal/jsontext"
)

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
