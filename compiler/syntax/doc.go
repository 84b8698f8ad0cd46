// Package syntax turns the text of a model file into a tree.
//
//	text ──scanner──▶ tokens ──goyacc parser──▶ *File
//
// It knows the whole grammar of the language (LANGUAGE.md sections 2 and 3) and
// nothing of its meaning: names are not looked up and values are not computed.
// Errors have the class and the place that the reference gives them, which for
// a syntax error is the place of the scanner when the parser notices.
//
// Parsing is pure and safe for concurrent use: many files are parsed at once.
package syntax
