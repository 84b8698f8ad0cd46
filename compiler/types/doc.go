// Package types holds the values and the types of the language: what a value
// can be, which types there are (primitives, typedefs, lists, optionals,
// entities), when a value belongs to a type, and what a cast makes of it
// (LANGUAGE.md section 4). It computes nothing over time: that is package eval.
package types
