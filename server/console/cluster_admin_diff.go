package console

import "strings"

// diffLine is a line of two texts that are compared.
type diffLine struct {
	Mark string // "+", "-", " ", or "…" for lines that are left out
	Text string
}

// Bounds of a comparison.
const (
	diffContext = 3
	maxCompared = 4_000_000 // pairs of lines
)

// diffLines compares two texts line by line, and leaves out most of what is the same.
func diffLines(from, to string) []diffLine {
	a, b := strings.Split(from, "\n"), strings.Split(to, "\n")
	begin := 0
	for begin < len(a) && begin < len(b) && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < len(a)-begin && end < len(b)-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var all []diffLine
	add := func(mark string, lines []string) {
		for _, line := range lines {
			all = append(all, diffLine{mark, line})
		}
	}
	add(" ", a[:begin])
	all = append(all, middle(a[begin:len(a)-end], b[begin:len(b)-end])...)
	add(" ", a[len(a)-end:])
	return shorten(all)
}

// middle compares texts that begin and end differently, by their longest common subsequence.
func middle(a, b []string) (out []diffLine) {
	if len(a)*len(b) > maxCompared {
		for _, line := range a {
			out = append(out, diffLine{"-", line})
		}
		for _, line := range b {
			out = append(out, diffLine{"+", line})
		}
		return out
	}
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width) // of what follows a[i] and b[j]
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, diffLine{" ", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[(i+1)*width+j] >= common[i*width+j+1]:
			out = append(out, diffLine{"-", a[i]})
			i++
		default:
			out = append(out, diffLine{"+", b[j]})
			j++
		}
	}
	return out
}

// shorten leaves out lines that are far from every change; without any change, all.
func shorten(all []diffLine) (out []diffLine) {
	near := make([]bool, len(all))
	changed := false
	for i, line := range all {
		if line.Mark != " " {
			changed = true
			for k := max(0, i-diffContext); k < min(len(all), i+diffContext+1); k++ {
				near[k] = true
			}
		}
	}
	if !changed {
		return nil
	}
	for i, line := range all {
		if near[i] {
			out = append(out, line)
		} else if len(out) == 0 || out[len(out)-1].Mark != "…" {
			out = append(out, diffLine{Mark: "…"})
		}
	}
	return out
}
