// Package partial decides what a version contains after a partial export: the version before it, with some resource
// sets replaced and some removed.
//
//	base     set a │ set b │ set c │ shared
//	change   set a'│  ───  │remove │ shared, as it was, and new ones
//	─────────────────────────────────────────
//	merged   set a'│ set b │       │ shared ∪ new
//
// A set in the change replaces the old one entirely. Resources in no set are shared: a change may add shared
// resources, but neither change nor remove them. Sets must be independent of each other, or none could be replaced
// without looking at the others; so a resource in a set requires only resources of the same set and shared ones. A
// change contains all that its resources require, also the shared resources.
package partial

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

const op = "partial.Merge"

// Base is the version that a partial export builds on.
type Base struct {
	Number    int
	Resources []intent.Resource
	Unknowns  []intent.Unknown
	Code      []intent.ResourceCode
	// UnmanagedAgents is that of the version's provenance.
	UnmanagedAgents []string
}

// Merge returns the whole version that a change makes of its base. A change that breaks a rule fails with
// fault.Invalid, and the message names the resource and the sets.
func Merge(base Base, change intent.NewVersion) (intent.NewVersion, error) {
	m := &merger{base: base, old: index(base.Resources), fresh: index(change.Resources), replaced: map[string]bool{}}
	for _, r := range change.Resources {
		if r.ResourceSet != "" {
			m.replaced[r.ResourceSet] = true
		}
	}
	for _, set := range change.Partial.Removed {
		if m.replaced[set] {
			return change, invalid("the resource set %s is to be removed and is in the export", set)
		}
	}
	for _, set := range change.Partial.Removed {
		m.replaced[set] = true
	}
	for _, check := range []func() error{m.independent, m.stay} {
		if err := check(); err != nil {
			return change, err
		}
	}
	resources, err := m.resources(change.Resources)
	if err != nil {
		return change, err
	}
	code, err := m.code(change, resources)
	if err != nil {
		return change, err
	}
	merged := change
	merged.Resources, merged.Code = resources, code
	merged.Unknowns = m.unknowns(change.Unknowns)
	merged.Provenance.PartialBase = base.Number
	// A partial model need not have the configuration of agents of other sets.
	agents := slices.Concat(base.UnmanagedAgents, change.Provenance.UnmanagedAgents)
	slices.Sort(agents)
	merged.Provenance.UnmanagedAgents = slices.Compact(agents)
	return merged, nil
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(op, fault.Invalid, fmt.Sprintf(format, args...)).Hint("compile the whole model instead")
}

func index(resources []intent.Resource) map[intent.ResourceID]*intent.Resource {
	out := make(map[intent.ResourceID]*intent.Resource, len(resources))
	for i := range resources {
		out[resources[i].ID] = &resources[i]
	}
	return out
}

type merger struct {
	base     Base
	old      map[intent.ResourceID]*intent.Resource
	fresh    map[intent.ResourceID]*intent.Resource
	replaced map[string]bool // sets that the change replaces or removes
}

// shown returns the name of a set for messages.
func shown(set string) string {
	if set == "" {
		return "the shared resources"
	}
	return "the resource set " + set
}

// independent fails when a resource requires one of another set, in the base or in the change, or one that is not
// there. Without the latter, a shared resource of the change could require what the merged version does not have.
func (m *merger) independent() error {
	for _, list := range []struct {
		resources map[intent.ResourceID]*intent.Resource
		what      string
	}{{m.old, fmt.Sprintf("version %d cannot be changed set by set: ", m.base.Number)}, {m.fresh, ""}} {
		for _, r := range sorted(list.resources) {
			for _, id := range r.Requires {
				required := list.resources[id]
				if required != nil && (r.ResourceSet == "" || required.ResourceSet == "" ||
					required.ResourceSet == r.ResourceSet) {
					continue
				}
				where := "is not part of this export"
				if required != nil {
					where = "is in " + shown(required.ResourceSet)
				}
				return invalid("%sthe resource %s in %s requires %s, which %s", list.what, r.ID, shown(r.ResourceSet),
					id, where)
			}
		}
	}
	return nil
}

