package plan

import (
	"maps"
	"slices"

	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/task"
)

// edges knows which groups of tasks come before those of a service.
type edges struct {
	services  map[string]*catalogue.Service
	providers map[string][]string // services by what they provide, their own name among it
	known     map[edgeKey][]string
}

type edgeKey struct {
	action  task.Action
	service string
}

func newEdges(services map[string]*catalogue.Service) *edges {
	e := &edges{services: services, providers: map[string][]string{}, known: map[edgeKey][]string{}}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		e.providers[name] = append(e.providers[name], name)
		for _, alias := range services[name].Dependencies.Provides {
			if alias != name {
				e.providers[alias] = append(e.providers[alias], name)
			}
		}
	}
	return e
}

// before returns the groups that an action of a service waits for, sorted.
func (e *edges) before(a task.Action, service string) []string {
	key := edgeKey{a, service}
	if groups, known := e.known[key]; known {
		return groups
	}
	found := map[string]bool{}
	switch a {
	case task.Install:
		e.collect(found, service, task.Install, e.installParents)
	case task.Remove:
		e.collect(found, service, task.Remove, e.children(e.installParents))
	case task.Initialize, task.Start:
		e.collect(found, service, task.Start, e.runtimeParents)
	case task.Stop:
		e.collect(found, service, task.Stop, e.children(e.runtimeParents))
	}
	groups := slices.Sorted(maps.Keys(found))
	e.known[key] = groups
	return groups
}

// collect adds the groups of the related services that have the action. Those that lack it pass on their own relations.
func (e *edges) collect(found map[string]bool, service string, a task.Action, related func(string) []string) {
	seen := map[string]bool{service: true}
	var visit func(name string)
	visit = func(name string) {
		for _, other := range related(name) {
			if seen[other] {
				continue
			}
			seen[other] = true
			if _, has := e.services[other].Provisioner.Actions[catalogue.Action(a)]; has {
				found[GroupOf(a, other)] = true
			} else {
				visit(other)
			}
		}
	}
	visit(service)
}

func (e *edges) installParents(name string) []string {
	return e.parents(
		e.services[name],
		func(d catalogue.ServiceDependencies) catalogue.Dependencies { return d.Install },
	)
}

func (e *edges) runtimeParents(name string) []string {
	return e.parents(
		e.services[name],
		func(d catalogue.ServiceDependencies) catalogue.Dependencies { return d.Runtime },
	)
}

func (e *edges) parents(
	s *catalogue.Service, phase func(catalogue.ServiceDependencies) catalogue.Dependencies,
) (out []string) {
	if s == nil {
		return nil
	}
	d := phase(s.Dependencies)
	for _, wanted := range slices.Concat(d.Requires, d.Uses) {
		out = append(out, e.providers[wanted]...)
	}
	return out
}

// children turns a relation round.
func (e *edges) children(parents func(string) []string) func(string) []string {
	down := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(e.services)) {
		for _, p := range parents(name) {
			down[p] = append(down[p], name)
		}
	}
	return func(name string) []string { return down[name] }
}
