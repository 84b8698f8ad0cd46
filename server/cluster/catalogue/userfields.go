package catalogue

import (
	"maps"
	"slices"
)

// maxRequired bounds how many sets of required fields there may be.
const maxRequired = 64

// UserFields returns the fields that a user is asked for when a cluster is made of a template at a provider, which is
// the template's when it is empty: the user fields of the provider's type, and those of its administrator fields that
// users may override. The user has to give all of one of the required sets; without sets, nothing.
func (c *Catalogue) UserFields(template, provider string) (map[string]Field, [][]string, error) {
	t, err := c.Resolve(template)
	if err != nil {
		return nil, nil, err
	}
	if provider == "" {
		provider = t.Defaults.Provider
	}
	p, ok := c.Providers[provider]
	if !ok {
		return nil, nil, invalid("provider", "there is no provider %.100q", provider)
	}
	kind, ok := c.ProviderTypes[p.ProviderType]
	if !ok {
		return nil, nil, invalid("provider", "the provider %s is of the type %.100q, which does not exist", provider,
			p.ProviderType)
	}
	fields := map[string]Field{}
	for name, f := range kind.Parameters.Admin.Fields {
		if f.Override {
			if have := p.Provisioner[name]; given(have) && !f.Secret() {
				f.Default = have
			}
			fields[name] = f
		}
	}
	maps.Copy(fields, kind.Parameters.User.Fields)
	return fields, requiredOf(kind.Parameters, p), nil
}

// requiredOf combines what the administrator left to users with what users are required to give anyway.
func requiredOf(p PluginParameters, provider *Provider) [][]string {
	left := [][]string{}
	for _, set := range p.Admin.Required {
		var rest []string
		may := true
		for _, name := range set {
			if !given(provider.Provisioner[name]) {
				rest = append(rest, name)
				may = may && p.Admin.Fields[name].Override
			}
		}
		if may {
			left = append(left, rest)
		}
	}
	if len(left) == 0 || slices.ContainsFunc(left, func(set []string) bool { return len(set) == 0 }) {
		left = [][]string{nil}
	}
	user := p.User.Required
	if len(user) == 0 {
		user = [][]string{nil}
	}
	var out [][]string
	for _, a := range left {
		for _, b := range user {
			set := union(a, b)
			if len(set) == 0 {
				return nil
			}
			if len(out) < maxRequired {
				out = append(out, set)
			}
		}
	}
	return out
}
