package console

import "strings"

// textPart is a piece of a text; Code is set for what stands between backticks.
type textPart struct {
	Text string
	Code bool
}

// codeParts splits a text for people at its backticks, which messages for terminals and forges have around commands. A
// backtick without another one on its line is left as it is.
func codeParts(text string) (out []textPart) {
	add := func(part string, code bool) {
		if last := len(out) - 1; last >= 0 && !code && !out[last].Code {
			out[last].Text += part
		} else if part != "" {
			out = append(out, textPart{part, code})
		}
	}
	for {
		before, rest, found := strings.Cut(text, "`")
		add(before, false)
		if !found {
			return out
		}
		if more := strings.TrimLeft(rest, "`"); len(more) < len(rest) { // several of them mean something else
			add(strings.Repeat("`", 1+len(rest)-len(more)), false)
			text = more
			continue
		}
		inside, after, closed := strings.Cut(rest, "`")
		if !closed || strings.Contains(inside, "\n") {
			add("`", false)
			text = rest
			continue
		}
		add(inside, true)
		text = after
	}
}
