package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

// proof reports whether a request with this body proves that its sender knows the secret. It takes the same time
// whether or not the secret is nearly right.
type proof func(body, secret []byte) bool

// HeaderSignature carries the signature of GitHub and of the forges that copied it.
const HeaderSignature = "X-Hub-Signature-256"

const signaturePrefix = "sha256="

// Sign returns the value of X-Hub-Signature-256 for a body.
func Sign(body, secret []byte) string {
	return signaturePrefix + hex.EncodeToString(sum(body, secret))
}

// sum returns the HMAC-SHA-256 of a body.
func sum(body, secret []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return mac.Sum(nil)
}

// parseSignature reads the value of a header that is a prefix and 64 hexadecimal digits.
func parseSignature(header, prefix, value string) ([]byte, error) {
	code, ok := strings.CutPrefix(value, prefix)
	if ok && len(code) == 2*sha256.Size {
		if signature, err := hex.DecodeString(code); err == nil {
			return signature, nil
		}
	}
	form := "64 hexadecimal digits"
	if prefix != "" {
		form = prefix + " and " + form
	}
	return nil, errors.New("the header " + header + " is malformed: it must be " + form)
}

// verifySignature reports whether a body was signed with a secret. No secret verifies nothing.
func verifySignature(signature, body, secret []byte) bool {
	return len(secret) > 0 && hmac.Equal(signature, sum(body, secret))
}

// signedBody reads the signature of the body from the first of these headers that is present.
func signedBody(h http.Header, prefix string, names ...string) (proof, error) {
	for _, name := range names {
		value := h.Get(name)
		if value == "" {
			continue
		}
		signature, err := parseSignature(name, prefix, value)
		return func(body, secret []byte) bool { return verifySignature(signature, body, secret) }, err
	}
	return nil, errors.New(
		"the request is not signed: set the environment's webhook secret in the settings of the forge's webhook",
	)
}

// sameText is the proof of a forge that sends the secret itself. Comparing hashes takes the same time whatever the
// length of the secret is.
func sameText(given string) proof {
	sum := sha256.Sum256([]byte(given))
	return func(_, secret []byte) bool {
		want := sha256.Sum256(secret)
		return len(secret) > 0 && subtle.ConstantTimeCompare(sum[:], want[:]) == 1
	}
}
