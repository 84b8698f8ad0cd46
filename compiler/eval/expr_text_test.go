package eval

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A text that is filled in one step reads as if its fields were replaced one
// after the other, whatever braces it and the values have.
func TestTextsAreFilledStepByStep(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func(of []string) string {
		var b strings.Builder
		for range random.IntN(5) {
			b.WriteString(of[random.IntN(len(of))])
		}
		return b.String()
	}
	inOneStep := 0
	for range 200_000 {
		n := &format{text: some([]string{"{{a}}", "{{b}}", "x", "{{", "}}"})}
		var values []string
		for _, match := range []string{"{{a}}", "{{b}}", "{{a}}"} {
			if strings.Contains(n.text, match) {
				n.parts = append(n.parts, formatPart{match: match})
				values = append(values, some([]string{"v", "a", "{{b}}", "{", "}"}))
			}
		}
		n.split()
		want := n.text
		for k, p := range n.parts {
			want = strings.ReplaceAll(want, p.match, values[k])
		}
		if got := n.fill(values); got != want {
			t.Fatalf("%q with %q reads %q, want %q", n.text, values, got, want)
		}
		if n.pieces != nil && len(n.parts) > 1 {
			inOneStep++
		}
	}
	if inOneStep == 0 {
		t.Error("no text was filled in one step")
	}
}
