package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
)

// Wish is what a person asks for. Empty fields are the template's.
type Wish struct {
	Name         string
	Description  string
	Template     string
	Size         int
	Provider     string
	HardwareType string
	ImageType    string
	DNSSuffix    string
	Services     []string
	Config       map[string]any
	// Fields are values of the provider's fields; those of sensitive ones are sealed and do not go to Git.
	Fields map[string]json.RawMessage
	// Lease is how long the cluster is wanted; zero: as long as the template says.
	Lease time.Duration
}

// Amendment is a change of a cluster. What is nil or empty stays.
type Amendment struct {
	Size           *int
	AddServices    []string
	RemoveServices []string
	// Stop, Start and Restart name services. Those that depend on a stopped one are stopped as well, and what a started
	// one depends on is started.
	Stop, Start, Restart []string
	Config               map[string]any // replaces all of it, if it is not nil
	Fields               map[string]json.RawMessage
	Description          *string
	// Extend is added to the end of the lease, Expires replaces it.
	Extend  time.Duration
	Expires *time.Time
	// Replace names nodes to be made anew, with other numbers.
	Replace []int
	// Remove names nodes to be deleted; the size is reduced by their number.
	Remove []int
	// Sync takes the newest versions of the catalogue.
	Sync bool
	// Of is the digest of the file that the caller has read: Conflict if the file is another one by now. Empty:
	// whatever the file is now is changed.
	Of string
}

// Proposal is what would be committed, and what would be done then.
type Proposal struct {
	Manifest *manifest.Manifest // nil: the cluster ends
	File     []byte             // nil: the file is deleted
	Base     string             // commit that it was made from
	Plan     Preview
	Prior    *manifest.Manifest // what it changes; nil: the cluster is new
	sealed   map[string][]byte  // fields to keep
}

// Propose solves a wish, and plans it. Nothing is written.
func (s *Service) Propose(ctx context.Context, e intent.Environment, w Wish) (*Proposal, error) {
	const op = "cluster.Propose"
	if err := manifest.CheckName(w.Name); err != nil {
		return nil, fault.Wrap(op, fault.Invalid, err)
	}
	if _, err := s.c.Store.Cluster(ctx, e.ID, w.Name); !fault.Is(err, fault.NotFound) {
		if err == nil {
			err = fault.New(op, fault.Conflict, "there is a cluster "+w.Name+" already").Hint("choose another name")
		}
		return nil, err
	}
	tip, content, err := s.c.Repository.Tip(ctx, e, manifest.PathOf(w.Name))
	if err != nil {
		return nil, err
	}
	if content != nil {
		return nil, fault.New(op, fault.Conflict, "the file "+manifest.PathOf(w.Name)+" exists already").
			Hint("choose another name, or change the file")
	}
	m := &manifest.Manifest{
		Name: w.Name, Owner: access.Of(ctx).Name, Description: w.Description, Template: w.Template, Size: w.Size,
		Provider: w.Provider, HardwareType: w.HardwareType, ImageType: w.ImageType, DNSSuffix: w.DNSSuffix,
		Services: slices.Clone(w.Services), Config: w.Config, Next: manifest.FirstNode,
	}
	d, err := Define(ctx, s.c.Catalogues, e.ProjectID, m)
	if err != nil {
		return nil, err
	}
	if m.Services = orDefault(m.Services, d.Template.Defaults.Services); m.Size == 0 {
		m.Size = max(1, d.Template.Constraints.Size.Min)
	}
	// Written down so that a later change of the template does not change them.
	m.Provider = d.ProviderName()
	p := &Proposal{Manifest: m, Base: tip}
	if err := s.setFields(d, w.Fields, p, e, nil); err != nil {
		return nil, err
	}
	if m.Expires, err = firstLease(d.Template.Administration.Lease, w.Lease, s.c.Now()); err != nil {
		return nil, err
	}
	if err := s.quota(ctx, e, 1, m.Size); err != nil {
		return nil, err
	}
	return p, s.complete(ctx, e, d, p, nil, intent.Cluster{})
}

func orDefault(list, def []string) []string {
	if len(list) > 0 {
		return list
	}
	return slices.Clone(def)
}

