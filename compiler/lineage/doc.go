// Package lineage works out who decided the values of a model.
//
//	eval: a place in the text and an implementation that ran ──▶ lineage ──▶ provenance.Table
//
// The engine keeps a pointer or two for each value and no more. What statement
// stands at the place, in which loop, and which constructors led there is found
// in the trees here, once for each statement and not for each value.
package lineage
