package program

import "testing"

// The hint names the most similar name: two letters in the wrong order are one mistake.
func TestSuggestTheNearest(t *testing.T) {
	for _, c := range []struct {
		wrong string
		names []string
		want  string
	}{
		{"titel", []string{"site", "title"}, "did you mean the attribute title?"},
		{"nmae", []string{"name", "names"}, "did you mean the attribute name?"},
		{"port", []string{"ports", "host"}, "did you mean the attribute ports?"},
		{"colour", []string{"size", "weight"}, ""},
		{"x", []string{"y"}, ""},
	} {
		if got := Suggest("attribute", c.wrong, c.names); got != c.want {
			t.Errorf("for %s among %v: %q, want %q", c.wrong, c.names, got, c.want)
		}
	}
}
