package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// New returns a catalogue of the built-in plug-in types and of these entities; later ones take the place of earlier
// ones of the same kind and name.
func New(entities ...Entity) *Catalogue {
	c := &Catalogue{
		ProviderTypes: map[string]*PluginType{}, AutomatorTypes: map[string]*PluginType{},
		Providers: map[string]*Provider{}, HardwareTypes: map[string]*HardwareType{},
		ImageTypes: map[string]*ImageType{}, Services: map[string]*Service{},
		Partials: map[string]*Partial{}, Templates: map[string]*Template{},
	}
	for _, p := range BuiltIn() {
		c.put(p)
	}
	for _, e := range entities {
		c.put(e)
	}
	return c
}

func (c *Catalogue) put(e Entity) {
	name := e.head().Name
	switch e := e.(type) {
	case *PluginType:
		if e.Automator {
			c.AutomatorTypes[name] = e
		} else {
			c.ProviderTypes[name] = e
		}
	case *Provider:
		c.Providers[name] = e
	case *HardwareType:
		c.HardwareTypes[name] = e
	case *ImageType:
		c.ImageTypes[name] = e
	case *Service:
		c.Services[name] = e
	case *Partial:
		c.Partials[name] = e
	case *Template:
		c.Templates[name] = e
	}
}

// With returns a copy of the catalogue that also has these entities.
func (c *Catalogue) With(entities ...Entity) *Catalogue {
	out := New(c.All()...)
	for _, e := range entities {
		out.put(e)
	}
	return out
}

// Without returns a copy of the catalogue that does not have this entity.
func (c *Catalogue) Without(kind Kind, name string) *Catalogue {
	out := New(c.All()...)
	switch kind {
	case ProviderTypes:
		delete(out.ProviderTypes, name)
	case AutomatorTypes:
		delete(out.AutomatorTypes, name)
	case Providers:
		delete(out.Providers, name)
	case HardwareTypes:
		delete(out.HardwareTypes, name)
	case ImageTypes:
		delete(out.ImageTypes, name)
	case Services:
		delete(out.Services, name)
	case PartialTemplates:
		delete(out.Partials, name)
	case Templates:
		delete(out.Templates, name)
	}
	return out
}

// All returns all entities, by kind in the order of Kinds, and by name.
func (c *Catalogue) All() []Entity {
	var out []Entity
	out = appendSorted(out, c.ProviderTypes)
	out = appendSorted(out, c.AutomatorTypes)
	out = appendSorted(out, c.Providers)
	out = appendSorted(out, c.HardwareTypes)
	out = appendSorted(out, c.ImageTypes)
	out = appendSorted(out, c.Services)
	out = appendSorted(out, c.Partials)
	return appendSorted(out, c.Templates)
}

func appendSorted[E Entity](out []Entity, of map[string]E) []Entity {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, of[name])
	}
	return out
}

// Get returns an entity, or nil.
func (c *Catalogue) Get(kind Kind, name string) Entity {
	switch kind {
	case ProviderTypes:
		return found(c.ProviderTypes, name)
	case AutomatorTypes:
		return found(c.AutomatorTypes, name)
	case Providers:
		return found(c.Providers, name)
	case HardwareTypes:
		return found(c.HardwareTypes, name)
	case ImageTypes:
		return found(c.ImageTypes, name)
	case Services:
		return found(c.Services, name)
	case PartialTemplates:
		return found(c.Partials, name)
	case Templates:
		return found(c.Templates, name)
	}
	return nil
}

func found[E Entity](in map[string]E, name string) Entity {
	if e, ok := in[name]; ok {
		return e
	}
	return nil
}

// Satisfiers returns the services that satisfy a dependency, sorted: those with this name, and those that provide it.
func (c *Catalogue) Satisfiers(dependency string) []string {
	var out []string
	for name, s := range c.Services {
		if name == dependency || slices.Contains(s.Dependencies.Provides, dependency) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Mapped returns what a hardware or an image type is called at a provider: what it says of the provider, or of the
// provider's type. Pools need no mapping, so of those it may be nil.
func Mapped(providerMap map[string]map[string]string, p *Provider) (fields map[string]string, ok bool) {
	if fields, ok = providerMap[p.Name]; !ok {
		fields, ok = providerMap[p.ProviderType]
	}
	return fields, ok || p.ProviderType == Pool
}

// nouns name the kinds to people.
var nouns = map[Kind]string{
	ProviderTypes: "provider type", AutomatorTypes: "automator type", Providers: "provider",
	HardwareTypes: "hardware type", ImageTypes: "image type", Services: "service",
	PartialTemplates: "partial template", Templates: "cluster template",
}

// Noun names a kind to people, as "hardware type".
func (k Kind) Noun() string { return nouns[k] }

// listed returns "a, b and c", and of many only the first.
func listed[T ~string](all []T) string {
	const most = 12
	texts := make([]string, 0, len(all))
	for i, one := range all {
		if i == most && len(all) > most+1 {
			texts = append(texts, fmt.Sprintf("%d more", len(all)-most))
			break
		}
		texts = append(texts, string(one))
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}
