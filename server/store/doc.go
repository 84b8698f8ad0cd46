// Package store is the place of record: PostgreSQL behind methods that speak in the values of package intent. Each
// method is one transaction; what it returned without an error is durable.
//
//	control ──▶ Store ──▶ statements (sql/*.sql, prepared by a test) ──▶ tables (migrations/*.sql)
//	                ├──▶ lists (lists.go): statement + filters + bounds, for every paged list
//	                └──▶ what versions have (members), which never changes and is remembered for a while
//
// The faults are the same everywhere: NotFound for an id that does not exist, Conflict for a name that is taken or a
// state that does not allow the change, Invalid for a list query with an unknown field or a malformed value, and
// Unavailable when the database cannot be reached. After Unavailable the call may be repeated, and later calls
// connect anew.
//
// There are three types per thing: the row (columns), the JSON that some columns hold, and the domain value. Plain
// functions convert between them.
//
// What versions say about a resource is stored once per content and not once per version; a version is an array of
// keys. What is known about a resource (resource_state) refers to the content that is its intent now.
package store