// complete solves a proposal, writes its file and plans it.
func (s *Service) complete(
	ctx context.Context, e intent.Environment, d *Definition, p *Proposal, prior *manifest.Manifest, c intent.Cluster,
) error {
	if err := d.solve(ctx); err != nil {
		return err
	}
	d.pin()
	var err error
	if p.File, err = manifest.Write(p.Manifest); err != nil {
		return fault.Wrap("cluster.complete", fault.Invalid, err)
	}
	if _, err := manifest.Read(p.Manifest.Name, p.File); err != nil {
		return fault.Wrap("cluster.complete", fault.Invalid, err)
	}
	p.Plan, err = s.preview(ctx, e, c, p.Manifest, prior)
	return err
}

// setFields puts the values of the provider's fields where they belong: secret ones are sealed, the others go to the
// file. kept are the names of the sensitive fields that were given before.
func (s *Service) setFields(
	d *Definition, values map[string]json.RawMessage, p *Proposal, e intent.Environment, kept []string,
) error {
	fields, _, err := d.Catalogue.UserFields(d.Manifest.Template, d.ProviderName())
	if err != nil {
		return err
	}
	p.sealed = map[string][]byte{}
	given := slices.Clone(kept)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		f, known := fields[name]
		if !known {
			return invalid(
				"the provider %s does not ask users for the field %q; it asks for %s",
				d.ProviderName(),
				name,
				names(fields),
			)
		}
		if f.Secret() {
			if p.sealed[name], err = s.c.Key.Seal(values[name], SealedFor(e.ID, d.Manifest.Name, name)); err != nil {
				return err
			}
			given = append(given, name)
			continue
		}
		value, err := manifest.Value(values[name])
		if err != nil {
			return invalid("the field %q is no JSON", name)
		}
		if d.Manifest.Fields == nil {
			d.Manifest.Fields = map[string]any{}
		}
		d.Manifest.Fields[name] = value
	}
	return d.checkFields(given)
}

// SealedFor is what a sensitive field of a cluster is sealed for.
func SealedFor(env intent.EnvironmentID, cluster, field string) string {
	return "cluster field " + env.String() + "/" + cluster + "/" + field
}

// quota refuses more clusters and nodes than the project may have.
func (s *Service) quota(ctx context.Context, e intent.Environment, clusters, nodes int) error {
	const op = "cluster.quota"
	use, err := s.c.Store.ClusterUseOf(ctx, e.ProjectID)
	if err != nil {
		return err
	}
	const advice = "delete what is not needed, or ask an administrator for more: ordain cluster tenant set"
	if use.MaxClusters != nil && clusters > 0 && use.Clusters+clusters > *use.MaxClusters {
		return fault.New(op, fault.Conflict, fmt.Sprintf("the project has %d clusters, and may have %d", use.Clusters,
			*use.MaxClusters)).Hint(advice)
	}
	if use.MaxNodes != nil && nodes > 0 && use.Nodes+nodes > *use.MaxNodes {
		return fault.New(op, fault.Conflict, fmt.Sprintf("the project has %d nodes and may have %d, so %d more are "+
			"too many",
			use.Nodes, *use.MaxNodes, nodes)).
			Hint(advice)
	}
	return nil
}

// ProposeAmendment applies an amendment to the cluster's file as it is in Git now, and plans it. Nothing is written.
func (s *Service) ProposeAmendment(
	ctx context.Context, e intent.Environment, name string, a Amendment,
) (*Proposal, error) {
	f, c, err := s.current(ctx, e, name)
	if err != nil {
		return nil, err
	}
	if a.Of != "" && a.Of != f.Digest {
		return nil, fault.New("cluster.ProposeAmendment", fault.Conflict,
			"the cluster "+name+" was changed by somebody else meanwhile").Hint("look at it again, and then change it")
	}
	m := f.Manifest
	prior := m.Clone()
	if a.Sync {
		m.Catalogue = nil
	}
	if a.Description != nil {
		m.Description = *a.Description
	}
	if a.Config != nil {
		m.Config = a.Config
	}
	d, err := Define(ctx, s.c.Catalogues, e.ProjectID, m)
	if err != nil {
		return nil, err
	}
	if err := amendServices(d, a); err != nil {
		return nil, err
	}
	if err := amendNodes(m, a); err != nil {
		return nil, err
	}
	if err := s.amendLease(d, a, c); err != nil {
		return nil, err
	}
	// Services that are new need definitions.
	if d, err = Define(ctx, s.c.Catalogues, e.ProjectID, m); err != nil {
		return nil, err
	}
	kept, err := s.c.Store.ClusterSecrets(ctx, e.ID, name)
	if err != nil {
		return nil, err
	}
	p := &Proposal{Manifest: m, Base: f.Commit, Prior: prior}
	if err := s.setFields(d, a.Fields, p, e, slices.Collect(maps.Keys(kept))); err != nil {
		return nil, err
	}
	if err := s.quota(ctx, e, 0, m.Size-prior.Size); err != nil {
		return nil, err
	}
	return p, s.complete(ctx, e, d, p, prior, c)
}

