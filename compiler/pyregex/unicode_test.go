package pyregex

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"unicode"

	"ordain.dev/ordain/internal/testing/racedetector"

	"ordain.dev/ordain/internal/python/pytext"
)

// characters is the recording of characters.py.
type characters struct {
	sets  map[string][]bool
	same  map[rune][]rune // letters that match a letter without regard to case
	cased []rune
}

func recordedCharacters(t *testing.T) characters {
	t.Helper()
	data, err := os.ReadFile("testdata/characters.json")
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	c := characters{sets: map[string][]bool{}, same: map[rune][]rune{}}
	var rows [][]any
	for name, value := range raw {
		var bounds []rune
		switch name {
		case "same":
			err = json.Unmarshal(value, &rows)
		case "same in sets": // nothing differs there
			if string(value) != "[]" {
				t.Fatal("sets differ from literals")
			}
		default:
			err = json.Unmarshal(value, &bounds)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		set := make([]bool, unicode.MaxRune+1)
		for i := 0; i < len(bounds); i += 2 {
			for r := bounds[i]; r <= bounds[i+1]; r++ {
				set[r] = true
			}
		}
		c.sets[name] = set
	}
	for _, row := range rows {
		for _, other := range row[1].([]any) {
			r := rune(row[0].(float64))
			c.same[r] = append(c.same[r], rune(other.(float64)))
		}
	}
	for r, cased := range c.sets["cased"] {
		if cased {
			c.cased = append(c.cased, rune(r))
		}
	}
	return c
}

// Every character is a word, a digit, a space or a part of a name exactly if
// CPython says so. When Go's tables move to another version of Unicode, this test shows
// which corrections have become wrong.
func TestEveryCharacterIsWhatCPythonTakesItFor(t *testing.T) {
	c := recordedCharacters(t)
	for name, is := range map[string]func(rune) bool{
		`\w`:           isWord,
		`\d`:           isDigit,
		`\s`:           isSpace,
		"alpha":        isLetter,
		"printable":    pytext.Printable,
		"identifier":   func(r rune) bool { return isIdentifier(string(r)) && utf8Has(r) },
		"a identifier": func(r rune) bool { return isIdentifier("a"+string(r)) && utf8Has(r) },
	} {
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if is(r) != c.sets[name][r] {
				t.Errorf("%s of %U: %v", name, r, is(r))
			}
		}
	}
}

// If case is ignored, every letter matches the same letters as in CPython, by itself and in
// a set.
func TestEveryLetterMatchesTheSameLetters(t *testing.T) {
	c := recordedCharacters(t)
	for i, r := range c.cased {
		if racedetector.On && i%16 != 0 {
			continue // slow with the race detector
		}
		one := unitOf(literal(r), ignoreCase|uni)
		ranged := unitOf(set([]member{{lo: r, hi: r, ranged: true}}, false), ignoreCase|uni)
		for _, other := range c.cased {
			want := other == r || slices.Contains(c.same[r], other)
			if got := one.wide.has(other); got != want {
				t.Errorf("%c on %c: %v", r, other, got)
			}
			if got := ranged.wide.has(other); got != want {
				t.Errorf("[%c-%c] on %c: %v", r, r, other, got)
			}
		}
	}
}
