// Package graphql answers GraphQL queries over the store: what the reference's web console asks for, with the
// reference's schema.
//
//	query ─▶ guard: size, depth, cost ─▶ gqlgen: parse, validate, dispatch ─▶ a root, in a file of its own
//	                                                                          │ may the sender see this? (Allow)
//	result ◀─ data as JSON, errors as texts  ◀─ nodes with cursors  ◀─────────┘ a window of a list of the store
//
// The schema comes first: schema/schema.graphql, from which gqlgen generates types and execution. A list is read a page
// at a time, from the place that a cursor names (cursor.go and store.Window); nothing here reads a whole list.
package graphql
