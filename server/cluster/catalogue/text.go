package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/internal/jsontext"
)

// Bounds of the text of one entity.
const (
	MaxText   = 1 << 20 // bytes
	maxDepth  = 64
	maxValues = 50_000
)

// Invalid is an error that says all that is wrong with a text or an entity.
type Invalid struct {
	Problems []Problem
}

// Error returns the problems, one sentence each.
func (e *Invalid) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == 10 {
			fmt.Fprintf(&b, "; and %d more", len(e.Problems)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// String returns "field: text".
func (p Problem) String() string {
	if p.Field == "" {
		return p.Text
	}
	return p.Field + ": " + p.Text
}

func invalid(field, format string, args ...any) *Invalid {
	return &Invalid{[]Problem{{Field: field, Text: fmt.Sprintf(format, args...)}}}
}

// Canonical returns the JSON that is kept of an entity: with its members sorted, without white space, without its
// version, which is kept beside it, and with those members that this program does not know. The text has to be a JSON
// object within the bounds, and may have only what PostgreSQL can keep.
func Canonical(text []byte) ([]byte, error) {
	members, err := object(text)
	if err != nil {
		return nil, err
	}
	delete(members, "version")
	out := make([]byte, 0, len(text))
	return appendObject(out, members), nil
}

// object checks the bounds of a text, and returns the members of the object that it has.
func object(text []byte) (map[string]json.RawMessage, error) {
	switch {
	case len(text) > MaxText:
		return nil, invalid("", "it has %d bytes, and may have %d", len(text), MaxText)
	case !utf8.Valid(text):
		return nil, invalid("", "it is not UTF-8 text")
	}
	if err := validJSON(text); err != nil {
		return nil, err
	}
	shape := jsontext.Measure(text)
	switch {
	case shape.Depth > maxDepth:
		return nil, invalid("", "objects and lists are nested %d deep, and may be %d", shape.Depth, maxDepth)
	case shape.Values > maxValues:
		return nil, invalid("", "it has %d values, and may have %d", shape.Values, maxValues)
	}
	members := jsontext.Members(text)
	if members == nil {
		return nil, invalid("", "it has to be a JSON object, as {\"name\": …}")
	}
	if p := unkeepable("", text); p != nil {
		return nil, &Invalid{[]Problem{*p}}
	}
	return members, nil
}

// validJSON says where a text stops being JSON.
func validJSON(text []byte) error {
	if json.Valid(text) {
		return nil
	}
	// Nesting is bounded by the decoder itself.
	var all json.RawMessage
	err := json.Unmarshal(text, &all)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := text[:min(int(syntax.Offset), len(text))]
		line := bytes.Count(before, []byte("\n")) + 1
		return invalid("", "it is not JSON: %s (line %d)", syntax, line)
	}
	return invalid("", "it is not JSON")
}

// unkeepable finds what PostgreSQL does not take in JSON: characters of number 0, halves of surrogate pairs, and
// numbers without measure.
func unkeepable(path string, raw json.RawMessage) *Problem {
	switch kindOf(raw) {
	case "object":
		members := jsontext.Members(raw)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if strings.ContainsAny(name, "\x00\uFFFD") {
				return &Problem{path, "the name of a member has a character that cannot be kept"}
			}
			if p := unkeepable(join(path, name), members[name]); p != nil {
				return p
			}
		}
	case "list":
		for i, one := range elements(raw) {
			if p := unkeepable(index(path, i), one); p != nil {
				return p
			}
		}
	case "text":
		s, ok := textOf(raw)
		if !ok || strings.ContainsAny(s, "\x00\uFFFD") {
			return &Problem{path, "the text has a character that cannot be kept, such as \\u0000"}
		}
	case "number":
		if f, err := strconv.ParseFloat(string(raw), 64); err != nil || f > 1e300 || f < -1e300 || len(raw) > 100 ||
			tooSmall(string(raw)) {
			return &Problem{path, "the number is too large or too long"}
		}
	}
	return nil
}

func tooSmall(number string) bool {
	_, exponent, found := strings.Cut(strings.ToLower(number), "e")
	if !found {
		return false
	}
	n, err := strconv.Atoi(exponent)
	return err != nil || n < -300 || n > 300
}

// kindOf names the kind of a JSON value for people.
func kindOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "list"
	case '"':
		return "text"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// textOf returns the string that a JSON value is.
func textOf(raw json.RawMessage) (s string, ok bool) {
	if s, ok = jsontext.String(raw); ok {
		return s, true
	}
	return s, kindOf(raw) == "text" && json.Unmarshal(raw, &s) == nil
}

// elements returns the elements of a list.
func elements(raw json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

func appendObject(out []byte, members map[string]json.RawMessage) []byte {
	out = append(out, '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsontext.AppendString(out, name)
		out = append(out, ':')
		out = appendValue(out, members[name])
	}
	return append(out, '}')
}

func appendValue(out []byte, raw json.RawMessage) []byte {
	switch kindOf(raw) {
	case "object":
		return appendObject(out, jsontext.Members(raw))
	case "list":
		out = append(out, '[')
		for i, one := range elements(raw) {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendValue(out, one)
		}
		return append(out, ']')
	case "text":
		if s, ok := textOf(raw); ok {
			return jsontext.AppendString(out, s)
		}
	}
	return append(out, raw...)
}

// sameJSON reports whether two JSON values mean the same.
func sameJSON(a, b json.RawMessage) bool {
	return bytes.Equal(appendValue(nil, a), appendValue(nil, b))
}

// join and index extend the path of a field.
func join(path, name string) string {
	if len(name) > 100 {
		name = name[:100] + "…"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
