// Package intent holds the values that all parts of Ordain share: identities,
// versions, states and differences. They are small and immutable.
//
// Nothing here uses a disk, a database or a clock. A value has one string form, a
// Parse function that is the inverse of its String method, and the JSON form of
// Inmanta's REST API.
package intent
