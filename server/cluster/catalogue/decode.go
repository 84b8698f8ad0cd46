package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Decode reads an entity. The error is an *Invalid with all problems of form; what the entity refers to is for Check.
// Members that are not known are skipped. As Coopr does, it takes numbers and booleans that are written as texts, and
// durations as milliseconds or as "2d".
func Decode(kind Kind, text []byte) (Entity, error) {
	if !slices.Contains(Kinds, kind) {
		return nil, invalid("", "there is no kind %.40q; the kinds are %s", string(kind), listed(Kinds))
	}
	if _, err := object(text); err != nil {
		return nil, err
	}
	var found problems
	e := read(kind, value{raw: text, to: &found})
	checkHead(e, &found)
	if len(found) > 0 {
		return nil, &Invalid{found}
	}
	return e, nil
}

func read(kind Kind, v value) Entity {
	switch kind {
	case ProviderTypes, AutomatorTypes:
		return readPluginType(v, kind == AutomatorTypes)
	case Providers:
		return &Provider{
			Head: readHead(v), ProviderType: v.field("providertype").text(), Provisioner: v.field("provisioner").raws(),
		}
	case HardwareTypes:
		return &HardwareType{Head: readHead(v), ProviderMap: readProviderMap(v.field("providermap"))}
	case ImageTypes:
		return &ImageType{Head: readHead(v), ProviderMap: readProviderMap(v.field("providermap"))}
	case Services:
		return readService(v)
	case PartialTemplates:
		return &Partial{
			Head: readHead(v), Immutable: v.field("immutable").truth(),
			Compatibility: readCompatibility(v.field("compatibility")), Defaults: readDefaults(v.field("defaults")),
		}
	}
	return readTemplate(v)
}

func readHead(v value) Head {
	return Head{
		Name: v.field("name").text(), Label: v.field("label").text(), Description: v.field("description").text(),
		Icon: v.field("icon").text(), Version: v.field("version").number(),
	}
}

func readPluginType(v value, automator bool) *PluginType {
	p := &PluginType{Head: readHead(v), Automator: automator}
	parameters := v.field("parameters")
	p.Parameters.Admin = readParameters(parameters.field("admin"))
	p.Parameters.User = readParameters(parameters.field("user"))
	v.field("resourceTypes").each(func(name string, one value) {
		if p.ResourceTypes == nil {
			p.ResourceTypes = map[string]ResourceType{}
		}
		p.ResourceTypes[name] = ResourceType{
			Format: one.field("format").text(), Permissions: one.field("permissions").plain(),
		}
	})
	return p
}

func readParameters(v value) Parameters {
	var p Parameters
	v.field("fields").each(func(name string, one value) {
		if p.Fields == nil {
			p.Fields = map[string]Field{}
		}
		f := Field{
			Label: one.field("label").text(), Type: one.field("type").text(), Tip: one.field("tip").text(),
			Override: one.field("override").truth(), Sensitive: one.field("sensitive").truth(),
		}
		for _, option := range one.field("options").list() {
			f.Options = append(f.Options, appendValue(nil, option.raw))
		}
		if d := one.field("default"); !d.absent() {
			f.Default = appendValue(nil, d.raw)
		}
		p.Fields[name] = f
	})
	p.Required = v.field("required").textSets()
	return p
}

func readProviderMap(v value) map[string]map[string]string {
	var out map[string]map[string]string
	v.each(func(name string, one value) {
		if out == nil {
			out = map[string]map[string]string{}
		}
		out[name] = map[string]string{}
		one.each(func(key string, field value) { out[name][key] = field.plain() })
	})
	return out
}

func readService(v value) *Service {
	s := &Service{Head: readHead(v)}
	d := v.field("dependencies")
	s.Dependencies = ServiceDependencies{
		Provides: d.field("provides").texts(), Conflicts: d.field("conflicts").texts(),
		Install: readPhase(d.field("install")), Runtime: readPhase(d.field("runtime")),
	}
	v.field("provisioner").field("actions").each(func(name string, one value) {
		if s.Provisioner.Actions == nil {
			s.Provisioner.Actions = map[Action]ActionOf{}
		}
		s.Provisioner.Actions[Action(name)] = ActionOf{Type: one.field("type").text(),
			Fields: one.field("fields").raws()}
	})
	return s
}

