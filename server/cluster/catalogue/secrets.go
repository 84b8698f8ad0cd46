package catalogue

import (
	"encoding/json"
	"maps"
	"slices"
)

// Hidden stands in a provider where a secret is set. Who writes it there keeps the secret.
const Hidden = "********"

// IsHidden reports whether a value says that a secret is set.
func IsHidden(raw json.RawMessage) bool {
	s, ok := textOf(raw)
	return ok && s == Hidden
}

// SecretFields returns the values of a provider that are secret, by the fields of its type, sorted. Without the type,
// all are.
func SecretFields(t *PluginType, p *Provider) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.Provisioner)) {
		if !given(p.Provisioner[name]) {
			continue
		}
		if t == nil || t.Parameters.Admin.Fields[name].Secret() || IsHidden(p.Provisioner[name]) {
			out = append(out, name)
		}
	}
	return out
}

// WithValues returns the canonical JSON of a provider in which fields have these values.
func WithValues(text []byte, values map[string]json.RawMessage) ([]byte, error) {
	members, err := object(text)
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return appendObject(nil, members), nil
	}
	fields := value{raw: members["provisioner"], to: &problems{}}.raws()
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	maps.Copy(fields, values)
	members["provisioner"] = appendObject(nil, fields)
	return appendObject(nil, members), nil
}

// WithVersion returns the canonical JSON of an entity with its version.
func WithVersion(text []byte, version int) ([]byte, error) {
	members, err := object(text)
	if err != nil {
		return nil, err
	}
	delete(members, "version")
	if version > 0 {
		members["version"], _ = json.Marshal(version)
	}
	return appendObject(nil, members), nil
}
