package catalogue

import (
	"maps"
	"slices"
	"strings"
)

func (k *checker) service(s *Service) {
	d := s.Dependencies
	for _, one := range []struct {
		field string
		names []string
	}{
		{"dependencies.provides", d.Provides}, {"dependencies.conflicts", d.Conflicts},
		{"dependencies.install.requires", d.Install.Requires}, {"dependencies.install.uses", d.Install.Uses},
		{"dependencies.runtime.requires", d.Runtime.Requires}, {"dependencies.runtime.uses", d.Runtime.Uses},
	} {
		for i, name := range one.names {
			if text := CheckName(name); text != "" {
				k.add(index(one.field, i), "%s", text)
			}
		}
	}
	// What a service uses, and what it conflicts with, need not exist.
	k.required(s, "dependencies.install.requires", d.Install.Requires)
	k.required(s, "dependencies.runtime.requires", d.Runtime.Requires)
	for i, name := range d.Conflicts {
		if name == s.Name {
			k.add(index("dependencies.conflicts", i), "the service conflicts with itself")
		}
	}
	k.circle(s, "dependencies.install.requires", func(s *Service) []string { return s.Dependencies.Install.Requires })
	k.circle(s, "dependencies.runtime.requires", func(s *Service) []string { return s.Dependencies.Runtime.Requires })
	k.actions(s)
}

func (k *checker) required(s *Service, field string, names []string) {
	for i, name := range names {
		if CheckName(name) != "" {
			continue
		}
		satisfiers := k.c.Satisfiers(name)
		if len(satisfiers) == 0 {
			k.add(index(field, i), "no service is called %s, and none provides it%s", name, k.similar(Services, name))
			continue
		}
		if len(satisfiers) == 1 && slices.Contains(s.Dependencies.Conflicts, satisfiers[0]) {
			k.add(index(field, i), "the service requires %s, and conflicts with %s", name, satisfiers[0])
		}
	}
}

// circle adds a problem if a service requires itself in the end. A dependency that several services satisfy closes no
// circle: there is a way around.
func (k *checker) circle(s *Service, field string, requires func(*Service) []string) {
	var way []string
	seen := map[string]bool{}
	var reaches func(at *Service) bool
	reaches = func(at *Service) bool {
		way = append(way, at.Name)
		for _, name := range requires(at) {
			satisfiers := k.c.Satisfiers(name)
			if len(satisfiers) != 1 {
				continue
			}
			next := satisfiers[0]
			if next == s.Name {
				return true
			}
			if !seen[next] {
				seen[next] = true
				if reaches(k.c.Services[next]) {
					return true
				}
			}
		}
		way = way[:len(way)-1]
		return false
	}
	if reaches(s) {
		k.add(field, "services require each other in a circle: %s requires %s", way[0],
			strings.Join(append(way[1:], s.Name), ", which requires "))
	}
}

func (k *checker) actions(s *Service) {
	actions := s.Provisioner.Actions
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		field, action := join("provisioner.actions", string(name)), actions[name]
		if !slices.Contains(Actions, name) {
			k.add(field, "there is no action %.40q; the actions are %s", string(name), listed(Actions))
			continue
		}
		if !k.exists(field+".type", AutomatorTypes, action.Type) {
			continue
		}
		t := k.c.AutomatorTypes[action.Type]
		p := Parameters{Fields: maps.Clone(t.Parameters.User.Fields), Required: t.Parameters.Admin.Required}
		if p.Fields == nil {
			p.Fields = map[string]Field{}
		}
		maps.Copy(p.Fields, t.Parameters.Admin.Fields)
		k.values(field+".fields", "the automator type "+t.Name, p, action.Fields, func(Field) bool { return false })
		for _, name := range slices.Sorted(maps.Keys(action.Fields)) {
			if f, ok := p.Fields[name]; ok && f.Secret() && given(action.Fields[name]) {
				k.add(join(field+".fields", name), "secrets cannot stand in a service, where everybody can read them")
			}
		}
	}
}
