// Package program turns the files of a model into a program: all names are
// resolved, types and relations are laid out, and what can be known to be wrong
// without running anything is reported.
//
//	files, plug-ins ──Define──▶ Program
//	                              Entities, Typedefs: types with their attributes, indexes, defaults
//	                              Implementations:    bodies that run for instances
//	                              Namespaces:         the statements at the top level of each file
//
// A Program is data. Its statements and expressions are nodes (stmtnodes.go,
// exprnodes.go, instancenodes.go) whose names have become indexes of variables, slots
// of instances, entities and plug-ins; a node says nothing about how it is run. Every
// expression knows how many variables its evaluation needs and where each of its
// parts finds its own among them (layout).
//
// Package eval runs programs. Package program knows one thing of it: a function
// that evaluates the condition of a typedef, since defaults and constants are checked
// here.
//
// The package is internal to package eval, which shows callers what they need of
// it: the input, the errors, and the contract with Python.
package program
