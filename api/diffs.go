package api

import (
	"bytes"
	"encoding/json"
	"strconv"

	"ordain.dev/ordain/internal/intent"
)

func diffsOf(diffs []intent.ResourceDiff) []any {
	out := []any{}
	for _, d := range diffs {
		attributes := map[string]any{}
		for name, change := range d.Attributes {
			attributes[name] = map[string]any{
				"from_value": change.Current, "to_value": change.Desired,
				"from_value_compare": asText(change.Current), "to_value_compare": asText(change.Desired),
			}
		}
		out = append(out, map[string]any{"resource_id": d.ID, "status": d.Kind, "attributes": attributes})
	}
	return out
}

// asText gives a value as text that a diff can be drawn from: a text as
// it is, nothing as nothing, collections as sorted, indented JSON, all else as
// Python prints it.
func asText(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case bool:
		if x {
			return "True"
		}
		return "False"
	case int:
		return strconv.Itoa(x)
	case float64:
		if x == float64(int64(x)) {
			return strconv.FormatInt(int64(x), 10)
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b) // sorts the keys of maps
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(v); err != nil {
		return ""
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}
