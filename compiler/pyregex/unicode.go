package pyregex

import "unicode"

// isNewIdeograph reports the ideographs of Unicode 15.1, which Python 3.13 has and Go's 15.0 lacks.
func isNewIdeograph(r rune) bool { return 0x2ebf0 <= r && r <= 0x2ee5d }

// isAlpha is str.isalpha of one character, and false for any other text.
func isAlpha(s string) bool {
	runes := []rune(s)
	return len(runes) == 1 && isLetter(runes[0])
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || isNewIdeograph(r) }

// isWord is \w: str.isalnum and the underscore. All characters with a numeric value count, such as ²
// and ½.
func isWord(r rune) bool {
	return isLetter(r) || unicode.IsNumber(r) || r == '_'
}

// isSpace is \s. Beside Unicode's spaces Python has the four separators of ASCII.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f
}

// isDigit is \d.
func isDigit(r rune) bool { return unicode.IsDigit(r) }

// The same with the flag a.
func isASCIIWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || isASCIIDigit(r) || r == '_'
}

func isASCIISpace(r rune) bool { return r == ' ' || '\t' <= r && r <= '\r' }

func isASCIIDigit(r rune) bool { return '0' <= r && r <= '9' }

// isIdentifier is str.isidentifier: the names that a group may have.
func isIdentifier(s string) bool {
	for i, r := range s {
		if !startsIdentifier(r) && (i == 0 || !continuesIdentifier(r)) {
			return false
		}
	}
	return s != ""
}

func startsIdentifier(r rune) bool {
	if r == '_' || isNewIdeograph(r) {
		return true
	}
	return unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start) && !unicode.Is(notFirst, r) &&
		!unicode.Is(inNoName, r)
}

func continuesIdentifier(r rune) bool {
	if unicode.Is(unicode.Join_Control, r) || r == 0x30fb || r == 0xff65 { // new in 15.1
		return true
	}
	return (unicode.Is(notFirst, r) || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc,
		unicode.Other_ID_Continue)) &&
		!unicode.Is(inNoName, r)
}

// Letters whose compatibility decomposition is not an identifier: those that cannot begin one, and
// those that cannot be in one at all.
var (
	notFirst = &unicode.RangeTable{R16: []unicode.Range16{
		{Lo: 0xe33, Hi: 0xe33, Stride: 1}, {Lo: 0xeb3, Hi: 0xeb3, Stride: 1}, {Lo: 0xff9e, Hi: 0xff9f, Stride: 1}}}
	inNoName = &unicode.RangeTable{R16: []unicode.Range16{
		{Lo: 0x37a, Hi: 0x37a, Stride: 1}, {Lo: 0x2e2f, Hi: 0x2e2f, Stride: 1}, {Lo: 0x309b, Hi: 0x309c, Stride: 1},
		{Lo: 0xfc5e, Hi: 0xfc63, Stride: 1}, {Lo: 0xfdfa, Hi: 0xfdfb, Stride: 1}, {Lo: 0xfe70, Hi: 0xfe7e, Stride: 2}}}
)