// amendServices adds, removes, stops, starts and restarts.
func amendServices(d *Definition, a Amendment) error {
	m := d.Manifest
	for _, name := range a.RemoveServices {
		if !slices.Contains(m.Services, name) {
			return invalid("the cluster does not have the service %q", name)
		}
		m.Services = without(m.Services, name)
		m.Stopped = without(m.Stopped, name)
		delete(m.Restarts, name)
	}
	for _, name := range a.AddServices {
		if slices.Contains(m.Services, name) {
			return invalid("the cluster has the service %q already", name)
		}
		m.Services = append(m.Services, name)
	}
	for _, name := range slices.Concat(a.Stop, a.Start, a.Restart) {
		if !slices.Contains(m.Services, name) {
			return invalid("the cluster does not have the service %q; it has %v", name, m.Services)
		}
	}
	for _, name := range withRelated(d, a.Stop, dependents) {
		if !slices.Contains(m.Stopped, name) {
			m.Stopped = append(m.Stopped, name)
		}
	}
	for _, name := range withRelated(d, a.Start, dependencies) {
		m.Stopped = without(m.Stopped, name)
	}
	for _, name := range withRelated(d, a.Restart, dependents) {
		if m.Restarts == nil {
			m.Restarts = map[string]int{}
		}
		m.Restarts[name]++
	}
	return nil
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
}

// dependencies are the services of the cluster that one needs at run time.
func dependencies(d *Definition, name string) (out []string) {
	s := d.Catalogue.Services[name]
	if s == nil {
		return nil
	}
	for _, wanted := range slices.Concat(s.Dependencies.Runtime.Requires, s.Dependencies.Runtime.Uses) {
		for _, other := range d.Catalogue.Satisfiers(wanted) {
			if slices.Contains(d.Manifest.Services, other) {
				out = append(out, other)
			}
		}
	}
	return out
}

// dependents are the services of the cluster that need one at run time.
func dependents(d *Definition, name string) (out []string) {
	for _, other := range d.Manifest.Services {
		if other != name && slices.Contains(dependencies(d, other), name) {
			out = append(out, other)
		}
	}
	return out
}

// withRelated returns services and all that are related to them, sorted.
func withRelated(d *Definition, start []string, related func(*Definition, string) []string) []string {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if !seen[name] {
			seen[name] = true
			for _, other := range related(d, name) {
				visit(other)
			}
		}
	}
	for _, name := range start {
		visit(name)
	}
	return slices.Sorted(maps.Keys(seen))
}

// amendNodes changes the size, and takes out nodes that are removed or replaced.
func amendNodes(m *manifest.Manifest, a Amendment) error {
	if a.Size != nil {
		m.Size = *a.Size
	}
	if m.Size < 1 || m.Size > catalogue.MaxSize {
		return invalid("the size is %d, and may be 1 to %d", m.Size, catalogue.MaxSize)
	}
	for _, number := range slices.Concat(a.Replace, a.Remove) {
		i := slices.IndexFunc(m.Nodes, func(n manifest.Node) bool { return n.Number == number })
		if i < 0 {
			return invalid("the cluster does not have the node %d", number)
		}
		m.Nodes = slices.Delete(m.Nodes, i, i+1)
	}
	if a.Size == nil {
		m.Size -= len(a.Remove)
	}
	return nil
}
