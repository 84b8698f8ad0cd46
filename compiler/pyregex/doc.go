// Package pyregex is Python's re for Go: the patterns of CPython 3.13 that are
// made of characters (not of bytes), matched at the start of a text as
// re.match does, with Python's words for what is wrong with a pattern.
//
// A typedef's regular expression was tried by Python wherever a model was
// compiled before, so "nearly the same language" is not enough: which of two
// ways is taken, what a group holds after a way was given up, whether ² is a
// letter and whether K is a k are all seen by somebody's model. Other engines
// answer each of these differently.
//
//	pattern ── source.go     characters and escapes, one ahead
//	   │
//	parse.go, group.go, escape.go, set.go
//	   │                     a tree, or Python's complaint
//	tree.go                  the tree as Python would simplify it
//	   │
//	program.go, unit.go      instructions; a test for each single character
//	   │
//	match.go, backtrack.go   tries the ways in Python's order
//
// The matcher keeps the ways that it has not tried on a stack of its own, so a
// long text needs memory and no depth of Go's stack. What it saves with a way
// is what CPython saves there, and no more: a group that CPython forgets to
// reset is not reset here either. Which parts those are depends on how CPython
// simplifies a pattern ((?:a|b)* becomes [ab]*), which is why tree.go
// simplifies it too.
//
// What Python knows of characters (unicode.go, casefold.go) is Unicode 15.1,
// Go's tables with small corrections; testdata/characters.json was recorded from
// CPython and the tests compare every code point. The names of characters come
// from the caller.
package pyregex
