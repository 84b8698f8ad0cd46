package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxParents is how many parents a template may have above it.
const maxParents = 20

// Resolve returns a template with what its parents and its includes say merged into it.
func (c *Catalogue) Resolve(name string) (*Template, error) {
	t, ok := c.Templates[name]
	if !ok {
		return nil, invalid("", "there is no cluster template %.100q", name)
	}
	return c.ResolveTemplate(t)
}

// ResolveTemplate is Resolve of a template that need not be in the catalogue. The error is an *Invalid.
//
//	parent, resolved ◀── includes, in their order ◀── the template itself
//
// What comes later wins: texts that are not blank, top-level keys of the configuration, constraints of services. Lists
// and sets are united. A key that an immutable partial template has written must not change after that.
func (c *Catalogue) ResolveTemplate(t *Template) (*Template, error) {
	m := merger{c: c, self: t, fixed: map[string]string{}}
	out, err := m.template(t, nil)
	if err != nil {
		return nil, err
	}
	out.Head = t.Head
	return out, nil
}

type merger struct {
	c     *Catalogue
	self  *Template         // takes the place of another one of its name in the catalogue
	fixed map[string]string // the immutable partial template that wrote a key
}

func (m *merger) template(t *Template, children []string) (*Template, error) {
	if i := slices.Index(children, t.Name); i >= 0 {
		var b strings.Builder
		fmt.Fprintf(&b, "the template %s has the parent %s", children[i], append(children, t.Name)[i+1])
		for _, next := range append(children, t.Name)[i+2:] {
			fmt.Fprintf(&b, ", which has the parent %s", next)
		}
		return nil, invalid("parent.name", "parents go round in a circle: %s", &b)
	}
	if children = append(children, t.Name); len(children) > maxParents {
		return nil, invalid("parent.name", "the template %s has more than %d parents above it", children[0], maxParents)
	}
	out := &Template{}
	if t.Parent != nil {
		parent, ok := m.c.Templates[t.Parent.Name]
		if t.Parent.Name == m.self.Name {
			parent, ok = m.self, true
		}
		if !ok {
			return nil, invalid("parent.name", "there is no cluster template %.100s, the parent of %s",
				t.Parent.Name, t.Name)
		}
		var err error
		if out, err = m.template(parent, children); err != nil {
			return nil, err
		}
	}
	for i, include := range t.Includes {
		p, ok := m.c.Partials[include.Name]
		if !ok {
			return nil, invalid(index("includes", i)+".name", "there is no partial template %.100s, which %s includes",
				include.Name, t.Name)
		}
		mergeCompatibility(&out.Compatibility, p.Compatibility)
		immutable := ""
		if p.Immutable {
			immutable = p.Name
		}
		if err := m.defaults(&out.Defaults, p.Defaults, "the partial template "+p.Name, immutable); err != nil {
			return nil, err
		}
	}
	mergeCompatibility(&out.Compatibility, t.Compatibility)
	if err := m.defaults(&out.Defaults, t.Defaults, "the template "+t.Name, ""); err != nil {
		return nil, err
	}
	mergeConstraints(&out.Constraints, t.Constraints)
	mergeLease(&out.Administration.Lease, t)
	out.Links = mergeLinks(out.Links, t.Links)
	mergeHead(&out.Head, t.Head)
	out.Parent, out.Includes, out.leaseGiven = nil, nil, nil
	return out, nil
}

// defaults merges defaults of by, which is an immutable partial template if immutable names it.
func (m *merger) defaults(into *Defaults, from Defaults, by, immutable string) error {
	into.Services = union(into.Services, from.Services)
	override(&into.Provider, from.Provider)
	override(&into.HardwareType, from.HardwareType)
	override(&into.ImageType, from.ImageType)
	override(&into.DNSSuffix, from.DNSSuffix)
	var wrong problems
	for _, key := range slices.Sorted(maps.Keys(from.Config)) {
		field := join("defaults.config", key)
		if writer, ok := m.fixed[key]; ok && !sameJSON(into.Config[key], from.Config[key]) {
			wrong.add(field, "%s changes %.100q, which the immutable partial template %s sets", by, key, writer)
			continue
		}
		if into.Config == nil {
			into.Config = map[string]json.RawMessage{}
		}
		into.Config[key] = from.Config[key]
		if _, ok := m.fixed[key]; !ok && immutable != "" {
			m.fixed[key] = immutable
		}
	}
	if len(wrong) > 0 {
		return &Invalid{wrong}
	}
	return nil
}

func mergeHead(into *Head, from Head) {
	into.Name, into.Version = from.Name, from.Version
	override(&into.Label, from.Label)
	override(&into.Description, from.Description)
	override(&into.Icon, from.Icon)
}

func mergeCompatibility(into *Compatibility, from Compatibility) {
	into.HardwareTypes = union(into.HardwareTypes, from.HardwareTypes)
	into.ImageTypes = union(into.ImageTypes, from.ImageTypes)
	into.Services = union(into.Services, from.Services)
}

func mergeConstraints(into *Constraints, from Constraints) {
	if from.Size.Min != 0 {
		into.Size.Min = from.Size.Min
	}
	if from.Size.Max != 0 {
		into.Size.Max = from.Size.Max
	}
	into.Layout.MustCoexist = unionOfSets(into.Layout.MustCoexist, from.Layout.MustCoexist)
	into.Layout.CantCoexist = unionOfSets(into.Layout.CantCoexist, from.Layout.CantCoexist)
	for name, limit := range from.Services {
		if into.Services == nil {
			into.Services = map[string]ServiceConstraint{}
		}
		into.Services[name] = limit
	}
}

func mergeLease(into *Lease, from *Template) {
	lease := from.Administration.Lease
	for _, one := range []struct {
		name string
		into *Duration
		from Duration
	}{{"initial", &into.Initial, lease.Initial}, {"max", &into.Max, lease.Max}, {"step", &into.Step, lease.Step}} {
		if one.from != 0 || slices.Contains(from.leaseGiven, one.name) {
			*one.into = one.from
		}
	}
}

// mergeLinks adds links; one with the label of an earlier link takes its place.
func mergeLinks(links, more []Link) []Link {
	for _, link := range more {
		if i := slices.IndexFunc(links, func(l Link) bool { return l.Label == link.Label }); i >= 0 {
			links[i] = link
			continue
		}
		links = append(links, link)
	}
	return links
}

func override(into *string, from string) {
	if strings.TrimSpace(from) != "" {
		*into = from
	}
}

// union returns the texts of both lists, each once, without changing them.
func union(a, b []string) []string {
	var out []string
	for _, one := range slices.Concat(a, b) {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

func unionOfSets(a, b [][]string) [][]string {
	var out [][]string
	for _, set := range slices.Concat(a, b) {
		if !slices.ContainsFunc(out, func(known []string) bool { return sameSet(known, set) }) {
			out = append(out, set)
		}
	}
	return out
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))),
		slices.Compact(slices.Sorted(slices.Values(b))))
}
