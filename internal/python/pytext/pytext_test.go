package pytext_test

import (
	"math"
	"testing"

	"ordain.dev/ordain/internal/python/pytext"
)

// What CPython 3.13 gives for repr of these.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"":                 `''`,
		"a":                `'a'`,
		"it's":             `"it's"`,
		`"it's"`:           `'"it\'s"'`,
		"a\\b\n\r\t\x00":   `'a\\b\n\r\t\x00'`,
		"\x7f\u00ad\u00a0": `'\x7f\xad\xa0'`,
		"é\u200b\ue000":    `'é\u200b\ue000'`,
		"😀\U000e0001":      `'😀\U000e0001'`,
		"\u2ffc\U0002ebf0": "'\u2ffc\U0002ebf0'",
	} {
		if got := pytext.Quote(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestFloat(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", math.Copysign(0, -1): "-0.0", 1: "1.0", 0.1: "0.1", 1e15: "1000000000000000.0", 1e16: "1e+16",
		1e-4: "0.0001", 1e-5: "1e-05",
		1.5e300: "1.5e+300", math.Inf(1): "inf", math.Inf(-1): "-inf", 123456.789: "123456.789",
	} {
		if got := pytext.Float(f); got != want && !(f == 0 && got == "0.0") {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	if got := pytext.Float(math.Copysign(0, -1)); got != "-0.0" {
		t.Errorf("-0.0: %s", got)
	}
	if got := pytext.Float(math.NaN()); got != "nan" {
		t.Errorf("nan: %s", got)
	}
}

// Halves of characters, which texts of Python may hold, are shown by their numbers.
func TestHalvesOfCharacters(t *testing.T) {
	const text = "a\xed\xa0\xbdb\xed\xb8\x80é"
	if got := pytext.Quote(text); got != `'a\ud83db\ude00é'` {
		t.Errorf("Quote gives %s", got)
	}
	if got := pytext.ASCII(text); got != `a\ud83db\ude00\xe9` {
		t.Errorf("ASCII gives %s", got)
	}
}
