// Package catalogue has what administrators offer: providers, hardware types, image
// types, services, cluster templates, and the types of plug-ins that carry them out.
//
//	JSON of a person or a file ── Decode ──▶ Entity ── Check against a Catalogue ──▶ Problems
//	template + parents + partials ── Catalogue.Resolve ──▶ Template without parents
//
// The JSON is Coopr's, so that published catalogues load unchanged; fields that this
// package does not know are kept as they are, and ignored. The package only holds and
// judges values: server/cluster/admin keeps them, server/cluster/solve uses them.
package catalogue
