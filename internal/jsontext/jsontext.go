// Package jsontext appends JSON strings to bytes, for documents that are too large to be built as
// values first. It writes strings as encoding/json does without escapes for HTML.
package jsontext

import (
	"bytes"
	"encoding/json"
	"slices"
)

// AppendString appends a string with its quotes.
func AppendString[T string | []byte](b []byte, s T) []byte {
	from := len(b)
	b = append(slices.Grow(b, len(s)+2), '"')
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

// String parses a JSON string that is all ASCII without escapes. ok is false for any other text.
func String(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	plain := true
	for _, c := range raw {
		if c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		return string(raw), true
	}
	read := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c < 0x20 || c >= 0x7f || c == '"':
			return "", false
		case c == '\\':
			if i++; i == len(raw) {
				return "", false
			}
			switch raw[i] {
			case '"', '\\', '/':
				c = raw[i]
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			default:
				return "", false
			}
		}
		read = append(read, c)
	}
	return string(read), true
}

// appendAny appends a string with any characters.
func appendAny(b []byte, s string) []byte {
	var escaped bytes.Buffer
	e := json.NewEncoder(&escaped)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // cannot fail for a string and a buffer
	return append(b, escaped.Bytes()[:escaped.Len()-1]...)
}
