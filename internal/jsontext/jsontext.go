// Package jsontext appends JSON to bytes without reflection, for documents
// that are too large to be built as values first. What it writes for strings
// is what encoding/json writes without escapes for HTML.
package jsontext

import (
	"bytes"
	"encoding/json"
)

// AppendString appends a string with its quotes.
func AppendString(b []byte, s string) []byte {
	if Plain(s) {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	var escaped bytes.Buffer
	e := json.NewEncoder(&escaped)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded, into a buffer
	return append(b, escaped.Bytes()[:escaped.Len()-1]...)
}

// Plain reports whether JSON needs no escapes for a string.
func Plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
