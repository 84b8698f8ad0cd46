package linediff

import (
	"fmt"
	"strings"
)

// String writes the difference as plain text, each line after its sign.
func (d *Diff) String() string {
	if d.Note != "" {
		return "(" + d.Note + ")\n"
	}
	var b strings.Builder
	for _, line := range d.Lines {
		if line.Kind == Gap {
			fmt.Fprintf(&b, "@@ %s @@\n", lines(line.Left, "unchanged line"))
			continue
		}
		b.WriteString(line.Sign() + line.Text() + "\n")
	}
	if d.Hidden > 0 {
		fmt.Fprintf(&b, "@@ %s not shown @@\n", lines(d.Hidden, "more changed line"))
	}
	return b.String()
}

// Summary says in a few words how much changes.
func (d *Diff) Summary() string {
	if d.Note != "" {
		return d.Note
	}
	return fmt.Sprintf("+%d −%d lines", d.Added, d.Removed)
}

func lines(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
