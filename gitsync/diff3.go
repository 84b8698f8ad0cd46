package gitsync

import (
	"bytes"
	"slices"
)

// mergeLines merges two texts that were made from the same base, as diff3 does:
// what only one side changed is taken from that side. ok is false when both changed
// the same or neighbouring lines in different ways.
func mergeLines(base, ours, theirs []byte) (result []byte, ok bool) {
	o, a, b := splitLines(base), splitLines(ours), splitLines(theirs)
	inA, okA := matches(o, a)
	inB, okB := matches(o, b)
	if !okA || !okB {
		return nil, false
	}
	i, j, k := 0, 0, 0 // how many lines of base, ours and theirs are merged
	for i < len(o) || j < len(a) || k < len(b) {
		// Lines that all three have.
		if i < len(o) && inA[i] == j && inB[i] == k {
			result = append(result, o[i]...)
			i, j, k = i+1, j+1, k+1
			continue
		}
		// Otherwise, everything up to the next line that all three have.
		end := i
		for end < len(o) && (inA[end] < 0 || inB[end] < 0) {
			end++
		}
		endA, endB := len(a), len(b)
		if end < len(o) {
			endA, endB = inA[end], inB[end]
		}
		was, one, other := o[i:end], a[j:endA], b[k:endB]
		switch {
		case slices.EqualFunc(one, other, bytes.Equal), slices.EqualFunc(other, was, bytes.Equal):
			result = append(result, bytes.Join(one, nil)...)
		case slices.EqualFunc(one, was, bytes.Equal):
			result = append(result, bytes.Join(other, nil)...)
		default:
			return nil, false
		}
		i, j, k = end, endA, endB
	}
	return result, true
}

// splitLines keeps the line ends, so that joining gives the text again.
func splitLines(text []byte) [][]byte { return slices.Collect(bytes.Lines(text)) }

// mostEdits is how many lines two texts may differ by; beyond that they are not compared.
const mostEdits = 1500

// matches returns the number of the same line in to for each line of from, or -1:
// a longest common subsequence, found by Myers' algorithm. ok is false when the texts
// differ by more than mostEdits lines.
func matches(from, to [][]byte) (in []int, ok bool) {
	in = make([]int, len(from))
	for i := range in {
		in[i] = -1
	}
	start := 0
	for start < len(from) && start < len(to) && bytes.Equal(from[start], to[start]) {
		in[start] = start
		start++
	}
	endF, endT := len(from), len(to)
	for endF > start && endT > start && bytes.Equal(from[endF-1], to[endT-1]) {
		endF, endT = endF-1, endT-1
		in[endF] = endT
	}
	f, t := from[start:endF], to[start:endT]
	trace, ok := editPaths(f, t)
	if !ok {
		return nil, false
	}
	x, y := len(f), len(t)
	for d := len(trace) - 1; d >= 0; d-- {
		v := trace[d]
		k := x - y
		before := k - 1
		if k == -d || k != d && v[k-1+d+1] < v[k+1+d+1] {
			before = k + 1
		}
		px := 0
		if d > 0 {
			px = v[before+d+1]
		}
		py := px - before
		if d == 0 {
			px, py = 0, 0
		}
		for x > px && y > py {
			x, y = x-1, y-1
			in[start+x] = start + y
		}
		x, y = px, py
	}
	return in, true
}

// editPaths returns, for each number of edits d, how far each diagonal reached with
// d-1 edits. Diagonal k is at index k+d+1.
func editPaths(f, t [][]byte) (trace [][]int, ok bool) {
	most := min(len(f)+len(t), mostEdits)
	v := make([]int, 2*most+3) // diagonal k is at k+most+1
	for d := 0; d <= most; d++ {
		trace = append(trace, slices.Clone(v[most-d:most+d+3]))
		for k := -d; k <= d; k += 2 {
			at := k + most + 1
			x := v[at-1] + 1
			if k == -d || k != d && v[at-1] < v[at+1] {
				x = v[at+1]
			}
			y := x - k
			for x < len(f) && y < len(t) && bytes.Equal(f[x], t[y]) {
				x, y = x+1, y+1
			}
			v[at] = x
			if x >= len(f) && y >= len(t) {
				return trace, true
			}
		}
	}
	return nil, false
}
