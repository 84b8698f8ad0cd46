// Package lineage finds the statements that set the values of a model.
//
//	eval: a place in the text and an implementation that ran ──▶ lineage ──▶ provenance.Table
//
// The engine keeps only a pointer or two for each value. This package finds in the trees which
// statement is at that place, in which loop, and which constructors led there, once for each
// statement and not for each value.
package lineage
