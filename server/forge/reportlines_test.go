package forge_test

import (
	"fmt"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
)

// The comment shows the lines that change in a file instead of two hashes, and cuts what is long. What is named like a
// secret, or is a private key, is not shown.
func TestACommentShowsChangedLines(t *testing.T) {
	hash := map[string]intent.AttributeChange{
		"hash": {Current: strings.Repeat("a", 40), Desired: strings.Repeat("b", 40)},
	}
	text := func(value string, d *linediff.Diff) string {
		id := resource(value)
		r := previewed(intent.ResourceDiff{ID: id, Kind: intent.DiffModified, Attributes: hash})
		r.Lines = map[intent.ResourceID]map[string]*linediff.Diff{id: {"hash": d}}
		return r.Text()
	}
	got := text("/etc/motd", linediff.Compare("hello\nworld\n", "hello\nmoon\n"))
	if !strings.Contains(got, "  hash:\n hello\n-world\n+moon\n") || strings.Contains(got, "aaaa") {
		t.Error(got)
	}
	var long strings.Builder
	for i := range 390 {
		fmt.Fprintf(&long, "line %d of many\n", i)
	}
	got = text("/etc/motd", linediff.Compare("", long.String()))
	if !strings.Contains(got, "@@ the rest is not shown here: +390 −0 lines @@") ||
		strings.Contains(got, "line 389") {
		t.Error(got)
	}
	if got = text("/etc/api_token", linediff.Compare("hunter1\n", "hunter2\n")); strings.Contains(got, "hunter") {
		t.Error(got)
	}
	got = text("/etc/key", linediff.Compare("", "-----BEGIN PRIVATE KEY-----\nhunter\n"))
	if strings.Contains(got, "hunter") || !strings.Contains(got, "a private key; not shown here") {
		t.Error(got)
	}
}
