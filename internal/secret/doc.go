// Package secret keeps small secrets: Git credentials, webhook secrets, tokens.
//
// A Key seals them before they go to the database, so that a copy of the
// database alone gives nothing away: the key lies in a file of the state
// directory, readable by the server only. A sealed text carries the place that
// it belongs to, and opens nowhere else:
//
//	key file ──┐
//	plain ─────┼─▶ AES-256-GCM ─▶ 0x01 │ nonce │ ciphertext and tag ─▶ database
//	context ───┘   ("env 7d…/git-password", authenticated, not stored)
//
// A Redactor is the last line of defence on the way out: it masks secrets that
// are known in texts and streams that people will read.
package secret