func readPhase(v value) Dependencies {
	return Dependencies{Requires: v.field("requires").texts(), Uses: v.field("uses").texts()}
}

func readCompatibility(v value) Compatibility {
	return Compatibility{
		HardwareTypes: v.field("hardwaretypes").texts(), ImageTypes: v.field("imagetypes").texts(),
		Services: v.field("services").texts(),
	}
}

func readDefaults(v value) Defaults {
	return Defaults{
		Services: v.field("services").texts(), Provider: v.field("provider").text(),
		HardwareType: v.field("hardwaretype").text(), ImageType: v.field("imagetype").text(),
		DNSSuffix: v.field("dnsSuffix").text(), Config: v.field("config").raws(),
	}
}

func readTemplate(v value) *Template {
	t := &Template{
		Head: readHead(v), Compatibility: readCompatibility(v.field("compatibility")),
		Defaults: readDefaults(v.field("defaults")), Constraints: readConstraints(v.field("constraints")),
	}
	lease := v.field("administration").field("leaseduration")
	for _, one := range []struct {
		name string
		into *Duration
	}{
		{"initial", &t.Administration.Lease.Initial}, {"max", &t.Administration.Lease.Max},
		{"step", &t.Administration.Lease.Step},
	} {
		if given := lease.field(one.name); !given.absent() {
			*one.into = given.duration()
			t.leaseGiven = append(t.leaseGiven, one.name)
		}
	}
	if parent := v.field("parent"); !parent.absent() {
		if name := parent.field("name").text(); name != "" {
			t.Parent = &Reference{name}
		}
	}
	for _, one := range v.field("includes").list() {
		t.Includes = append(t.Includes, Reference{one.field("name").text()})
	}
	for _, one := range v.field("links").list() {
		t.Links = append(t.Links, Link{Label: one.field("label").text(), URL: one.field("url").text()})
	}
	return t
}

func readConstraints(v value) Constraints {
	c := Constraints{Size: readRange(v.field("size"))}
	layout := v.field("layout")
	c.Layout.MustCoexist = layout.field("mustcoexist").textSets()
	c.Layout.CantCoexist = layout.field("cantcoexist").textSets()
	v.field("services").each(func(name string, one value) {
		if c.Services == nil {
			c.Services = map[string]ServiceConstraint{}
		}
		limit := ServiceConstraint{
			HardwareTypes: one.field("hardwaretypes").texts(), ImageTypes: one.field("imagetypes").texts(),
		}
		if q := one.field("quantities"); !q.absent() {
			r := readRange(q)
			limit.Quantities = &r
		}
		c.Services[name] = limit
	})
	return c
}

func readRange(v value) Range {
	return Range{Min: v.field("min").number(), Max: v.field("max").number()}
}

// SplitPlugin reads the file of a plug-in as Coopr ships it, which lists the types that it implements, and returns the
// JSON of these types by kind and name.
func SplitPlugin(text []byte) (map[Kind]map[string]json.RawMessage, error) {
	if _, err := object(text); err != nil {
		return nil, err
	}
	var found problems
	v := value{raw: text, to: &found}
	out := map[Kind]map[string]json.RawMessage{}
	for kind, names := range map[Kind][]string{
		ProviderTypes: v.field("providertypes").texts(), AutomatorTypes: v.field("automatortypes").texts(),
	} {
		for _, name := range names {
			one := v.field(name)
			if one.absent() {
				found.add(name, "the plug-in lists the type %s, and does not describe it", name)
				continue
			}
			if out[kind] == nil {
				out[kind] = map[string]json.RawMessage{}
			}
			out[kind][name] = one.raw
		}
	}
	if len(found) == 0 && len(out) == 0 {
		found.add("", "it lists neither \"providertypes\" nor \"automatortypes\"")
	}
	if len(found) > 0 {
		return nil, &Invalid{found}
	}
	return out, nil
}

// Problems returns the problems that an error of this package has.
func Problems(err error) []Problem {
	var invalid *Invalid
	if errors.As(err, &invalid) {
		return invalid.Problems
	}
	if err == nil {
		return nil
	}
	return []Problem{{Text: fmt.Sprint(err)}}
}
