package api

import (
	"bytes"
	"encoding/json"
	"strconv"

	"ordain.dev/ordain/internal/intent"
)

// resourceDiff is how a resource differs between two versions, or from what was found.
type resourceDiff struct {
	ResourceID string                   `json:"resource_id"`
	Status     intent.DiffKind          `json:"status"`
	Attributes map[string]attributeDiff `json:"attributes"`
}

// attributeDiff holds both values, and both as texts that a diff can be drawn from.
type attributeDiff struct {
	FromValue        any    `json:"from_value"`
	ToValue          any    `json:"to_value"`
	FromValueCompare string `json:"from_value_compare"`
	ToValueCompare   string `json:"to_value_compare"`
	// LineDiff shows what changes by line, in the values or in the contents whose hashes they are.
	LineDiff string `json:"line_diff,omitempty"`
}

func diffOf(d intent.ResourceDiff) resourceDiff {
	attributes := map[string]attributeDiff{}
	for name, change := range d.Attributes {
		attributes[name] = attributeDiff{
			FromValue: change.Current, ToValue: change.Desired,
			FromValueCompare: asText(change.Current), ToValueCompare: asText(change.Desired),
		}
	}
	return resourceDiff{ResourceID: d.ID.String(), Status: d.Kind, Attributes: attributes}
}

// asText returns a value as a text that a diff can be drawn from: a text as it is, null as nothing, collections as
// sorted, indented JSON, and all else as Python prints it.
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
