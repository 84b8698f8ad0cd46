package syntax

import (
	"errors"
	"os"
	"slices"
	"testing"
)

// One mistake is one error. Each token of a model is left out, written twice
// and replaced in turn: whatever else is told is noise.
func TestOneMistakeIsOneError(t *testing.T) {
	sample, err := os.ReadFile("testdata/sample.cf")
	if err != nil {
		t.Fatal(err)
	}
	text, all, err := Lexemes(sample)
	if err != nil {
		t.Fatal(err)
	}
	tried, noisy := 0, 0
	for _, l := range all {
		for _, instead := range []string{"", string(text[l.Start:l.End]) + " " + string(text[l.Start:l.End]), "=",
			"end", "(", "x"} {
			broken := slices.Concat(text[:l.Start], []byte(instead), text[l.End:])
			_, err := Parse(FileInfo{Path: "sample.cf"}, broken)
			var e *Error
			if !errors.As(err, &e) {
				continue
			}
			tried++
			if len(e.Further) > 0 {
				noisy++
				t.Logf("%q in place of %q at byte %d: %v, and then %v", instead, text[l.Start:l.End], l.Start, e,
					e.Further)
			}
		}
	}
	if tried < 1000 || noisy > 0 {
		t.Errorf("%d of %d mistakes make noise", noisy, tried)
	}
}
