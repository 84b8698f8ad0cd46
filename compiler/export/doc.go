// Package export turns the instances of an evaluated model into resources:
// the desired state that the server stores (LANGUAGE.md section 9).
//
//	instances ──▶ which types are resources?  Python says, once per type
//	          ──▶ ids and plain fields        read and written by Go
//	          ──▶ get_<field>, maps, classes  run by Python, one request for many instances
//	          ──▶ requires, resource sets     found in the model by Go
//	          ──▶ dependency managers         run by Python on all resources, if there are any
//	          ──▶ export functions            the same, when the caller asks for them
//	          ──▶ Document                    canonical, sorted, hashed
//
// A resource class may override how its resources are made, filled or written. Go writes none
// of the fields of such resources: Python holds the objects and has them write themselves at
// the end (item.replace). Python says which classes these are together with the types.
//
// The result depends on the model only: equal input gives equal bytes.
package export
