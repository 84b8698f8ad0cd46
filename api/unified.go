package api

import (
	"fmt"
	"strings"
)

// maxDiff limits the table of the comparison; beyond it, all that lies between the equal beginning and end of two files
// is shown as replaced.
const maxDiff = 4_000_000

// contextLines surround each change.
const contextLines = 3

// edit is one line of a comparison: ' ' kept, '-' taken out, '+' put in.
type edit struct {
	op   byte
	line string
}

// unified writes the difference of two texts in the unified format.
func unified(from, to []string) []string {
	edits := compareLines(from, to)
	out := []string{}
	a, b := 0, 0 // lines of each side before the edit at i
	for i := 0; i < len(edits); {
		if edits[i].op == ' ' {
			i, a, b = i+1, a+1, b+1
			continue
		}
		start := max(0, i-contextLines)
		end, quiet := i, 0
		for end < len(edits) && quiet <= 2*contextLines {
			if edits[end].op == ' ' {
				quiet++
			} else {
				quiet = 0
			}
			end++
		}
		end -= max(0, quiet-contextLines)
		lead := i - start
		hunk := []string{}
		lengthA, lengthB := 0, 0
		for _, e := range edits[start:end] {
			hunk = append(hunk, string(e.op)+strings.TrimRight(e.line, "\n"))
			if e.op != '+' {
				lengthA++
			}
			if e.op != '-' {
				lengthB++
			}
		}
		if len(out) == 0 {
			out = append(out, "--- ", "+++ ")
		}
		out = append(out, fmt.Sprintf("@@ -%s +%s @@", span(a-lead, lengthA), span(b-lead, lengthB)))
		out = append(out, hunk...)
		a, b = a-lead+lengthA, b-lead+lengthB
		i = end
	}
	return out
}

// span writes where a hunk lies: its first line, from 1, and its length.
func span(before, length int) string {
	switch length {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, length)
}

// compareLines finds the longest common sequence of lines, after cutting off the equal beginning and end.
func compareLines(from, to []string) []edit {
	var out, tail []edit
	for len(from) > 0 && len(to) > 0 && from[0] == to[0] {
		out = append(out, edit{' ', from[0]})
		from, to = from[1:], to[1:]
	}
	for len(from) > 0 && len(to) > 0 && from[len(from)-1] == to[len(to)-1] {
		tail = append(tail, edit{' ', from[len(from)-1]})
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	switch {
	case len(from)*len(to) > maxDiff:
		for _, line := range from {
			out = append(out, edit{'-', line})
		}
		for _, line := range to {
			out = append(out, edit{'+', line})
		}
	default:
		out = append(out, middle(from, to)...)
	}
	for i := len(tail) - 1; i >= 0; i-- {
		out = append(out, tail[i])
	}
	return out
}

func middle(from, to []string) []edit {
	width := len(to) + 1
	longest := make([]int32, (len(from)+1)*width)
	for i := len(from) - 1; i >= 0; i-- {
		for j := len(to) - 1; j >= 0; j-- {
			if from[i] == to[j] {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	var out []edit
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		switch {
		case i < len(from) && j < len(to) && from[i] == to[j]:
			out = append(out, edit{' ', from[i]})
			i, j = i+1, j+1
		case i < len(from) && (j == len(to) || longest[(i+1)*width+j] >= longest[i*width+j+1]):
			out = append(out, edit{'-', from[i]})
			i++
		default:
			out = append(out, edit{'+', to[j]})
			j++
		}
	}
	return out
}
