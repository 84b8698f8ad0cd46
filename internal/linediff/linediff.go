// Package linediff shows how one text becomes another, line by line, for people:
//
//	two texts ─▶ Compare ─▶ lines, with a few unchanged ones around each change and a gap for the rest
//	                     └▶ or a note, if the texts are binary or too large to compare
//
// Everything is bounded, because the texts come from models and handlers: the bytes and lines that are compared, the
// time that this takes, the lines that are kept, and the characters of a line. The comparison itself is that of
// github.com/sergi/go-diff; here are the limits, the folding, and the emphasis of the words that changed in a line.
package linediff

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// Kind says on which side a line is.
type Kind string

// Kinds of lines. A gap stands for unchanged lines that are left out.
const (
	Same    Kind = "same"
	Added   Kind = "added"
	Removed Kind = "removed"
	Gap     Kind = "gap"
)

const (
	// MaxBytes is how many bytes of a text are compared; a larger text gets a note.
	MaxBytes = 1 << 20
	maxLines = 20_000 // of a text; diffmatchpatch numbers them with runes
	// maxShown is how many lines a difference keeps.
	maxShown = 400
	// maxText is how many characters of a line are kept.
	maxText = 300
	around  = 3
	// patience is for one comparison. When it ends, the result is coarser, and still right.
	patience = 200 * time.Millisecond
	// maxWords is how many pairs of lines are compared by words.
	maxWords = 100
)

// Diff is how one text becomes another.
type Diff struct {
	Lines   []Line
	Added   int
	Removed int
	Hidden  int // changed lines that are not kept
	// Note says why there are no lines, such as "binary"; or, with lines, why only one of the texts is known.
	Note string
}

// Line is a line of a difference.
type Line struct {
	Kind   Kind
	Before int // the number of the line in the old text; 0: it is not in it
	After  int
	Parts  []Part
	Left   int // how many lines a gap leaves out
}

// Part is a piece of a line. Strong marks the words that differ from the other side.
type Part struct {
	Text   string
	Strong bool
}

// Text returns the line without its emphasis.
func (l Line) Text() string {
	var b strings.Builder
	for _, p := range l.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Sign returns what stands before the line in a text: "+", "-", or a space.
func (l Line) Sign() string {
	switch l.Kind {
	case Added:
		return "+"
	case Removed:
		return "-"
	}
	return " "
}

// Binary reports whether content is not text.
func Binary(content []byte) bool { return bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) }

// Compare returns how before becomes after; a difference without lines and note when they are equal.
func Compare(before, after string) *Diff {
	switch {
	case before == after:
		return &Diff{}
	case Binary([]byte(before)) || Binary([]byte(after)):
		return &Diff{Note: "binary content"}
	case len(before) > MaxBytes || len(after) > MaxBytes ||
		strings.Count(before, "\n") > maxLines || strings.Count(after, "\n") > maxLines:
		return &Diff{Note: "too large to compare by line"}
	}
	d := diffmatchpatch.New()
	d.DiffTimeout = patience
	a, b, lines := d.DiffLinesToRunes(before, after)
	out := &Diff{}
	var all []Line
	old, now := 0, 0
	for _, part := range d.DiffCharsToLines(d.DiffMainRunes(a, b, false), lines) {
		for text := range strings.Lines(part.Text) {
			line := Line{Kind: Same}
			switch part.Type {
			case diffmatchpatch.DiffInsert:
				now++
				line.Kind, line.After = Added, now
				out.Added++
			case diffmatchpatch.DiffDelete:
				old++
				line.Kind, line.Before = Removed, old
				out.Removed++
			default:
				old, now = old+1, now+1
				line.Before, line.After = old, now
			}
			whole, ended := strings.CutSuffix(text, "\n")
			shown := cut(whole)
			line.Parts = []Part{{Text: shown}}
			if !ended && line.Kind != Same {
				line.Parts = append(line.Parts, Part{Text: " (no newline at the end)"})
			}
			all = append(all, line)
		}
	}
	out.keep(all)
	emphasise(out.Lines)
	return out
}

// Whole returns a text as lines of which none differ, the first ones if there are many. Hidden is how many others it
// has.
func Whole(text string) *Diff {
	out := &Diff{}
	for line := range strings.Lines(text) {
		if len(out.Lines) == maxShown {
			out.Hidden++
			continue
		}
		n := len(out.Lines) + 1
		whole := strings.TrimSuffix(line, "\n")
		out.Lines = append(out.Lines, Line{Kind: Same, Before: n, After: n, Parts: []Part{{Text: cut(whole)}}})
	}
	return out
}

// cut shortens a long line.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	n := 0
	for i := range text {
		if n++; n > maxText {
			return text[:i] + "…"
		}
	}
	return text
}

// keep keeps the changes with the lines around them.
func (d *Diff) keep(all []Line) {
	near := make([]bool, len(all))
	for i, line := range all {
		if line.Kind == Same {
			continue
		}
		for j := max(0, i-around); j <= min(len(all)-1, i+around); j++ {
			near[j] = true
		}
	}
	left := 0
	for i, line := range all {
		switch {
		case len(d.Lines) >= maxShown:
			if line.Kind != Same {
				d.Hidden++
			}
		case !near[i]:
			left++
		default:
			if left > 0 {
				d.Lines = append(d.Lines, Line{Kind: Gap, Left: left})
				left = 0
			}
			d.Lines = append(d.Lines, line)
		}
	}
	if left > 0 && len(d.Lines) < maxShown {
		d.Lines = append(d.Lines, Line{Kind: Gap, Left: left})
	}
}

// emphasise marks what differs between lines that were replaced one by one: in as many removed lines as lines were
// added after them.
func emphasise(lines []Line) {
	budget := maxWords
	for i := 0; i < len(lines); {
		if lines[i].Kind != Removed {
			i++
			continue
		}
		first := i
		for i < len(lines) && lines[i].Kind == Removed {
			i++
		}
		second := i
		for i < len(lines) && lines[i].Kind == Added {
			i++
		}
		n := second - first
		if i-second != n || n > budget {
			continue
		}
		budget -= n
		for j := range n {
			words(&lines[first+j], &lines[second+j])
		}
	}
}

// words marks what differs between two lines, if they are alike.
func words(before, after *Line) {
	if len(before.Parts) != 1 || len(after.Parts) != 1 {
		return
	}
	d := diffmatchpatch.New()
	d.DiffTimeout = patience / maxWords
	parts := d.DiffCleanupSemantic(d.DiffMain(before.Parts[0].Text, after.Parts[0].Text, false))
	same, longer := 0, max(len(before.Parts[0].Text), len(after.Parts[0].Text))
	var was, now []Part
	for _, p := range parts {
		switch p.Type {
		case diffmatchpatch.DiffEqual:
			same += len(p.Text)
			was, now = append(was, Part{Text: p.Text}), append(now, Part{Text: p.Text})
		case diffmatchpatch.DiffDelete:
			was = append(was, Part{p.Text, true})
		case diffmatchpatch.DiffInsert:
			now = append(now, Part{p.Text, true})
		}
	}
	if same*3 < longer {
		return // other lines altogether
	}
	before.Parts, after.Parts = was, now
}
