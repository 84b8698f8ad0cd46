// Package admin keeps what administrators offer for clusters: it is the verbs on the
// catalogue, and on what projects may use of it.
//
//	verb ── decode ──▶ entity ── check against the catalogue with it ──▶ a new version in the store
//	                                └ of all others too: none may break by the change
//	a project's catalogue = built-in plug-in types ◀ shared entities ◀ its own, later ones win
//
// Every write makes a new version. It goes by a stamp of what it was checked against:
// if somebody else wrote meanwhile, it is checked again. Values of a provider that are
// secret are sealed beside it, and a marker takes their place; see secrets.go.
//
// A zero project stands for what is shared. Who may call a verb is for the callers.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/store"
)

// Config has what a Service needs; all of it is required.
type Config struct {
	Store *store.Store
	Key   *secret.Key
	Bus   *bus.Bus
}

// Service has the verbs. It is safe for concurrent use.
type Service struct {
	c Config

	mu    sync.Mutex
	known map[intent.ProjectID]*snapshot
}

// New makes a Service.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Key == nil || c.Bus == nil {
		return nil, errors.New("admin.New: a part of the configuration is missing")
	}
	return &Service{c: c, known: map[intent.ProjectID]*snapshot{}}, nil
}

// Item is an entity as people see it: its JSON with the version, and without secrets.
type Item struct {
	Kind    catalogue.Kind
	Name    string
	Version int              // 0 of what is built in
	Project intent.ProjectID // zero: it is shared
	BuiltIn bool
	Made    time.Time
	MadeBy  string
	Content json.RawMessage
}

// Catalogue returns what a project may use. It reads everything only after a change.
func (s *Service) Catalogue(ctx context.Context, project intent.ProjectID) (*catalogue.Catalogue, error) {
	now, err := s.snapshot(ctx, "admin.Catalogue", project)
	if err != nil {
		return nil, err
	}
	return now.all, nil
}

// Pinned is Catalogue with pinned versions in place of the newest ones, so that a cluster stays what it was made from.
// NotFound names the first version that is gone.
func (s *Service) Pinned(
	ctx context.Context, project intent.ProjectID, pins map[catalogue.Kind]map[string]int,
) (*catalogue.Catalogue, error) {
	const op = "admin.Pinned"
	now, err := s.snapshot(ctx, op, project)
	if err != nil {
		return nil, err
	}
	var ask []store.ClusterEntityPin
	for _, kind := range catalogue.Kinds {
		for _, name := range slices.Sorted(maps.Keys(pins[kind])) {
			version, e := pins[kind][name], now.all.Get(kind, name)
			if version != 0 && (e == nil || catalogue.HeadOf(e).Version != version) {
				ask = append(ask, store.ClusterEntityPin{Kind: string(kind), Name: name, Version: version})
			}
		}
	}
	if len(ask) == 0 {
		return now.all, nil
	}
	rows, err := s.c.Store.PinnedClusterEntities(ctx, project, ask)
	if err != nil {
		return nil, err
	}
	var old []catalogue.Entity
	for _, row := range rows {
		e, err := decodeKept(row)
		if err != nil {
			return nil, err
		}
		old = append(old, now.narrow(e))
	}
	out := now.all.With(old...)
	for _, pin := range ask {
		e := out.Get(catalogue.Kind(pin.Kind), pin.Name)
		if e == nil || catalogue.HeadOf(e).Version != pin.Version {
			return nil, fault.New(op, fault.NotFound, fmt.Sprintf("there is no version %d of the %s %s any more",
				pin.Version, catalogue.Kind(pin.Kind).Noun(), pin.Name)).
				Hint("update the cluster to what the catalogue has now")
		}
	}
	return out, nil
}

// Try resolves a template that is not kept, and checks it as Create would.
func (s *Service) Try(ctx context.Context, project intent.ProjectID, text []byte) (*catalogue.Template, error) {
	const op = "admin.Try"
	now, err := s.snapshot(ctx, op, project)
	if err != nil {
		return nil, err
	}
	e, err := catalogue.Decode(catalogue.Templates, text)
	if err != nil {
		return nil, wrong(op, "the template cannot be read", err)
	}
	if found := catalogue.Check(now.all, e); len(found) > 0 {
		return nil, wrong(op, "the template is not right", &catalogue.Invalid{Problems: found})
	}
	out, err := now.all.ResolveTemplate(e.(*catalogue.Template))
	if err != nil {
		return nil, wrong(op, "the template is not right", err)
	}
	return out, nil
}

// wrong makes a fault of what is wrong with an entity. catalogue.Problems returns its parts.
func wrong(op, text string, err error) error {
	return fault.Wrap(op, fault.Invalid, err).Say(text)
}

// exists fails with NotFound if a project does not exist.
func (s *Service) exists(ctx context.Context, project intent.ProjectID) (intent.Project, error) {
	if project == (intent.ProjectID{}) {
		return intent.Project{}, nil
	}
	return s.c.Store.Project(ctx, project)
}

func checkKind(op string, kind catalogue.Kind) error {
	if slices.Contains(catalogue.Kinds, kind) {
		return nil
	}
	return fault.New(op, fault.NotFound, fmt.Sprintf("the catalogue has no %.40q", string(kind)))
}
