// Package syntax turns the text of a model file into a tree.
//
//	text ──scanner──▶ tokens ──goyacc parser──▶ *File
//	                               └─ refused ─▶ judge ──▶ *Error
//
// The grammar (grammar.y) is ambiguous and settled by precedences, as the
// reference's is, so that both read every text alike. A text that is refused is
// gone through again by the judge, with tables that notice an error exactly when
// the reference does.
//
// It knows the whole grammar of the language (LANGUAGE.md sections 2 and 3) and
// nothing of its meaning: names are not looked up and values are not computed.
// Errors have the class and the place that the reference gives them, which for
// a syntax error is the place of the scanner when the parser notices.
//
// Parsing is pure and safe for concurrent use: many files are parsed at once.
package syntax