// stay fails when a resource changes its set, unless both sets are replaced together.
func (m *merger) stay() error {
	for _, r := range sorted(m.fresh) {
		if old := m.old[r.ID]; old != nil && old.ResourceSet != r.ResourceSet && !m.replaced[old.ResourceSet] {
			return invalid(
				"the resource %s would move from %s to %s; a partial export moves resources only between sets that "+
					"are exported together",
				r.ID,
				shown(old.ResourceSet),
				shown(r.ResourceSet),
			)
		}
	}
	return nil
}

func (m *merger) resources(change []intent.Resource) ([]intent.Resource, error) {
	var out []intent.Resource
	for _, r := range change {
		old := m.old[r.ID]
		if r.ResourceSet == "" && old != nil && old.ResourceSet == "" {
			if !same(old.Attributes, r.Attributes) {
				return nil, invalid("the resource %s is in no resource set, and a partial export would change it", r.ID)
			}
			r = require(r, append(m.remaining(*old), r.Requires...))
		}
		out = append(out, r)
	}
	for _, old := range m.base.Resources {
		switch {
		case m.fresh[old.ID] != nil || m.replaced[old.ResourceSet]:
		case old.ResourceSet == "":
			out = append(out, require(old, m.remaining(old)))
		default:
			out = append(out, old)
		}
	}
	slices.SortFunc(out, func(a, b intent.Resource) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out, nil
}

// remaining returns the requirements of a shared resource of the base that the change does not decide.
func (m *merger) remaining(old intent.Resource) []intent.ResourceID {
	return slices.DeleteFunc(slices.Clone(old.Requires), func(id intent.ResourceID) bool {
		required := m.old[id]
		return required != nil && m.replaced[required.ResourceSet]
	})
}

// require returns a resource with other requirements, and the hash that follows from them.
func require(r intent.Resource, requires []intent.ResourceID) intent.Resource {
	slices.SortFunc(requires, func(a, b intent.ResourceID) int { return strings.Compare(a.String(), b.String()) })
	requires = slices.Compact(requires)
	if slices.Equal(requires, r.Requires) {
		return r
	}
	r.Requires = requires
	r.AttributeHash = Hash(r.Attributes, requires)
	return r
}

// Hash is the attribute hash of a resource: hex SHA-256 over the attributes, a
// newline and the requirements as JSON.
func Hash(attributes json.RawMessage, requires []intent.ResourceID) string {
	if requires == nil {
		requires = []intent.ResourceID{}
	}
	b := bytes.NewBuffer(slices.Concat(attributes, []byte("\n")))
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(requires); err != nil {
		panic("partial: ids are plain text: " + err.Error())
	}
	sum := sha256.Sum256(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	return hex.EncodeToString(sum[:])
}

// same reports whether two JSON texts have the same meaning.
func same(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return decode(a, &x) && decode(b, &y) && reflect.DeepEqual(x, y)
}

func decode(text json.RawMessage, to *any) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(to) == nil
}

// unknowns joins the unknown values of the change with those of the base that the change does not cover.
func (m *merger) unknowns(change []intent.Unknown) []intent.Unknown {
	out := slices.Clone(change)
	for _, u := range m.base.Unknowns {
		if old := m.old[u.Resource]; m.fresh[u.Resource] != nil || old != nil && m.replaced[old.ResourceSet] {
			continue
		}
		if !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

// code joins what executors load. A type has one code in a version, so a change may bring other code only when it
// replaces all resources of the type.
func (m *merger) code(change intent.NewVersion, merged []intent.Resource) ([]intent.ResourceCode, error) {
	used := map[string]bool{} // types of resources that stay as they are
	for _, r := range merged {
		if m.fresh[r.ID] == nil {
			used[r.ID.Type] = true
		}
	}
	byType := map[string]intent.ResourceCode{}
	for _, c := range m.base.Code {
		if used[c.Type] {
			byType[c.Type] = c
		}
	}
	for _, c := range change.Code {
		if old, kept := byType[c.Type]; kept && !reflect.DeepEqual(old, c) && !change.Partial.AllowCode {
			return nil, invalid("the code of %s changed, and some resources of that type are not in this export",
				c.Type)
		}
		byType[c.Type] = c
	}
	out := make([]intent.ResourceCode, 0, len(byType))
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		out = append(out, byType[name])
	}
	return out, nil
}

func sorted(resources map[intent.ResourceID]*intent.Resource) []*intent.Resource {
	out := slices.Collect(maps.Values(resources))
	slices.SortFunc(out, func(a, b *intent.Resource) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out
}
