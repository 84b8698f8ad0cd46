package client

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// maxPages bounds how far a list of comments is followed.
const maxPages = 10

// notOurs tells that a comment is gone, or somebody else's with our marker.
func notOurs(code int) bool {
	return code == http.StatusNotFound || code == http.StatusGone || code == http.StatusForbidden
}

func short(commit string) string { return commit[:min(7, len(commit))] }

// limit cuts our own text to what a forge takes.
func limit(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// optional is nil for an empty text.
func optional(s string) *string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return &s
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
