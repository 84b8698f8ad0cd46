package pytext

import (
	"fmt"
	"unicode/utf8"
)

// DecodeError says why bytes are not UTF-8, in the words of Python's
// UnicodeDecodeError; empty when they are.
func DecodeError(text []byte) string {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		if r, size := utf8.DecodeRune(text[i:]); r != utf8.RuneError || size > 1 {
			i += size
			continue
		}
		n, why := Undecodable(text[i:])
		return DecodeErrorAt(text, i, n, why)
	}
	return ""
}

// DecodeErrorAt is the message for n bytes at an offset.
func DecodeErrorAt(text []byte, at, n int, why string) string {
	if n == 1 {
		return fmt.Sprintf("'utf-8' codec can't decode byte 0x%02x in position %d: %s", text[at], at, why)
	}
	return fmt.Sprintf("'utf-8' codec can't decode bytes in position %d-%d: %s", at, at+n-1, why)
}

// UnexpectedEnd is the reason for a character that is cut off.
const UnexpectedEnd = "unexpected end of data"

// Undecodable returns how many bytes at the start of b, which is not UTF-8 there, Python takes for
// one error, and the reason.
func Undecodable(b []byte) (n int, why string) {
	low, high := byte(0x80), byte(0xbf) // what the second byte may be
	length := 0
	switch c := b[0]; {
	case 0xc2 <= c && c <= 0xdf:
		length = 2
	case 0xe0 <= c && c <= 0xef:
		length = 3
	case 0xf0 <= c && c <= 0xf4:
		length = 4
	default:
		return 1, "invalid start byte"
	}
	switch b[0] {
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	for i := 1; i < length; i++ {
		if i == len(b) {
			return i, UnexpectedEnd
		}
		if b[i] < low || b[i] > high {
			return i, "invalid continuation byte"
		}
		low, high = 0x80, 0xbf
	}
	return 1, "invalid start byte" // cannot happen: it is a character
}
