package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
)

// The beginnings of tokens that are no JWTs.
const (
	personalPrefix = "ordain_pat_"
	jobPrefix      = "ordain_job_"
)

// A token is a prefix, 26 random letters and digits (130 bits), and a checksum of 7, so that a scanner that looks for
// secrets can tell a token from a text that only looks like one.
const (
	randomLength   = 26
	checksumLength = 7
)

func newText(prefix string) string {
	text := prefix + rand.Text()
	return text + checksum(text)
}

// wellFormed reports whether a text can be a token with this prefix. What is not well formed needs no look into the
// store.
func wellFormed(text, prefix string) bool {
	if len(text) != len(prefix)+randomLength+checksumLength {
		return false
	}
	body, sum := text[:len(text)-checksumLength], text[len(text)-checksumLength:]
	return subtle.ConstantTimeCompare([]byte(checksum(body)), []byte(sum)) == 1
}

func checksum(text string) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text)))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum)
}

// digestOf returns the SHA-256 of a token. Tokens are looked up by it, so that the time of a comparison says nothing of
// the token.
func digestOf(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

func hashOf(text string) string {
	d := digestOf(text)
	return hex.EncodeToString(d[:])
}
