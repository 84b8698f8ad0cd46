// Package intent holds the words that every part of Ordain shares: identities,
// versions, states and differences, as small immutable values.
//
// Nothing here talks to a disk, a database or a clock. A value has one string
// form, a Parse function that is the inverse of its String method, and a JSON
// form that is the one Inmanta's REST API shows.
package intent
