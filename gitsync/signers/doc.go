// Package signers knows who may sign, and tells whether one of them signed.
//
//	text of a setting ──Parse──▶ Set ──Verify(payload, signature, time)──▶ Signer, or why not
//
// A Set is made from lines in the format of OpenSSH's allowed_signers file
// (ssh-keygen(1), ALLOWED SIGNERS) and from armored OpenPGP public keys
// (RFC 9580), in any order. Signatures are those of Git: SSH signatures in the
// namespace "git", and detached OpenPGP signatures. All input but the Set's text
// is what a stranger pushed.
package signers
