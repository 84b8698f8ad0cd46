// Package secret keeps small secrets such as Git credentials, webhook secrets and
// tokens.
//
// A Key seals them before they go to the database, so that a copy of the database
// alone reveals nothing: the key is in a file of the state directory that only
// the server can read. A sealed secret is bound to a context, such as its
// environment and name, and opens only with the same one:
//
//	key file ──┐
//	plain ─────┼─▶ AES-256-GCM ─▶ 0x01 │ nonce │ ciphertext and tag ─▶ database
//	context ───┘   ("env 7d…/git-password", authenticated, not stored)
//
// A Redactor is the last line of defence: it masks known secrets in texts and
// streams that people will read.
package secret
