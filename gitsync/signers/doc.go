// Package signers checks signatures against a set of people who may sign.
//
//	text of a setting ──Parse──▶ Set ──Verify(payload, signature, time)──▶ Signer or error
//
// A Set is made from lines in the format of OpenSSH's allowed_signers file
// (ssh-keygen(1), ALLOWED SIGNERS) and from armored OpenPGP public keys
// (RFC 9580), in any order. Signatures are those of Git: SSH signatures in the
// namespace "git", and detached OpenPGP signatures. Everything except the text of the
// Set comes from strangers.
package signers
