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

// proof verifies a request against a secret, in constant time.
type proof func(body, secret []byte) bool

// HeaderSignature carries the signature of GitHub and of those that copied it.
const HeaderSignature = "X-Hub-Signature-256"

const signaturePrefix = "sha256="

// Sign gives the value of X-Hub-Signature-256 for a body.
func Sign(body, secret []byte) string {
	return signaturePrefix + hex.EncodeToString(sum(body, secret))
}

func sum(body, secret []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return mac.Sum(nil)
}

// parseSignature reads a signature: 64 hexadecimal digits after a prefix.
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

// verifySignature compares in constant time.
func verifySignature(signature, body, secret []byte) bool {
	return len(secret) > 0 && hmac.Equal(signature, sum(body, secret))
}

// signedBody reads the signature of the whole body from the first of these headers that is there.
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

// sameText compares a secret that is sent as it is, in constant time whatever its length.
func sameText(given string) proof {
	sum := sha256.Sum256([]byte(given))
	return func(_, secret []byte) bool {
		want := sha256.Sum256(secret)
		return len(secret) > 0 && subtle.ConstantTimeCompare(sum[:], want[:]) == 1
	}
}
