package solve

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// firstNumber is the number of the first node of a cluster.
const firstNumber = 1000

// scope is a request with its names looked up and its constraints shrunk to the services of the cluster.
type scope struct {
	Request
	services   []string // sorted
	everywhere []string // those without any constraint: they are on every node
	provider   string
	must       [][]string // at least two services each, all on the cluster
	cant       [][]string // all on the cluster
	hardware   []string   // that may be used, the preferred one first
	image      []string
}

// Error returns the reasons, one on each line.
func (c *Contradiction) Error() string { return strings.Join(c.Reasons, "\n") }

func refuse(hint, format string, args ...any) *Contradiction {
	return &Contradiction{Reasons: []string{fmt.Sprintf(format, args...)}, Hint: hint}
}

// newScope looks up the names of a request. Its contradictions are those that no other layout could solve.
func newScope(r Request) (*scope, *Contradiction) {
	s := &scope{Request: r}
	if r.Template == nil || r.Catalogue == nil {
		return nil, refuse("Choose a template", "the request has no template or no catalogue")
	}
	s.services = slices.Clone(r.Services)
	if len(s.services) == 0 {
		s.services = slices.Clone(r.Template.Defaults.Services)
	}
	slices.Sort(s.services)
	s.services = slices.Compact(s.services)
	if c := s.checkServices(); c != nil {
		return nil, c
	}
	s.layout()
	return s, s.machines()
}

func (s *scope) checkServices() *Contradiction {
	t := s.Template
	if len(s.services) == 0 {
		return refuse("Name the services of the cluster.",
			"no services are wanted, and the template %s has no default", t.Name)
	}
	for _, name := range s.services {
		if s.Catalogue.Services[name] == nil {
			return refuse("Add the service to the catalogue, or leave it out.", "there is no service %s", name)
		}
		if allowed := t.Compatibility.Services; !slices.Contains(allowed, name) {
			return refuse("Leave out "+name+", or add it to the compatible services of the template.",
				"the template %s does not allow the service %s", t.Name, name)
		}
	}
	provided := map[string]bool{}
	for _, name := range s.services {
		provided[name] = true
		for _, alias := range s.Catalogue.Services[name].Dependencies.Provides {
			provided[alias] = true
		}
	}
	for _, name := range s.services {
		deps := s.Catalogue.Services[name].Dependencies
		for _, needed := range slices.Concat(deps.Install.Requires, deps.Runtime.Requires) {
			if !provided[needed] {
				return refuse(s.provide(needed),
					"%s requires %s, and no service of the cluster is or provides %s", name, needed, needed)
			}
		}
	}
	for _, name := range s.services {
		for _, other := range s.Catalogue.Services[name].Dependencies.Conflicts {
			if _, found := slices.BinarySearch(s.services, other); found && other != name {
				return refuse(fmt.Sprintf("Leave out %s or %s.", name, other),
					"%s conflicts with %s, and both are wanted", name, other)
			}
		}
	}
	return nil
}

// provide is the hint which service of the template could be added to provide a name.
func (s *scope) provide(needed string) string {
	var can []string
	for _, name := range s.Template.Compatibility.Services {
		service := s.Catalogue.Services[name]
		if service != nil && (name == needed || slices.Contains(service.Dependencies.Provides, needed)) {
			can = append(can, name)
		}
	}
	if len(can) == 0 {
		return "No service that the template allows provides " + needed + "; choose another template."
	}
	slices.Sort(can)
	return "Add " + orNames(can) + "."
}

// layout shrinks the constraints to the services of the cluster.
func (s *scope) layout() {
	constraints := s.Template.Constraints
	constrained := map[string]bool{}
	for name := range constraints.Services {
		constrained[name] = true
	}
	on := func(name string) bool {
		_, found := slices.BinarySearch(s.services, name)
		return found
	}
	for _, names := range constraints.Layout.MustCoexist {
		var present []string
		for _, name := range names {
			constrained[name] = true
			if on(name) {
				present = append(present, name)
			}
		}
		if present = sortedSet(present); len(present) > 1 {
			s.must = addSet(s.must, present)
		}
	}
	for _, names := range constraints.Layout.CantCoexist {
		all := len(names) > 0
		for _, name := range names {
			constrained[name] = true
			all = all && on(name)
		}
		if all {
			s.cant = addSet(s.cant, sortedSet(names))
		}
	}
	for _, name := range s.services {
		if !constrained[name] {
			s.everywhere = append(s.everywhere, name)
		}
	}
}

