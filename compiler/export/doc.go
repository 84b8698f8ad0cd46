// Package export turns the instances of an evaluated model into resources:
// the desired state that the server stores (LANGUAGE.md section 9).
//
//	instances ──▶ which types are resources?  asked of Python once per type
//	          ──▶ ids and plain fields        read and written by Go
//	          ──▶ get_<field>, maps, classes  run by Python, one request for many instances
//	          ──▶ requires, resource sets     found in the model by Go
//	          ──▶ dependency managers         run by Python on all resources, if there are any
//	          ──▶ export functions            the same, when they are asked for
//	          ──▶ Document                    canonical, sorted, hashed
//
// A class that makes, fills or writes its resources in a way of its own gets
// none of its fields from Go: Python holds the objects and has them write
// themselves at the end (item.replace). Which classes do is told once, with the
// types.
//
// The result depends on the model only: equal input gives equal bytes.
package export
