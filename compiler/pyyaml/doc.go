// Package pyyaml reads YAML as PyYAML's SafeLoader does from a text file: it
// takes and refuses the same texts, in the same words and at the same places.
//
// YAML is written with much freedom, and every reader of it draws the border
// elsewhere. Where tabs may stand, what a plain `a: b: c` is, how far a key may
// reach, which directives are known: project files that one takes another
// refuses. Whoever has to agree with PyYAML has to read as it reads.
//
//	bytes ──textFile──▶ characters ──reader──▶ lookahead and places
//	                                              │
//	          *Node ◀──composer── tokens ◀──scanner
//
// The text is taken in pieces, as Python takes it from a file, because the
// first error counts: a character that is not allowed in the third piece is
// never seen when the second one has no end to a quote.
//
// A key is known to be one only when its colon comes. So the scanner holds back
// tokens as long as the first of them may turn out to begin a key, and puts the
// token for it before them; a key has one line and 1024 characters to show it.
//
// Making values of nodes is not done here, but Node.Tag says what kind of value
// a node has.
package pyyaml
