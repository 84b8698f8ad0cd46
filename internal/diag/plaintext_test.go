package diag

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A terminal shows, and does not obey, what would clear the screen, name another file in the
// window's title or write from right to left.
func TestTerminalObeysNothing(t *testing.T) {
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
		if got := PlainText(c.text); got != c.lines {
			t.Errorf("PlainText(%q) is %q, want %q", c.text, got, c.lines)
		}
		want := strings.NewReplacer("\n", " ", "\t", " ").Replace(c.line)
		if got := PlainLine(c.text); got != want {
			t.Errorf("PlainLine(%q) is %q, want %q", c.text, got, want)
		}
	}
}

// The result is always UTF-8 without control characters, and clean text stays as it is.
func FuzzPlainText(f *testing.F) {
	f.Add("a\x1b[0m\r\n\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{"PlainText": PlainText(s), "Line": PlainLine(s)} {
			if !utf8.ValidString(got) {
				t.Errorf("%s(%q) is not UTF-8: %q", name, s, got)
			}
			for _, r := range got {
				if unicode.IsControl(r) && (name == "PlainLine" || r != '\n' && r != '\t') {
					t.Errorf("%s(%q) contains %U", name, s, r)
				}
			}
		}
		if twice := PlainText(PlainText(s)); twice != PlainText(s) {
			t.Errorf("PlainText(%q) changes when it is cleaned a second time: %q", s, twice)
		}
	})
}
