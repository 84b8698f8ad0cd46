// Package syntax turns the text of a model file into a tree.
//
//	text ──scanner──▶ tokens ──goyacc parser──▶ *File
//	                               └─ refused ─▶ judge ──▶ *Error
//
// The grammar (grammar.y) is ambiguous and resolved by precedences, like that of the reference, so
// that both parse every text alike. The judge parses a refused text a second time, with tables that
// notice an error exactly when the reference does.
//
// The package knows the whole grammar of the language (LANGUAGE.md sections 2 and 3) but not its
// meaning: it does not look up names or compute values. Errors have the class and the place that
// they have in the reference; for a syntax error that is the place of the scanner when the parser
// notices it.
//
// Parse has no side effects and is safe for concurrent use.
package syntax
