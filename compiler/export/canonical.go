package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ordain.dev/ordain/internal/intent"
)

// canonical rewrites JSON so that equal values have equal bytes: keys sorted,
// no blanks, one way to write each string. Numbers stay as they are written.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > 0 && raw[0] != '{' && raw[0] != '[' && raw[0] != '"' {
		return raw, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	b := &bytes.Buffer{}
	if err := writeCanonical(b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeCanonical(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case json.Number:
		b.WriteString(v.String())
	case string:
		writeText(b, v)
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeCanonical(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, key)
			b.WriteByte(':')
			if err := writeCanonical(b, v[key]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		return fmt.Errorf("export: %T in JSON", v)
	}
	return nil
}

// writeText writes a string as JSON without the escapes for HTML.
func writeText(b *bytes.Buffer, s string) {
	if isSimple(s) {
		b.WriteByte('"')
		b.WriteString(s)
		b.WriteByte('"')
		return
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)         // a string always can be written
	b.Truncate(b.Len() - 1) // the newline
}

// isSimple reports whether JSON needs no escapes for a string.
func isSimple(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// object writes fields whose values are canonical already.
func object(fields map[string]json.RawMessage) json.RawMessage {
	b := &bytes.Buffer{}
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			b.WriteByte(',')
		}
		writeText(b, name)
		b.WriteByte(':')
		b.Write(fields[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// attributeHash is the hash that tells whether a resource has to be deployed again.
func attributeHash(attributes json.RawMessage, requires []intent.ResourceID) string {
	b := &bytes.Buffer{}
	b.Write(attributes)
	b.WriteString("\n[")
	for i, id := range requires {
		if i > 0 {
			b.WriteByte(',')
		}
		writeText(b, id.String())
	}
	b.WriteByte(']')
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:])
}
