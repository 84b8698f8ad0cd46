package syntax

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/runenames"
)

// NamedRune returns the character that \N{…} names, by its name in Unicode 15.1 or an alias that
// Unicode lists (NULL, NBSP, BOM). Lower case is accepted too, but not in names that are made by a
// rule.
func NamedRune(name string) (rune, bool) {
	if hex, is := strings.CutPrefix(name, "CJK UNIFIED IDEOGRAPH-"); is {
		return ideograph(hex)
	}
	if syllable, is := strings.CutPrefix(name, "HANGUL SYLLABLE "); is {
		return hangul(syllable)
	}
	r, ok := namedRunes()[strings.ToUpper(name)]
	return r, ok
}

// otherNames has a line for each character that has aliases, or is newer than package runenames:
// its number and the names, separated by |.
//
//go:embed aliases.txt
var otherNames string

// namedRunes is built at the first \N{…}; few models have one.
var namedRunes = sync.OnceValue(func() map[string]rune {
	names := make(map[string]rune, 40000)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if name := runenames.Name(r); name != "" && name[0] != '<' {
			names[name] = r
		}
	}
	for line := range strings.Lines(otherNames) {
		number, list, _ := strings.Cut(strings.TrimSpace(line), " ")
		r, _ := strconv.ParseUint(number, 16, 32)
		for name := range strings.SplitSeq(list, "|") {
			names[name] = rune(r)
		}
	}
	for n := range rune(256) { // variation selectors are in two blocks
		first := rune(0xfe00)
		if n >= 16 {
			first = 0xe0100 - 16
		}
		names["VS"+strconv.Itoa(int(n)+1)] = first + n
	}
	return names
})

// unified are the ideographs that are named after their numbers.
var unified = unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x3400, Hi: 0x4dbf, Stride: 1}, {Lo: 0x4e00, Hi: 0x9fff, Stride: 1}},
	R32: []unicode.Range32{
		{
			Lo:     0x20000,
			Hi:     0x2a6df,
			Stride: 1,
		}, {Lo: 0x2a700, Hi: 0x2b739, Stride: 1}, {Lo: 0x2b740, Hi: 0x2b81d, Stride: 1},
		{
			Lo:     0x2b820,
			Hi:     0x2cea1,
			Stride: 1,
		}, {Lo: 0x2ceb0, Hi: 0x2ebe0, Stride: 1}, {Lo: 0x2ebf0, Hi: 0x2ee5d, Stride: 1},
		{Lo: 0x30000, Hi: 0x3134a, Stride: 1}, {Lo: 0x31350, Hi: 0x323af, Stride: 1},
	},
}

func ideograph(hex string) (rune, bool) {
	if len(hex) != 4 && len(hex) != 5 || strings.ToUpper(hex) != hex {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || !unicode.Is(&unified, rune(n)) {
		return 0, false
	}
	return rune(n), true
}

// Names of Korean syllables consist of one of the first, one of the second and one of the third.
// Unicode has the syllables in this order.
var (
	initials = strings.Split("G,GG,N,D,DD,R,M,B,BB,S,SS,,J,JJ,C,K,T,P,H", ",")
	vowels   = strings.Split("A,AE,YA,YAE,EO,E,YEO,YE,O,WA,WAE,OE,YO,U,WEO,WE,WI,YU,EU,YI,I", ",")
	finals   = strings.Split(",G,GG,GS,N,NJ,NH,D,L,LG,LM,LB,LS,LT,LP,LH,M,B,BS,S,SS,NG,J,C,K,T,P,H", ",")
)

func hangul(name string) (rune, bool) {
	for i, initial := range initials {
		rest, is := strings.CutPrefix(name, initial)
		if !is {
			continue
		}
		for v, vowel := range vowels {
			for f, final := range finals {
				if len(rest) == len(vowel)+len(final) && strings.HasPrefix(rest, vowel) &&
					strings.HasSuffix(rest, final) {
					return rune(0xac00 + (i*len(vowels)+v)*len(finals) + f), true
				}
			}
		}
	}
	return 0, false
}

// namedEscape reads N{NAME}.
func namedEscape(b string) (rune, int, string) {
	if len(b) < 2 || b[1] != '{' {
		return 0, 1, "malformed \\N character escape"
	}
	end := strings.IndexByte(b, '}')
	if end <= 2 {
		return 0, 1, "malformed \\N character escape"
	}
	r, ok := NamedRune(b[2:end])
	if !ok {
		return 0, end + 1, "unknown Unicode character name"
	}
	return r, end + 1, ""
}