// machines finds the hardware and image types that may be used.
func (s *scope) machines() *Contradiction {
	t := s.Template
	if s.provider = s.Provider; s.provider == "" {
		s.provider = t.Defaults.Provider
	}
	provider := s.Catalogue.Providers[s.provider]
	if provider == nil {
		return refuse("Choose a provider of the catalogue"+among(slices.Sorted(maps.Keys(s.Catalogue.Providers)))+".",
			"there is no provider %q", s.provider)
	}
	mapped := func(m map[string]map[string]string) bool {
		_, ok := catalogue.Mapped(m, provider)
		return ok
	}
	usable := func(
		what string, mappings map[string]map[string]map[string]string, allowed []string, wanted, preferred string,
	) ([]string, *Contradiction) {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(mappings)) {
			if (len(allowed) == 0 || slices.Contains(allowed, name)) && mapped(mappings[name]) {
				names = append(names, name)
			}
		}
		hint := "Choose " + strings.TrimPrefix(among(names), ": ") + "."
		switch {
		case len(names) == 0:
			return nil, refuse("Map one for the provider, or choose another provider.",
				"no %s type that the template %s allows is mapped for the provider %s", what, t.Name, s.provider)
		case wanted == "" || slices.Contains(names, wanted):
		case mappings[wanted] == nil:
			return nil, refuse(hint, "there is no %s type %s", what, wanted)
		case len(allowed) > 0 && !slices.Contains(allowed, wanted):
			return nil, refuse(hint, "the template %s does not allow the %s type %s", t.Name, what, wanted)
		default:
			return nil, refuse(hint, "the %s type %s is not mapped for the provider %s", what, wanted, s.provider)
		}
		if wanted != "" {
			preferred = wanted
		}
		if at := slices.Index(names, preferred); at > 0 {
			names = slices.Insert(slices.Delete(names, at, at+1), 0, preferred)
		}
		return names, nil
	}
	hardware, image := map[string]map[string]map[string]string{}, map[string]map[string]map[string]string{}
	for name, h := range s.Catalogue.HardwareTypes {
		hardware[name] = h.ProviderMap
	}
	for name, i := range s.Catalogue.ImageTypes {
		image[name] = i.ProviderMap
	}
	var c *Contradiction
	s.hardware, c = usable("hardware", hardware, t.Compatibility.HardwareTypes, s.HardwareType, t.Defaults.HardwareType)
	if c != nil {
		return c
	}
	s.image, c = usable("image", image, t.Compatibility.ImageTypes, s.ImageType, t.Defaults.ImageType)
	return c
}

// quantities returns how many nodes a service of the cluster has to be on, and may be on; it has to be somewhere.
func (s *scope) quantities(service string) catalogue.Range {
	q := catalogue.Range{}
	if given := s.Template.Constraints.Services[service].Quantities; given != nil {
		q = *given
	}
	q.Min = max(q.Min, 1)
	if q.Max == 0 {
		q.Max = catalogue.MaxSize
	}
	return q
}

// sizes returns the fewest and the most nodes that the template allows.
func (s *scope) sizes() catalogue.Range {
	q := s.Template.Constraints.Size
	q.Min = max(q.Min, 1)
	if q.Max == 0 || q.Max > catalogue.MaxSize {
		q.Max = catalogue.MaxSize
	}
	return q
}

func sortedSet(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// addSet adds a set of names unless it is among the sets already.
func addSet(sets [][]string, names []string) [][]string {
	if slices.ContainsFunc(sets, func(other []string) bool { return slices.Equal(other, names) }) {
		return sets
	}
	return append(sets, names)
}

// andNames writes "a, b and c", and orNames "a, b or c".
func andNames(names []string) string { return join(names, " and ") }
func orNames(names []string) string  { return join(names, " or ") }

func join(names []string, last string) string {
	switch n := len(names); n {
	case 0:
		return "none"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + last + names[n-1]
	}
}

// among lists what there is to choose from, if that is not too long.
func among(names []string) string {
	if len(names) == 0 || len(names) > 12 {
		return ""
	}
	return ": " + orNames(names)
}

// nodeCount writes "1 node" or "3 nodes".
func nodeCount(n int) string {
	if n == 1 {
		return "1 node"
	}
	return strconv.Itoa(n) + " nodes"
}
