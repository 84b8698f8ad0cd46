package linediff_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/linediff"
)

// numbered returns lines 1 to n, of which some are replaced.
func numbered(n int, replaced map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if text, ok := replaced[i]; ok {
			b.WriteString(text + "\n")
			continue
		}
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// One line of a long file changes: the difference shows it with three lines around, folds the rest, and marks the word.
func TestALineInALongFile(t *testing.T) {
	before := numbered(100, map[int]string{50: "listen 8080 default"})
	d := linediff.Compare(before, numbered(100, map[int]string{50: "listen 8443 default"}))
	want := "@@ 46 unchanged lines @@\n line 47\n line 48\n line 49\n-listen 8080 default\n+listen 8443 default\n" +
		" line 51\n line 52\n line 53\n@@ 47 unchanged lines @@\n"
	if d.String() != want || d.Added != 1 || d.Removed != 1 {
		t.Errorf("%+v\n%s", d, d)
	}
	for _, line := range d.Lines {
		strong := ""
		for _, p := range line.Parts {
			if p.Strong {
				strong += p.Text
			}
		}
		if line.Kind == linediff.Removed && (line.Before != 50 || !strings.Contains("8080", strong) || strong == "") ||
			line.Kind == linediff.Added && (line.After != 50 || !strings.Contains("8443", strong) || strong == "") {
			t.Errorf("%+v", line)
		}
	}
}

// Content that is binary or too large gets a note; a line without an end is told from one with an end.
func TestWhatCannotBeCompared(t *testing.T) {
	for name, one := range map[string]struct{ before, after, want string }{
		"equal":   {"a\n", "a\n", ""},
		"new":     {"", "a\nb\n", "+a\n+b\n"},
		"binary":  {"a", "\x00\x01", "(binary content)\n"},
		"latin 1": {"a", "caf\xe9", "(binary content)\n"},
		"huge":    {"a", strings.Repeat("x", linediff.MaxBytes+1), "(too large to compare by line)\n"},
		"lines":   {"a", strings.Repeat("\n", 50_000), "(too large to compare by line)\n"},
		"no end":  {"a", "a\n", "-a (no newline at the end)\n+a\n"},
	} {
		if got := linediff.Compare(one.before, one.after).String(); got != one.want {
			t.Errorf("%s: %q, want %q", name, got, one.want)
		}
	}
}

// A hostile pair of texts costs little time and space.
func TestBounds(t *testing.T) {
	var a, b strings.Builder
	for i := range 19_000 {
		fmt.Fprintf(&a, "%d %s\n", i*7919%19_000, strings.Repeat("a", 20))
		fmt.Fprintf(&b, "%d %s\n", i*104729%19_000, strings.Repeat("a", 20))
	}
	begin := time.Now()
	d := linediff.Compare(a.String(), b.String())
	if took := time.Since(begin); took > 5*time.Second {
		t.Error("it took", took)
	}
	if len(d.Lines) > 401 || d.Hidden == 0 {
		t.Error(len(d.Lines), d.Hidden)
	}
	long := linediff.Compare("a\n", strings.Repeat("é", 10_000)+"\n")
	if text := long.Lines[1].Text(); len(text) > 700 || !strings.HasSuffix(text, "…") {
		t.Error(len(text))
	}
}

// The lines that are shown are lines of the texts, and the new text is the old one with the changes.
func TestLinesAreThoseOfTheTexts(t *testing.T) {
	text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d e f", ""}), 0, 40),
		func(lines []string) string {
			if len(lines) == 0 {
				return ""
			}
			return strings.Join(lines, "\n") + "\n"
		})
	rapid.Check(t, func(t *rapid.T) {
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
		added, removed := 0, 0
		for _, line := range linediff.Compare(before, after).Lines {
			if line.Before > 0 && old[line.Before-1] != line.Text() ||
				line.After > 0 && now[line.After-1] != line.Text() {
				t.Fatalf("%+v", line)
			}
			switch line.Kind {
			case linediff.Added:
				added++
			case linediff.Removed:
				removed++
			}
		}
		if len(old)-removed+added != len(now) {
			t.Fatal(len(old), removed, added, len(now))
		}
	})
}
