package pep440_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"ordain.dev/ordain/internal/python/pep440"
)

// The library packaging was asked about some 1,000 texts, most of them made at
// random of the pieces that requirements have (testdata/record.py). This package
// accepts and refuses the same ones, and writes them in the same normal form.
func TestReadsAsPackaging(t *testing.T) {
	recorded, err := os.ReadFile("testdata/requirements.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for line := range bytes.Lines(recorded) {
		var answer [2]*string
		if err := json.Unmarshal(line, &answer); err != nil {
			t.Fatal(err)
		}
		text, want := *answer[0], answer[1]
		r, err := pep440.ParseRequirement(text)
		switch {
		case want == nil:
			refused++
			if err == nil {
				t.Errorf("%q is read as %s, want an error", text, r.Canonical())
			}
		case err != nil:
			t.Errorf("%q: %v, want %s", text, err, *want)
		default:
			accepted++
			if got := r.Canonical(); got != *want {
				t.Errorf("%q is read as %s, want %s", text, got, *want)
			}
		}
	}
	if accepted < 100 || refused < 100 {
		t.Errorf("only %d texts were accepted and %d refused", accepted, refused)
	}
}
