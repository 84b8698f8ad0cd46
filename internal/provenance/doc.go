// Package provenance holds who decided each value: for every attribute of every
// exported resource the statement that set it, in which implementation of which
// instance it ran, and so on up to the top level of the model.
//
// A Table has all of a version in little space, because resources that come
// from the same statements differ in their instances only:
//
//	Statements  the places in the text, with their source lines; as many as the model has
//	Calls       an implementation and the statement that chose it
//	Steps       a Call for one instance, the constructor and the Step that made the instance
//	Shapes      which field was set by which Statement, in which Step of the resource,
//	            and below it what the value was computed from, and so on
//	Resources   a Shape and the Steps that it speaks of
//
// The compiler fills it (compiler/lineage), the store keeps its packed form with
// the version, and Explain reads it.
package provenance
