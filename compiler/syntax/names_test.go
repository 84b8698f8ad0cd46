package syntax

import "testing"

// Names are those of Python 3.13: its own rules for ideographs and syllables,
// and every other name that Unicode lists.
func TestNamedRune(t *testing.T) {
	for name, want := range map[string]rune{
		"LATIN SMALL LETTER A":        'a',
		"latin small letter a":        'a',
		"CJK UNIFIED IDEOGRAPH-4E00":  '一',
		"CJK UNIFIED IDEOGRAPH-04E00": '一',
		"CJK UNIFIED IDEOGRAPH-4e00":  0,
		"CJK UNIFIED IDEOGRAPH-A000":  0,
		"CJK UNIFIED IDEOGRAPH-+4E0":  0,
		"HANGUL SYLLABLE GA":          '가',
		"HANGUL SYLLABLE A":           '아',
		"HANGUL SYLLABLE SSANGH":      0,
		"HANGUL SYLLABLE HIH":         '힣',
		"hangul syllable ga":          0,
		"NULL":                        0,
		"LINE FEED":                   '\n',
		"BELL":                        '🔔',
		"NBSP":                        '\u00a0',
		"VS16":                        '\ufe0f',
		"VS17":                        '\U000e0100',
		"VS257":                       0,
		"IDEOGRAPHIC DESCRIPTION CHARACTER SUBTRACTION": '\u31ef',
		"KEYCAP DIGIT ONE": 0,
	} {
		r, ok := NamedRune(name)
		if r != want || ok != (want != 0 || name == "NULL") {
			t.Errorf("%s is %q, %v; not %q", name, r, ok, want)
		}
	}
}
