package admin

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/store"
)

// maxKnown is how many projects have their catalogue in memory.
const maxKnown = 256

// snapshot is what a project may use at one moment. It is not changed once it is made.
type snapshot struct {
	stamp string
	all   *catalogue.Catalogue
	// own and shared are what is kept. A shared one of the name of an own one is not in all.
	own, shared map[catalogue.Ref]kept
}

// kept is the newest version of an entity.
type kept struct {
	store.ClusterEntity
	entity catalogue.Entity
}

// in returns what is kept of a project, or with a zero one what is shared.
func (n *snapshot) in(project intent.ProjectID) map[catalogue.Ref]kept {
	if project == (intent.ProjectID{}) {
		return n.shared
	}
	return n.own
}

// assemble makes the catalogue of what is shared and of a project's own entities.
func assemble(shared, own map[catalogue.Ref]kept) *catalogue.Catalogue {
	all := make([]catalogue.Entity, 0, len(shared)+len(own))
	for _, k := range shared {
		all = append(all, k.entity)
	}
	for _, k := range own {
		all = append(all, k.entity)
	}
	return catalogue.New(all...)
}

// snapshot returns the catalogue of a project, from memory if nothing changed. A project that does not exist is
// NotFound.
func (s *Service) snapshot(ctx context.Context, op string, project intent.ProjectID) (*snapshot, error) {
	if _, err := s.exists(ctx, project); err != nil {
		return nil, err
	}
	// The stamp is read first: what is read after it may be newer, and then the next call reads again.
	stamp, err := s.c.Store.ClusterEntityStamp(ctx, project)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	before, ok := s.known[project]
	s.mu.Unlock()
	if ok && before.stamp == stamp {
		return before, nil
	}
	rows, err := s.c.Store.ClusterEntities(ctx, project)
	if err != nil {
		return nil, err
	}
	now := &snapshot{stamp: stamp, own: map[catalogue.Ref]kept{}, shared: map[catalogue.Ref]kept{}}
	for _, row := range rows {
		e := before.decoded(row)
		if e == nil {
			if e, err = decodeKept(row); err != nil {
				return nil, fault.Wrap(op, fault.Internal, err)
			}
		}
		now.in(row.Project)[catalogue.RefOf(e)] = kept{row, e}
	}
	now.all = assemble(now.shared, now.own)
	for _, k := range now.own {
		if t := now.narrow(k.entity); t != k.entity {
			now.all = now.all.With(t)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	s.known[project] = now
	return now, nil
}

// decoded returns what a snapshot, or none, has read from a row already. A change of one entity leaves all others as
// they are.
func (n *snapshot) decoded(row store.ClusterEntity) catalogue.Entity {
	if n == nil {
		return nil
	}
	k, ok := n.in(row.Project)[catalogue.Ref{Kind: catalogue.Kind(row.Kind), Name: row.Name}]
	if !ok || k.Version != row.Version || !bytes.Equal(k.Content, row.Content) {
		return nil
	}
	return k.entity
}

// decodeKept reads what the store has.
func decodeKept(row store.ClusterEntity) (catalogue.Entity, error) {
	kind := catalogue.Kind(row.Kind)
	text, err := catalogue.WithVersion(row.Content, row.Version)
	if err != nil {
		return nil, fmt.Errorf("version %d of the %s %s: %w", row.Version, kind.Noun(), row.Name, err)
	}
	e, err := catalogue.Decode(kind, text)
	if err != nil {
		return nil, fmt.Errorf("version %d of the %s %s: %w", row.Version, kind.Noun(), row.Name, err)
	}
	return e, nil
}

// item returns what people see of a version.
func (n *snapshot) item(row store.ClusterEntity) (Item, error) {
	item := Item{
		Kind: catalogue.Kind(row.Kind), Name: row.Name, Version: row.Version, Project: row.Project, Made: row.Made,
		MadeBy: row.MadeBy,
	}
	content, err := n.masked(item.Kind, row.Content)
	if err == nil {
		item.Content, err = catalogue.WithVersion(content, row.Version)
	}
	return item, err
}

// List returns what a project may use of a kind, by name: its own, what is shared and has no namesake, and what is
// built in.
func (s *Service) List(ctx context.Context, project intent.ProjectID, kind catalogue.Kind) ([]Item, error) {
	const op = "admin.List"
	if err := checkKind(op, kind); err != nil {
		return nil, err
	}
	now, err := s.snapshot(ctx, op, project)
	if err != nil {
		return nil, err
	}
	out := []Item{}
	for _, e := range now.all.All() {
		if e.Kind() != kind {
			continue
		}
		item, err := now.find(catalogue.RefOf(e))
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// Get returns the newest version of what a project may use under a name.
func (s *Service) Get(
	ctx context.Context, project intent.ProjectID, kind catalogue.Kind, name string,
) (Item, error) {
	const op = "admin.Get"
	if err := checkKind(op, kind); err != nil {
		return Item{}, err
	}
	now, err := s.snapshot(ctx, op, project)
	if err != nil {
		return Item{}, err
	}
	if now.all.Get(kind, name) == nil {
		return Item{}, missing(op, kind, name)
	}
	return now.find(catalogue.Ref{Kind: kind, Name: name})
}

// find returns an entity that the catalogue has.
func (n *snapshot) find(ref catalogue.Ref) (Item, error) {
	if k, ok := n.own[ref]; ok {
		return n.item(k.ClusterEntity)
	}
	if k, ok := n.shared[ref]; ok {
		return n.item(k.ClusterEntity)
	}
	content, err := catalogue.Canonical(catalogue.Source(ref.Kind, ref.Name))
	return Item{Kind: ref.Kind, Name: ref.Name, BuiltIn: true, Content: content}, err
}

func missing(op string, kind catalogue.Kind, name string) error {
	return fault.New(op, fault.NotFound, fmt.Sprintf("there is no %s %.100q", kind.Noun(), name))
}

// GetVersion returns one version of what a project has under a name, or of what is shared.
func (s *Service) GetVersion(
	ctx context.Context, project intent.ProjectID, kind catalogue.Kind, name string, version int,
) (Item, error) {
	const op = "admin.GetVersion"
	if err := checkKind(op, kind); err != nil {
		return Item{}, err
	}
	now, err := s.snapshot(ctx, op, project)
	if err != nil {
		return Item{}, err
	}
	rows, err := s.c.Store.PinnedClusterEntities(ctx, project,
		[]store.ClusterEntityPin{{Kind: string(kind), Name: name, Version: version}})
	if err != nil {
		return Item{}, err
	}
	if len(rows) == 0 {
		return Item{}, fault.New(op, fault.NotFound, fmt.Sprintf("there is no version %d of a %s %.100q", version,
			kind.Noun(), name))
	}
	return now.item(rows[0])
}

// Version says when a version was made.
type Version struct {
	Version int
	Deleted bool // the entity was deleted then
	Made    time.Time
	MadeBy  string
}

// Versions lists the versions that a project itself has of an entity, newest first.
func (s *Service) Versions(
	ctx context.Context, project intent.ProjectID, kind catalogue.Kind, name string,
) ([]Version, error) {
	const op = "admin.Versions"
	if err := checkKind(op, kind); err != nil {
		return nil, err
	}
	if _, err := s.exists(ctx, project); err != nil {
		return nil, err
	}
	rows, err := s.c.Store.ClusterEntityVersions(ctx, project, string(kind), name, 1000)
	if err != nil {
		return nil, err
	}
	out := make([]Version, 0, len(rows))
	for _, row := range rows {
		out = append(out, Version(row))
	}
	return out, nil
}
