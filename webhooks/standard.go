package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of Standard Webhooks (standardwebhooks.com).
const (
	HeaderStandardID        = "Webhook-Id"
	HeaderStandardTime      = "Webhook-Timestamp"
	HeaderStandardSignature = "Webhook-Signature"
)

// standardTolerance is how far the time of a webhook may be from ours.
const standardTolerance = 5 * time.Minute

// maxSignatures bounds how many signatures of one request are tried.
const maxSignatures = 16

// standard is the generic dialect's document in a request of Standard Webhooks, which sign the id, the time and
// the body together.
func standard(now func() time.Time) dialect {
	return dialect{
		name:  "standard",
		proof: func(h http.Header) (proof, error) { return standardProof(h, now()) },
		parse: func(h http.Header, body []byte) (Event, string, error) {
			e, err := parseGeneric(body)
			return e, h.Get(HeaderStandardID), err
		},
	}
}

func standardProof(h http.Header, now time.Time) (proof, error) {
	id, stamp, list := h.Get(HeaderStandardID), h.Get(HeaderStandardTime), h.Get(HeaderStandardSignature)
	if id == "" || stamp == "" || list == "" {
		return nil, fmt.Errorf("the request is not signed: it needs the headers %s, %s and %s", HeaderStandardID,
			HeaderStandardTime, HeaderStandardSignature)
	}
	if len(id) > maxKey || strings.ContainsRune(id, '.') {
		return nil, errors.New("the header " + HeaderStandardID + " is malformed")
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return nil, errors.New("the header " + HeaderStandardTime + " is malformed: it must be seconds since 1970")
	}
	if away := now.Sub(time.Unix(seconds, 0)).Abs(); away > standardTolerance {
		return nil, fmt.Errorf("the request was signed %s away from now; only %s are taken. Is a clock wrong?",
			away.Round(time.Second), standardTolerance)
	}
	signatures, err := standardSignatures(list)
	if err != nil {
		return nil, err
	}
	signed := id + "." + stamp + "."
	return func(body, secret []byte) bool {
		if len(secret) == 0 {
			return false
		}
		mac := hmac.New(sha256.New, standardKey(secret))
		mac.Write([]byte(signed))
		mac.Write(body)
		want, ok := mac.Sum(nil), false
		for _, signature := range signatures {
			ok = hmac.Equal(signature, want) || ok
		}
		return ok
	}, nil
}

// standardSignatures reads a list of signatures, separated by blanks, each of the form v1,BASE64. It skips
// signatures of other versions.
func standardSignatures(list string) ([][]byte, error) {
	var out [][]byte
	for _, one := range strings.Fields(list) {
		code, ok := strings.CutPrefix(one, "v1,")
		if !ok || len(out) == maxSignatures {
			continue
		}
		if signature, err := base64.StdEncoding.DecodeString(code); err == nil && len(signature) == sha256.Size {
			out = append(out, signature)
		}
	}
	if len(out) == 0 {
		return nil, errors.New(
			"the header " + HeaderStandardSignature + " is malformed: it must be v1, a comma and 32 bytes in base64",
		)
	}
	return out, nil
}

// standardKey returns the key that a secret stands for: after whsec_, the key is in base64.
func standardKey(secret []byte) []byte {
	if code, ok := strings.CutPrefix(string(secret), "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(code); err == nil && len(key) > 0 {
			return key
		}
	}
	return secret
}
