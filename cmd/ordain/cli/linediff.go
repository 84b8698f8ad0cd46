package cli

import (
	"fmt"
	"io"
	"strings"
)

// lineDiff is what changes by line in an attribute of a resource, as the server compared it.
type lineDiff struct{ resource, attribute, text string }

// lineDiffsOf collects what changes by line in differences.
func lineDiffsOf(diff []row) (out []lineDiff) {
	for _, one := range diff {
		attributes, ok := one["attributes"].(row)
		if !ok || one["unknown"] == true || one["status"] == "unmodified" {
			continue
		}
		for _, name := range sortedKeys(attributes) {
			if change, ok := attributes[name].(row); ok {
				if text, ok := change["line_diff"].(string); ok {
					out = append(out, lineDiff{cell(one, "resource_id"), printable(name), text})
				}
			}
		}
	}
	return out
}

// printLineDiffs prints what changes by line, below the table of the differences.
func printLineDiffs(w io.Writer, diffs []lineDiff) error {
	for _, d := range diffs {
		var b strings.Builder
		fmt.Fprintf(&b, "\n%s %s:\n", d.resource, d.attribute)
		for line := range strings.Lines(d.text) {
			b.WriteString("  " + printable(strings.TrimSuffix(line, "\n")) + "\n")
		}
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	if len(diffs) > 0 {
		_, err := io.WriteString(w, "\n")
		return err
	}
	return nil
}
