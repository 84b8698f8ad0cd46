package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var fieldTypes = []string{"text", "password", "select", "checkbox", "file", "json"}

// permissions are octal, without setuid, setgid and sticky bits.
var permissions = regexp.MustCompile(`^0?[0-7]{3}$`)

func (k *checker) pluginType(p *PluginType) {
	k.parameters("parameters.admin", p.Parameters.Admin)
	k.parameters("parameters.user", p.Parameters.User)
	for _, name := range slices.Sorted(maps.Keys(p.ResourceTypes)) {
		field, r := join("resourceTypes", name), p.ResourceTypes[name]
		if text := CheckName(name); text != "" {
			k.add(field, "%s", text)
		}
		if r.Format != "file" && r.Format != "archive" {
			k.add(field+".format", "%.40q is no format: use file or archive", r.Format)
		}
		if r.Permissions != "" && !permissions.MatchString(r.Permissions) {
			k.add(field+".permissions", "%.40q are no permissions: give them in octal, as 0400", r.Permissions)
		}
	}
}

func (k *checker) parameters(path string, p Parameters) {
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		field, f := join(path+".fields", name), p.Fields[name]
		if text := CheckName(name); text != "" {
			k.add(field, "%s", text)
		}
		if !slices.Contains(fieldTypes, f.Type) {
			k.add(field+".type", "%.40q is no type of field; the types are %s", f.Type, listed(fieldTypes))
			continue
		}
		if f.Type == "select" && len(f.Options) == 0 {
			k.add(field+".options", "a select needs options")
		}
		if f.Secret() && given(f.Default) {
			k.add(field+".default", "a secret has no default: everybody could read it")
		} else if given(f.Default) {
			k.fieldValue(field+".default", f, f.Default)
		}
	}
	for i, set := range p.Required {
		for j, name := range set {
			if _, ok := p.Fields[name]; !ok {
				k.add(index(index(path+".required", i), j), "there is no field %.100q", name)
			}
		}
	}
}

// given reports whether a value is one: not null, and no blank text.
func given(raw json.RawMessage) bool {
	if s, ok := textOf(raw); ok {
		return strings.TrimSpace(s) != ""
	}
	return kindOf(raw) != "null"
}

// fieldValue checks a value against its field.
func (k *checker) fieldValue(path string, f Field, raw json.RawMessage) {
	if f.Secret() && IsHidden(raw) {
		return
	}
	kind := kindOf(raw)
	scalar := kind == "text" || kind == "number" || kind == "boolean"
	switch f.Type {
	case "json":
		if text, ok := textOf(raw); ok && !json.Valid([]byte(text)) {
			k.add(path, "the text is not JSON")
		}
	case "checkbox":
		text, ok := textOf(raw)
		if !ok {
			text = string(raw)
		}
		if text = strings.ToLower(text); text != "true" && text != "false" {
			k.add(path, "it has to be true or false")
		}
	case "select":
		if !slices.ContainsFunc(f.Options, func(o json.RawMessage) bool { return plainOf(o) == plainOf(raw) }) {
			var options []string
			for _, o := range f.Options {
				options = append(options, plainOf(o))
			}
			value := fmt.Sprintf("%.100q", plainOf(raw))
			if f.Secret() {
				value = "the value" // which nobody is to read in a message
			}
			k.add(path, "%s is none of its options %s", value, listed(options))
		}
	default:
		if !scalar {
			k.add(path, "it has to be a text, and is a %s", kind)
		}
	}
}

// plainOf returns a text without its quotes, and any other value as it is written.
func plainOf(raw json.RawMessage) string {
	if s, ok := textOf(raw); ok {
		return s
	}
	return string(raw)
}

// values checks the values of a plug-in's fields, and that one of the required sets is whole. The users of a cluster
// may give what they may override, so this need not be given here if others tells so.
func (k *checker) values(path, plugin string, p Parameters, have map[string]json.RawMessage, others func(Field) bool) {
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !given(have[name]) {
			continue
		}
		f, ok := p.Fields[name]
		if !ok {
			k.add(join(path, name), "%s has no field %.100q; its fields are %s", plugin, name,
				listed(slices.Sorted(maps.Keys(p.Fields))))
			continue
		}
		k.fieldValue(join(path, name), f, have[name])
	}
	best := p.lacking(have, others)
	if len(best) == 0 || slices.ContainsFunc(best, func(set []string) bool { return len(set) == 0 }) {
		return
	}
	slices.SortStableFunc(best, func(a, b []string) int { return len(a) - len(b) })
	text := listed(best[0])
	if len(best) > 1 && !sameSet(best[0], best[1]) {
		text += ", or of " + listed(best[1])
	}
	k.add(path, "%s needs values of %s", plugin, text)
}

// lacking returns of each required set what is not given, and that nobody else can give.
func (p Parameters) lacking(have map[string]json.RawMessage, others func(Field) bool) [][]string {
	var out [][]string
	for _, set := range p.Required {
		lacks := []string{}
		for _, name := range set {
			if !given(have[name]) && !others(p.Fields[name]) {
				lacks = append(lacks, name)
			}
		}
		out = append(out, lacks)
	}
	return out
}

func (k *checker) provider(p *Provider) {
	if !k.exists("providertype", ProviderTypes, p.ProviderType) {
		return
	}
	t := k.c.ProviderTypes[p.ProviderType]
	k.values("provisioner", "the provider type "+t.Name, t.Parameters.Admin, p.Provisioner,
		func(f Field) bool { return f.Override })
	if p.ProviderType == Pool && given(p.Provisioner["machines"]) {
		_, wrong := Machines(p.Provisioner["machines"])
		for _, one := range wrong {
			k.add(strings.TrimSuffix("provisioner.machines"+one.Field, "."), "%s", one.Text)
		}
	}
}

func (k *checker) providerMap(providers map[string]map[string]string, field string) {
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		path := join("providermap", name)
		if text := CheckName(name); text != "" {
			k.add(path, "%s", text)
		}
		known := k.c.Providers[name]
		if pool := name == Pool || known != nil && known.ProviderType == Pool; pool {
			continue
		}
		if strings.TrimSpace(providers[name][field]) == "" {
			k.add(join(path, field), "it has to say which %s of %s is meant", field, name)
		}
	}
}
