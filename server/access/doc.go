// Package access decides who may do what, where.
//
//	request ─▶ Authenticator ─▶ Principal: a person, a token, a handler … with bindings (a role, a scope)
//	                                │
//	route ─▶ Verb (label, reach) ─▶ Principal.Decide(verb, target) ─▶ Decision: allowed, visible, reason
//
// A verb is one thing that can be done; the table in verb.go lists all of them with their label. A role is a set of
// labels, and perhaps some verbs. A binding gives a person, a group or a token a role in a scope: the whole server, a
// project, an environment, or all environments with a tag. Every route of the API and of the console names its verb
// where it is declared, and the door asks for a decision before it does anything else.
//
// A project is a tenant: who may read nothing in a project cannot tell it from one that does not exist. Doors answer
// such a request as they answer an unknown id.
//
// This package only holds values and decides; the packages below it prove who sends a request (people, tokens) and keep
// the record of what was done (audit).
package access
