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
	"ordain.dev/ordain/internal/jsontext"
)

// canonical rewrites JSON so that equal values have equal bytes: keys are sorted, there are no
// blanks, and there is one way to write each string. Numbers stay as they are written.
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

// writeText writes a string as JSON, without escapes for HTML.
func writeText(b *bytes.Buffer, s string) { b.Write(jsontext.AppendString(b.AvailableBuffer(), s)) }

// appendObject writes the fields of a resource; their values are canonical already.
func (it *item) appendObject(b []byte) []byte {
	size := 2
	for n, raw := range it.values {
		size += len(it.kind.names[n]) + len(raw) + 4
	}
	b = append(slices.Grow(b, size), '{')
	first := true
	for n, name := range it.kind.names {
		if it.values[n] == nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(jsontext.AppendString(b, name), ':')
		b = append(b, it.values[n]...)
	}
	return append(b, '}')
}

// attributeHash is the hash by which the server sees whether a resource has changed.
func attributeHash(attributes json.RawMessage, requires []intent.ResourceID) string {
	b := append(slices.Clone(attributes), "\n["...)
	for i, id := range requires {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(b, id.String())
	}
	b = append(b, ']')
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
