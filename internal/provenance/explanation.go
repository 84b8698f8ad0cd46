package provenance

import "encoding/json"

// Explanation explains the values of a resource, or of an instance of a model.
type Explanation struct {
	Subject    string      `json:"subject"` // id of the resource, or mod::Host[name=web1]
	Version    int         `json:"version,omitempty"`
	Commit     string      `json:"commit,omitempty"` // that the version was compiled from
	Attributes []Attribute `json:"attributes"`
}

// Attribute is a field with its value.
type Attribute struct {
	Field
	Value json.RawMessage `json:"value,omitempty"`
}

// WithValues adds values to the fields.
func WithValues(fields []Field, values map[string]json.RawMessage) []Attribute {
	out := make([]Attribute, len(fields))
	for i, f := range fields {
		out[i] = Attribute{Field: f, Value: values[f.Name]}
	}
	return out
}
