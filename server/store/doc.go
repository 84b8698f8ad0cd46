// Package store is the place of record: PostgreSQL behind methods that speak
// in the values of package intent. Each method is one transaction; what it
// returned without error is durable.
//
//	control ──▶ Store ──▶ statements (sql/*.sql, prepared by a test) ──▶ tables (migrations/*.sql)
//	                └──▶ lists: base statement + filters + bounds, for every paged list
//
// Three types per thing: the row (columns), the JSON that some columns hold,
// and the domain value; plain functions convert between them.
//
// What versions say of a resource is stored once per content and not once per
// version; a version is an array of keys. What is known of a resource
// (resource_state) refers to the content that is the intent now.
//
// A lost connection gives fault.Unavailable; later calls connect anew.
package store
