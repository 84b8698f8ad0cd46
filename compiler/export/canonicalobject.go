package export

import (
	"encoding/json"
	"maps"
	"slices"

	"ordain.dev/ordain/internal/jsontext"
)

// Canonical returns the one way to write an object, as in Resource.Attributes.
func Canonical(object map[string]json.RawMessage) (json.RawMessage, error) {
	out := json.RawMessage{'{'}
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			out = append(out, ',')
		}
		value, err := canonical(object[name])
		if err != nil {
			return nil, err
		}
		out = append(jsontext.AppendString(out, name), ':')
		out = append(out, value...)
	}
	return append(out, '}'), nil
}
