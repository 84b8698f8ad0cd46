// Package export turns the instances of an evaluated model into resources:
// the desired state that the server stores (LANGUAGE.md section 9).
//
//	instances ──▶ which types are resources?  asked of Python once per type
//	          ──▶ ids and plain fields        read and written by Go
//	          ──▶ get_<field>, maps, classes  run by Python, one request for many instances
//	          ──▶ requires, resource sets     found in the model by Go
//	          ──▶ dependency managers         run by Python on all resources
//	          ──▶ Document                    canonical, sorted, hashed
//
// The result depends on the model only: equal input gives equal bytes.
package export
