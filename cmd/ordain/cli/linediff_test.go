package cli

import (
	"strings"
	"testing"
)

// The lines that change in a file are printed below the table, which no longer shows two hashes; what a file holds
// cannot steer the terminal. What is unknown or unchanged has no lines.
func TestLineDiffsArePrinted(t *testing.T) {
	change := func(lines string) row {
		return row{"from_value": "46b3", "to_value": "159c", "line_diff": lines}
	}
	diff := []row{
		{"resource_id": "fs::File[web,path=/a]", "status": "modified", "attributes": row{
			"hash": change("-old\n+new\x1b[31m\n@@ 3 unchanged lines @@\n"),
			"mode": row{"from_value": 600, "to_value": 644},
		}},
		{"resource_id": "fs::File[web,path=/b]", "status": "modified", "unknown": true,
			"attributes": row{"hash": change("-hidden\n")}},
	}
	var b strings.Builder
	if err := printLineDiffs(&b, lineDiffsOf(diff)); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if !strings.HasPrefix(got, "\nfs::File[web,path=/a] hash:\n  -old\n  +new") ||
		!strings.HasSuffix(got, "\n  @@ 3 unchanged lines @@\n\n") || strings.Contains(got, "hidden") ||
		strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	if line := changesLine(diff[0]["attributes"].(row)); line != "hash: see below, mode: 600 → 644" {
		t.Errorf("%q", line)
	}
}
