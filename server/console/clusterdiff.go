package console

import (
	"strings"
	"time"

	"github.com/sergi/go-diff/diffmatchpatch"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/manifest"
)

// lineDiff is how one text becomes another, line by line, with a few lines around each change.
type lineDiff struct {
	Lines   []diffLine
	Added   int
	Removed int
	Hidden  int // lines of changes that are not shown
}

// diffLine is a line of a difference. Kind is "added", "removed", "same", or "gap" for lines that are left out.
type diffLine struct {
	Kind string
	Sign string
	Text string
}

const (
	aroundChanges = 3
	maxDiffLines  = 400
	maxDiffText   = 300 // characters of a line
	diffPatience  = 200 * time.Millisecond
)

// manifestDiff compares manifests as the files that they are; nil is no file.
func manifestDiff(from, to *manifest.Manifest) (*lineDiff, error) {
	var texts [2]string
	for i, m := range []*manifest.Manifest{from, to} {
		if m == nil {
			continue
		}
		text, err := manifest.Write(m)
		if err != nil {
			return nil, fault.Wrap("console.cluster", fault.Internal, err)
		}
		texts[i] = string(text)
	}
	return diffLines(texts[0], texts[1]), nil
}

// diffLines compares texts.
func diffLines(from, to string) *lineDiff {
	d := diffmatchpatch.New()
	d.DiffTimeout = diffPatience // then it is coarser, and still right
	a, b, lines := d.DiffLinesToRunes(from, to)
	out := &lineDiff{}
	var all []diffLine
	for _, part := range d.DiffCharsToLines(d.DiffMainRunes(a, b, false), lines) {
		kind, sign := "same", " "
		switch part.Type {
		case diffmatchpatch.DiffInsert:
			kind, sign = "added", "+"
		case diffmatchpatch.DiffDelete:
			kind, sign = "removed", "-"
		}
		for _, text := range strings.Split(strings.TrimSuffix(part.Text, "\n"), "\n") {
			all = append(all, diffLine{kind, sign, cutRunes(text, maxDiffText)})
			if kind == "added" {
				out.Added++
			}
			if kind == "removed" {
				out.Removed++
			}
		}
	}
	if out.Added+out.Removed > 0 {
		out.keep(all)
	}
	return out
}

// keep takes the changes with the lines around them.
func (l *lineDiff) keep(all []diffLine) {
	near := make([]bool, len(all))
	for i, line := range all {
		if line.Kind == "same" {
			continue
		}
		for j := max(0, i-aroundChanges); j <= min(len(all)-1, i+aroundChanges); j++ {
			near[j] = true
		}
	}
	for i, line := range all {
		switch {
		case len(l.Lines) >= maxDiffLines:
			if line.Kind != "same" {
				l.Hidden++
			}
		case near[i]:
			l.Lines = append(l.Lines, line)
		case i > 0 && near[i-1] || i == 0:
			l.Lines = append(l.Lines, diffLine{Kind: "gap", Text: "…"})
		}
	}
}
