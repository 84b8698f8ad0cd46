package plaintext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A model that would clear the screen, name another file in the window's title
// or write right to left shows what it holds.
func TestATerminalObeysNothing(t *testing.T) {
	for _, c := range []struct{ text, lines, line string }{
		{"plain, with umlauts: äöü and 漢字", "plain, with umlauts: äöü and 漢字", "plain, with umlauts: äöü and 漢字"},
		{"\x1b[2J\x1b]0;title\a", "␛[2J␛]0;title␇", "␛[2J␛]0;title␇"},
		{"one\r\n\ttwo", "one\n\ttwo", "one  \ttwo"},
		{"safe\rover", "safe␍over", "safe over"},
		{"c1 \u009b31m", "c1 \uFFFD31m", "c1 \uFFFD31m"},
		{"back\b\x7f", "back␈␡", "back␈␡"},
		{"if \u202eresu\u202c:", "if \uFFFDresu\uFFFD:", "if \uFFFDresu\uFFFD:"},
		{"no \xff\xfe UTF-8", "no \uFFFD\uFFFD UTF-8", "no \uFFFD\uFFFD UTF-8"},
	} {
		if got := Lines(c.text); got != c.lines {
			t.Errorf("Lines(%q) is %q, want %q", c.text, got, c.lines)
		}
		want := strings.NewReplacer("\n", " ", "\t", " ").Replace(c.line)
		if got := Line(c.text); got != want {
			t.Errorf("Line(%q) is %q, want %q", c.text, got, want)
		}
	}
}

// Whatever comes in, what goes out is UTF-8 without control characters, and
// what is clean stays as it is.
func FuzzPlaintext(f *testing.F) {
	f.Add("a\x1b[0m\r\n\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{"Lines": Lines(s), "Line": Line(s)} {
			if !utf8.ValidString(got) {
				t.Errorf("%s(%q) is no UTF-8: %q", name, s, got)
			}
			for _, r := range got {
				if unicode.IsControl(r) && (name == "Line" || r != '\n' && r != '\t') {
					t.Errorf("%s(%q) holds %U", name, s, r)
				}
			}
		}
		if again := Lines(Lines(s)); again != Lines(s) {
			t.Errorf("Lines(%q) changes when it is cleaned again: %q", s, again)
		}
	})
}
