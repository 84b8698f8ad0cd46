// Package jsontext appends JSON to bytes without reflection, for documents
// that are too large to be built as values first. What it writes for strings
// is what encoding/json writes without escapes for HTML.
package jsontext

import (
	"bytes"
	"encoding/json"
)

// AppendString appends a string with its quotes.
func AppendString[T string | []byte](b []byte, s T) []byte {
	from := len(b)
	b = append(b, '"')
	done := 0
	for i := range len(s) {
		escape := byte(0)
		switch c := s[i]; {
		case c == '"' || c == '\\':
			escape = c
		case c == '\n':
			escape = 'n'
		case c == '\t':
			escape = 't'
		case c == '\r':
			escape = 'r'
		case c < 0x20 || c >= 0x7f:
			return appendAny(b[:from], string(s))
		default:
			continue
		}
		b = append(append(b, s[done:i]...), '\\', escape)
		done = i + 1
	}
	return append(append(b, s[done:]...), '"')
}

// appendAny appends a string with whatever characters.
func appendAny(b []byte, s string) []byte {
	var escaped bytes.Buffer
	e := json.NewEncoder(&escaped)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded, into a buffer
	return append(b, escaped.Bytes()[:escaped.Len()-1]...)
}
