package pyyaml

import (
	"strings"

	"ordain.dev/ordain/internal/python/pytext"
)

const (
	nextLine           = '\u0085'
	lineSeparator      = '\u2028'
	paragraphSeparator = '\u2029'
	byteOrderMark      = '\ufeff'
)

// allowed tells whether a text may hold a character: not the control characters,
// nor two that are none.
func allowed(c rune) bool {
	switch {
	case c < ' ':
		return c == '\t' || c == '\n' || c == '\r'
	case c < 0xa0:
		return c < 0x7f || c == nextLine
	}
	return c != 0xfffe && c != 0xffff
}

// isBreak tells whether a line ends with it. There is no `\r` in what a text
// file gives.
func isBreak(c rune) bool {
	return c == '\n' || c == nextLine || c == lineSeparator || c == paragraphSeparator
}

func isBreakOrEnd(c rune) bool { return isBreak(c) || c == end }

// isSpaceOrEnd leaves out tabs, which separate nothing behind directives, tags
// and the heads of block scalars.
func isSpaceOrEnd(c rune) bool { return c == ' ' || isBreakOrEnd(c) }

func isBlankOrEnd(c rune) bool { return c == '\t' || isSpaceOrEnd(c) }

func isSpaceOrTab(c rune) bool { return c == ' ' || c == '\t' }

func isDigit(c rune) bool { return c >= '0' && c <= '9' }

func isHex(c rune) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// isNameChar tells whether names of anchors, directives and handles may hold it.
func isNameChar(c rune) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}

func isURIChar(c rune) bool {
	return isNameChar(c) || strings.ContainsRune(";/?:@&=+$,.!~*'()[]%", c)
}

// quoted writes a character as Python's repr does.
func quoted(c rune) string { return pytext.Quote(string(c)) }
