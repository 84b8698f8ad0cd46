// Package tokens proves who sends a call with a token that is not of a session.
//
//	Authorization: Bearer ordain_pat_…  a person's own token: what its owner may do now, within the token's roles
//	                      ordain_job_…  what a CI job got for the identity token of a trusted issuer
//	                      eyJ…          a JWT of an environment, for clients such as its compiler
//	                      anything else is passed to the sessions of package people
//
// The store keeps the SHA-256 of personal and job tokens, and of a JWT its id. A verified token is remembered for a few
// seconds; whatever changes in this process what somebody may do makes the service forget all of them at once.
//
// A token cannot make tokens, so that revoking one ends all that its holder could do.
package tokens
