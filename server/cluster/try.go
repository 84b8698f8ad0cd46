package cluster

import (
	"context"
	"maps"
	"slices"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/plan"
)

// Trial is what a wish would become.
type Trial struct {
	Nodes  []manifest.Node
	Tasks  int // that would make it; 0 of very large clusters, which are not planned
	Stages int
	// Fields are what the user of such a cluster is asked for, sorted.
	Fields []string
}

// Try solves a wish in a project, without an environment and without making anything; the error is a
// *solve.Contradiction if there is no layout. A template that is given is tried as if the catalogue had it in place of
// another one of its name.
func (s *Service) Try(
	ctx context.Context, project intent.ProjectID, w Wish, template *catalogue.Template,
) (*Trial, error) {
	all, err := s.c.Catalogues.Catalogue(ctx, project)
	if err != nil {
		return nil, err
	}
	if template != nil {
		all = all.With(template)
		w.Template = catalogue.HeadOf(template).Name
	}
	m := &manifest.Manifest{
		Name: w.Name, Template: w.Template, Size: w.Size, Provider: w.Provider, HardwareType: w.HardwareType,
		ImageType: w.ImageType, DNSSuffix: w.DNSSuffix, Services: slices.Clone(w.Services), Config: w.Config,
		Next: manifest.FirstNode,
	}
	d, err := Define(ctx, fixed{all}, project, m)
	if err != nil {
		return nil, err
	}
	if m.Services = orDefault(m.Services, d.Template.Defaults.Services); m.Size == 0 {
		m.Size = max(1, d.Template.Constraints.Size.Min)
	}
	m.Provider = d.ProviderName()
	if err := d.solve(ctx); err != nil {
		return nil, err
	}
	fields, _, err := all.UserFields(m.Template, m.Provider)
	if err != nil {
		return nil, err
	}
	out := &Trial{Nodes: m.Nodes, Fields: slices.Sorted(maps.Keys(fields))}
	if len(m.Nodes)*len(m.Services) > maxTried {
		return out, nil
	}
	want := plan.Want{Services: pick(all.Services, m.Services)}
	for _, n := range m.Nodes {
		want.Nodes = append(want.Nodes, plan.Wants{Number: n.Number, Services: n.Services})
	}
	p, err := plan.Make(nil, want)
	if err != nil {
		return nil, invalid("the layout cannot be planned: %s", err)
	}
	out.Tasks, out.Stages = len(p.Tasks), p.Stages
	return out, nil
}

// maxTried is of how many nodes times services a trial is planned, because anybody may try without waiting for
// machines.
const maxTried = 20_000

// fixed is a catalogue of which there are no other versions.
type fixed struct{ all *catalogue.Catalogue }

func (f fixed) Catalogue(context.Context, intent.ProjectID) (*catalogue.Catalogue, error) {
	return f.all, nil
}

func (f fixed) Pinned(
	context.Context, intent.ProjectID, map[catalogue.Kind]map[string]int,
) (*catalogue.Catalogue, error) {
	return f.all, nil
}
