package types

import (
	"strings"
	"testing"
	"time"
)

// A pattern that would backtrack for ever is stopped with an error, and not with a
// made-up answer.
func TestAMatchThatTakesTooLong(t *testing.T) {
	re, err := newRegex("(a+)+$", 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := re.Match(strings.Repeat("a", 60) + "b"); ok || err == nil ||
		!strings.Contains(err.Error(), "a text of 61 characters") {
		t.Errorf("gave %v, %v", ok, err)
	}
	if ok, err := re.Match("aaa"); !ok || err != nil {
		t.Errorf("a quick match gave %v, %v", ok, err)
	}
}
