package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cleanText returns a text that PostgreSQL accepts: valid UTF-8 without zero bytes.
func cleanText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// cleanJSON returns JSON that PostgreSQL can look into: escapes of a zero character and of half a surrogate pair
// become U+FFFD.
func cleanJSON(raw []byte) ([]byte, error) {
	if !json.Valid(raw) {
		return nil, fmt.Errorf("not JSON: %.80q", raw)
	}
	raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	if !bytes.Contains(raw, []byte(`\u`)) {
		return raw, nil
	}
	const stand = `\ufffd`
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		if raw[i+1] != 'u' {
			out = append(out, raw[i], raw[i+1])
			i += 2
			continue
		}
		unit := codeUnit(raw[i:])
		switch {
		case unit == 0, isLow(unit):
			out = append(out, stand...)
		case isHigh(unit):
			if !isLow(codeUnit(raw[i+6:])) {
				out = append(out, stand...)
				break
			}
			out = append(out, raw[i:i+12]...)
			i += 6
		default:
			out = append(out, raw[i:i+6]...)
		}
		i += 6
	}
	return out, nil
}

// codeUnit reads \uXXXX at the beginning of b; 0 when there is none.
func codeUnit(b []byte) uint64 {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return n
}

func isHigh(unit uint64) bool { return unit >= 0xD800 && unit < 0xDC00 }
func isLow(unit uint64) bool  { return unit >= 0xDC00 && unit < 0xE000 }

// toJSON encodes a value that surely can be: plain structs, maps and slices.
func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("store: plain data cannot be encoded: " + err.Error())
	}
	return string(b)
}

// toCleanJSON is toJSON for text from outside. Of what cleanJSON replaces, encoding/json writes only zero characters.
func toCleanJSON(v any) string {
	text := toJSON(v)
	if !strings.Contains(text, `\u0000`) {
		return text
	}
	clean, err := cleanJSON([]byte(text))
	if err != nil {
		panic("store: encoding/json wrote invalid JSON: " + err.Error())
	}
	return string(clean)
}

// fromJSON decodes a column that this package wrote.
func fromJSON[T any](raw []byte) (T, error) {
	var v T
	if len(raw) == 0 {
		return v, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return v, fmt.Errorf("a JSON column: %w", err)
	}
	return v, nil
}

// maybeJSON is fromJSON for a column that may be NULL.
func maybeJSON[T any](raw []byte) (*T, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := fromJSON[T](raw)
	return &v, err
}

// rawJSON is a JSON column that holds a document as it came; NULL when it is empty.
func rawJSON(raw json.RawMessage) *string {
	if len(raw) == 0 {
		return nil
	}
	s := string(raw)
	return &s
}

// micro truncates a time to the precision that the database keeps.
func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
