package push

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/partial"
)

// undefinedValue is what an exporter writes for a value that is not known yet.
const undefinedValue = `"<<undefined>>"`

// parseID reads the id of a resource, with a version or without.
func parseID(text string) (intent.ResourceID, int, error) {
	if len(text) > maxWords || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\n\r") {
		return intent.ResourceID{}, 0, invalid("the resource id %.100q is too long or has control characters", text)
	}
	id, version, err := intent.ParseResourceVersionID(text)
	if err != nil {
		return id, 0, invalid("%v", err)
	}
	return id, version, nil
}

// seal makes a resource of attributes, which must be a JSON object without id, version and requires, and decides its
// hash.
func seal(id intent.ResourceID, attributes map[string]json.RawMessage, requires []intent.ResourceID) (
	intent.Resource, error,
) {
	r := intent.Resource{ID: id}
	text, err := export.Canonical(attributes)
	if err != nil {
		return r, invalid("the attributes of %s cannot be read: %v", id, err)
	}
	if len(text) > intent.MaxAttributes {
		return r, invalid("the attributes of %s are larger than %d MiB", id, intent.MaxAttributes>>20)
	}
	if bytes.Contains(text, []byte(`\u0000`)) {
		return r, invalid("an attribute of %s has the character NUL, which cannot be stored", id)
	}
	slices.SortFunc(requires, intent.ResourceID.Compare)
	r.Requires = slices.Compact(requires)
	slices.SortFunc(r.Requires, func(a, b intent.ResourceID) int { return strings.Compare(a.String(), b.String()) })
	r.Attributes, r.AttributeHash = text, partial.Hash(text, r.Requires)
	r.SendEvent, r.ReceiveEvents = isTrue(attributes["send_event"]), isTrue(attributes["receive_events"])
	r.Purged = isTrue(attributes["purged"])
	for name, value := range attributes {
		if string(bytes.TrimSpace(value)) == undefinedValue {
			r.Undefined = append(r.Undefined, name)
		}
	}
	slices.Sort(r.Undefined)
	return r, nil
}

func isTrue(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "true" }

// parseResource reads a resource as inmanta's exporter writes it: one object with id, requires and attributes. Its id
// has the version number, which must be want.
func parseResource(raw json.RawMessage, want int) (r intent.Resource, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil || all == nil {
		return r, invalid("a resource must be an object, and is %.60q", raw)
	}
	var text string
	if err := json.Unmarshal(all["id"], &text); err != nil {
		return r, invalid("a resource has no id that is a text")
	}
	id, version, err := parseID(text)
	if err != nil {
		return r, err
	}
	if version != want && want == 0 {
		return r, invalid("Resources for partial export should not contain version information: %s", text)
	}
	if version != want && version != 0 {
		return r, invalid("the resource %s is of another version than %d", text, want)
	}
	var requires []string
	if raw, has := all["requires"]; has {
		if err := json.Unmarshal(raw, &requires); err != nil {
			return r, invalid("requires of %s must be a list of resource ids", id)
		}
	}
	ids := make([]intent.ResourceID, 0, len(requires))
	for _, text := range requires {
		required, _, err := parseID(text)
		if err != nil {
			return r, err
		}
		ids = append(ids, required)
	}
	for _, name := range []string{"id", "requires", "version"} {
		delete(all, name)
	}
	return seal(id, all, ids)
}
