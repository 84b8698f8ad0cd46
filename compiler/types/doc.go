// Package types has the values and the types of the language: which values there
// are, which types (primitives, typedefs, lists, optionals, entities), whether a
// value has a type, and what a cast makes of it (LANGUAGE.md section 4). Nothing
// here waits for anything: that is package eval.
package types
