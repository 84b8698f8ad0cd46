// Package pyregex is Python's re for Go: the patterns of CPython 3.13 for characters (not for bytes),
// matched at the start of a text as re.match does, with Python's messages for wrong patterns.
//
// In the reference, Python matches the regular expressions of typedefs, so "nearly the same language"
// is not enough: which of two alternatives is taken, what a group matched after backtracking, whether
// ² is a letter and whether the sign K equals k all matter to some model. Other engines answer each of
// these differently.
//
//	pattern ── source.go     characters and escapes, one ahead
//	   │
//	parse.go, group.go, escape.go, set.go
//	   │                     a tree, or Python's error
//	tree.go                  the tree as Python would simplify it
//	   │
//	program.go, unit.go      instructions; a test for each single character
//	   │
//	match.go, backtrack.go   tries the alternatives in Python's order
//
// The matcher keeps the alternatives that it has not tried on a stack of its own, so a long text needs
// memory but not a deep Go stack. With each it saves exactly what CPython saves: a group that CPython
// forgets to reset is not reset here either. Which groups those are depends on how CPython simplifies a
// pattern ((?:a|b)* becomes [ab]*), which is why tree.go simplifies it too.
//
// Python's properties of characters (unicode.go, casefold.go) are those of Unicode 15.1: Go's tables
// with small corrections. testdata/characters.json was recorded from CPython, and the tests compare
// every code point. The caller supplies the names of characters.
package pyregex
