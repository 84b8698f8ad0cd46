package catalogue

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

func (k *checker) compatibility(c Compatibility) {
	k.allExist("compatibility.hardwaretypes", HardwareTypes, c.HardwareTypes)
	k.allExist("compatibility.imagetypes", ImageTypes, c.ImageTypes)
	k.allExist("compatibility.services", Services, c.Services)
}

// defaults checks what is given; what has to be given is for the template that all is merged into.
func (k *checker) defaults(d Defaults) {
	k.allExist("defaults.services", Services, d.Services)
	for _, one := range []struct {
		field string
		kind  Kind
		name  string
	}{
		{"defaults.provider", Providers, d.Provider}, {"defaults.hardwaretype", HardwareTypes, d.HardwareType},
		{"defaults.imagetype", ImageTypes, d.ImageType},
	} {
		if strings.TrimSpace(one.name) != "" {
			k.exists(one.field, one.kind, one.name)
		}
	}
	if d.DNSSuffix != "" {
		if text := CheckDNSSuffix(d.DNSSuffix); text != "" {
			k.add("defaults.dnsSuffix", "%s", text)
		}
	}
}

var labelForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)

// CheckDNSSuffix returns what is wrong with the domain of a cluster, or nothing. It leaves room for the longest label
// of a node.
func CheckDNSSuffix(suffix string) string {
	const most = 253 - 64
	if len(suffix) > most {
		return "the DNS suffix is too long: names of hosts would have more than 253 characters"
	}
	for _, label := range strings.Split(suffix, ".") {
		if len(label) > 63 || !labelForm.MatchString(label) {
			return "the DNS suffix has to be a domain, as dev.example.com"
		}
	}
	return ""
}

func (k *checker) template(t *Template) {
	k.compatibility(t.Compatibility)
	k.defaults(t.Defaults)
	k.constraints(t.Constraints)
	k.lease(t.Administration.Lease)
	k.links(t.Links)
	own := len(k.problems)
	resolved, err := k.c.ResolveTemplate(t)
	if err != nil {
		k.problems = append(k.problems, Problems(err)...)
		return
	}
	k.whole(resolved)
	if own == len(k.problems) && (t.Parent != nil || len(t.Includes) > 0) {
		// The parts are right, and may still not fit each other.
		k.ranges(resolved.Constraints)
	}
}

// constraints checks the names and numbers in constraints.
func (k *checker) constraints(c Constraints) {
	for i, set := range c.Layout.MustCoexist {
		k.allExist(index("constraints.layout.mustcoexist", i), Services, set)
	}
	for i, set := range c.Layout.CantCoexist {
		field := index("constraints.layout.cantcoexist", i)
		k.allExist(field, Services, set)
		if distinct := union(nil, set); len(distinct) == 1 {
			k.add(field, "a set of one service forbids it everywhere; name the services that may not share a node")
		} else if len(distinct) == 0 {
			k.add(field, "the set is empty")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		field, limit := join("constraints.services", name), c.Services[name]
		k.exists(field, Services, name)
		k.allExist(field+".hardwaretypes", HardwareTypes, limit.HardwareTypes)
		k.allExist(field+".imagetypes", ImageTypes, limit.ImageTypes)
	}
	k.ranges(c)
}

func (k *checker) ranges(c Constraints) {
	k.oneRange("constraints.size", c.Size)
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		q := c.Services[name].Quantities
		if q == nil {
			continue
		}
		field := join("constraints.services", name) + ".quantities"
		k.oneRange(field, *q)
		if c.Size.Max > 0 && q.Min > c.Size.Max {
			k.add(field+".min", "%s needs %d nodes, and a cluster has %d at most", name, q.Min, c.Size.Max)
		}
	}
}

func (k *checker) oneRange(field string, r Range) {
	for _, one := range []struct {
		name  string
		value int
	}{{"min", r.Min}, {"max", r.Max}} {
		if one.value < 0 || one.value > MaxSize {
			k.add(field+"."+one.name, "%d is out of range: it may be 0 to %d", one.value, MaxSize)
		}
	}
	if r.Max > 0 && r.Min > r.Max {
		k.add(field, "the least number, %d, is above the largest, %d", r.Min, r.Max)
	}
}

func (k *checker) lease(l Lease) {
	if l.Initial > 0 && l.Max > 0 && l.Initial > l.Max {
		k.add("administration.leaseduration.initial", "clusters would live longer at first than they may at most")
	}
	if l.Step > 0 && l.Max > 0 && l.Step > l.Max {
		k.add("administration.leaseduration.step", "one step would be longer than clusters may live at most")
	}
	for _, one := range []struct {
		name  string
		value Duration
	}{{"initial", l.Initial}, {"max", l.Max}, {"step", l.Step}} {
		if one.value < 0 {
			k.add("administration.leaseduration."+one.name, "a time cannot be negative; 0 is without end")
		}
	}
}

func (k *checker) links(links []Link) {
	for i, link := range links {
		field := index("links", i)
		if strings.TrimSpace(link.Label) == "" {
			k.add(field+".label", "the link has no label")
		}
		scheme, _, found := strings.Cut(link.URL, "://")
		if _, err := url.Parse(macro.ReplaceAllString(link.URL, "x")); err != nil || !found ||
			!slices.Contains(linkSchemes, strings.ToLower(scheme)) {
			k.add(field+".url", "it has to be an address that begins with %s://", strings.Join(linkSchemes, ":// or "))
		}
	}
}

var (
	macro       = regexp.MustCompile(`%[^%]+%`)
	linkSchemes = []string{"http", "https", "ssh"}
)

// whole checks a template without parents and includes: what has to be there, and whether it fits.
func (k *checker) whole(t *Template) {
	d := t.Defaults
	if len(d.Services) == 0 {
		k.add("defaults.services", "a cluster needs a service: neither the template nor what it builds on names one")
	}
	for _, name := range d.Services {
		if !slices.Contains(t.Compatibility.Services, name) && k.c.Services[name] != nil {
			k.add("defaults.services", "%s is not among the compatible services", name)
		}
	}
	if d.Provider == "" {
		k.add("defaults.provider", "a cluster needs a provider: neither the template nor what it builds on names one")
		return
	}
	p := k.c.Providers[d.Provider]
	if p == nil {
		return
	}
	k.mapped(p, "hardwaretype", HardwareTypes, d.HardwareType, t.Compatibility.HardwareTypes)
	k.mapped(p, "imagetype", ImageTypes, d.ImageType, t.Compatibility.ImageTypes)
}

// mapped checks that the default hardware or image type is mapped for a provider; without a default, that some
// compatible one is.
func (k *checker) mapped(p *Provider, field string, kind Kind, name string, allowed []string) {
	is := func(name string) bool {
		var of map[string]map[string]string
		switch e := k.c.Get(kind, name).(type) {
		case *HardwareType:
			of = e.ProviderMap
		case *ImageType:
			of = e.ProviderMap
		}
		_, ok := Mapped(of, p)
		return ok
	}
	if name != "" {
		if k.c.Get(kind, name) != nil && !is(name) {
			k.add("defaults."+field, "the %s %s has no mapping for the provider %s", kind.Noun(), name, p.Name)
		}
		return
	}
	if len(allowed) == 0 {
		for _, e := range k.c.All() {
			if e.Kind() == kind {
				allowed = append(allowed, e.head().Name)
			}
		}
	}
	if !slices.ContainsFunc(allowed, is) && p.ProviderType != Pool {
		k.add("defaults.provider", "no %s that the template allows has a mapping for the provider %s",
			kind.Noun(), p.Name)
	}
}
