package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/store"
)

// maxEntities is how many entities a project has at most; so many are shared at most, too.
const maxEntities = 5000

// draft is an entity that is to be written.
type draft struct {
	catalogue.Ref
	entity catalogue.Entity // nil: it is to be deleted
	text   []byte           // canonical
}

func decodeDraft(kind catalogue.Kind, text []byte) (draft, error) {
	e, err := catalogue.Decode(kind, text)
	if err != nil {
		return draft{}, err
	}
	canonical, err := catalogue.Canonical(text)
	return draft{catalogue.RefOf(e), e, canonical}, err
}

// plan is what drafts make of a catalogue.
type plan struct {
	project intent.ProjectID
	now     *snapshot
	mine    map[catalogue.Ref]kept // of the project, with the drafts
	after   *catalogue.Catalogue
	drafts  []draft
	rows    []store.ClusterEntity                 // to be written, in the order of drafts; see unchanged
	same    map[catalogue.Ref]bool                // drafts that change nothing
	wrong   map[catalogue.Ref][]catalogue.Problem // drafts that are not right
}

// plan judges drafts. The error is not about what is wrong with them.
func (s *Service) plan(
	ctx context.Context, project intent.ProjectID, now *snapshot, drafts []draft,
) (*plan, error) {
	p := &plan{
		project: project, now: now, mine: maps.Clone(now.in(project)), drafts: drafts,
		same: map[catalogue.Ref]bool{}, wrong: map[catalogue.Ref][]catalogue.Problem{},
	}
	for _, d := range drafts {
		if d.entity == nil {
			delete(p.mine, d.Ref)
			continue
		}
		p.mine[d.Ref] = kept{entity: d.entity}
	}
	if project == (intent.ProjectID{}) {
		p.after = assemble(p.mine, nil)
	} else {
		p.after = assemble(now.shared, p.mine)
	}
	wrong := catalogue.CheckAll(p.after)
	for _, d := range drafts {
		row := store.ClusterEntity{Kind: string(d.Kind), Name: d.Name, MadeBy: access.Of(ctx).Name}
		if d.entity != nil {
			var before *kept
			if k, ok := now.in(project)[d.Ref]; ok {
				before = &k
			}
			content, secrets, more, err := s.split(now, p.after, d.entity, d.text, before)
			if err != nil {
				return nil, err
			}
			if found := slices.Concat(wrong[d.Ref], more); len(found) > 0 {
				p.wrong[d.Ref] = found
			}
			row.Content = content
			if p.same[d.Ref], err = s.same(before, content, secrets); err != nil {
				return nil, err
			}
			if row.Sealed, err = s.seal(project, d.Name, secrets); err != nil {
				return nil, err
			}
		}
		p.rows = append(p.rows, row)
	}
	return p, nil
}

// same reports whether a version is as what is kept.
func (s *Service) same(before *kept, content []byte, secrets map[string]json.RawMessage) (bool, error) {
	if before == nil {
		return false, nil
	}
	had, err := catalogue.Canonical(before.Content)
	if err != nil || !bytes.Equal(had, content) {
		return false, err
	}
	open, err := s.open(before.ClusterEntity)
	return maps.EqualFunc(open, secrets, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }), err
}

// breaks fails with Conflict if a plan would break what is not in it: of the project, or if it changes what is shared,
// of any project.
func (s *Service) breaks(ctx context.Context, op string, p *plan) error {
	broken := []string{}
	note := func(where string, found map[catalogue.Ref][]catalogue.Problem) {
		for _, ref := range slices.SortedFunc(maps.Keys(found), compareRefs) {
			broken = append(broken, ref.String()+where+" ("+found[ref][0].String()+")")
		}
	}
	note("", catalogue.Breaks(p.now.all, p.after))
	if p.project == (intent.ProjectID{}) {
		projects, err := s.c.Store.ClusterEntityProjects(ctx)
		if err != nil {
			return err
		}
		for _, id := range projects {
			project, err := s.c.Store.Project(ctx, id)
			if err != nil {
				if fault.Is(err, fault.NotFound) {
					continue // it was deleted just now
				}
				return err
			}
			theirs, err := s.snapshot(ctx, op, id)
			if err != nil {
				return err
			}
			found := catalogue.Breaks(theirs.all, assemble(p.mine, theirs.own))
			maps.DeleteFunc(found, func(ref catalogue.Ref, _ []catalogue.Problem) bool {
				_, own := theirs.own[ref]
				return !own // it was noted already
			})
			note(" of the project "+project.Name, found)
		}
	}
	if len(broken) == 0 {
		return nil
	}
	const most = 5
	if len(broken) > most {
		broken = append(broken[:most], fmt.Sprintf("%d more", len(broken)-most))
	}
	return fault.New(op, fault.Conflict, "others depend on it: "+strings.Join(broken, "; ")).
		Hint("change or delete these first")
}

func compareRefs(a, b catalogue.Ref) int {
	if a.Kind != b.Kind {
		return slices.Index(catalogue.Kinds, a.Kind) - slices.Index(catalogue.Kinds, b.Kind)
	}
	return strings.Compare(a.Name, b.Name)
}

// write makes a plan of the present catalogue and carries it out. If somebody else writes meanwhile, it starts over.
func (s *Service) write(
	ctx context.Context, op string, project intent.ProjectID, prepare func(now *snapshot) (*plan, error),
) error {
	const tries = 8
	for range tries {
		now, err := s.snapshot(ctx, op, project)
		if err != nil {
			return err
		}
		p, err := prepare(now)
		if err != nil {
			return err
		}
		if len(p.mine) > maxEntities && len(p.mine) > len(now.in(project)) {
			return fault.New(op, fault.Exhausted, fmt.Sprintf("the catalogue would have %d entries, and may have %d",
				len(p.mine), maxEntities))
		}
		if len(p.rows) == 0 {
			return nil
		}
		if err := s.breaks(ctx, op, p); err != nil {
			return err
		}
		_, written, err := s.c.Store.AddClusterEntities(ctx, project, now.stamp, p.rows)
		if err != nil {
			return err
		}
		if written {
			s.changed(project)
			return nil
		}
	}
	return fault.New(op, fault.Conflict, "others kept changing the catalogue at the same time").Hint("try it again")
}

func (s *Service) changed(project intent.ProjectID) {
	id := ""
	if project != (intent.ProjectID{}) {
		id = project.String()
	}
	s.c.Bus.Publish(bus.Event{Topic: bus.Catalogue, ID: id})
}

// note tells the audit trail what a verb is about.
func (s *Service) note(ctx context.Context, project intent.ProjectID, subject string) error {
	known, err := s.exists(ctx, project)
	if err != nil {
		return err
	}
	if project != (intent.ProjectID{}) {
		audit.OnProject(ctx, known)
	}
	audit.Subject(ctx, subject)
	return nil
}

// Create writes an entity that there is not yet; Conflict if there is. One of a project takes the place of a shared
// one of the same name.
func (s *Service) Create(
	ctx context.Context, project intent.ProjectID, kind catalogue.Kind, text []byte,
) (Item, error) {
	const op = "admin.Create"
	if err := checkKind(op, kind); err != nil {
		return Item{}, err
	}
	d, err := decodeDraft(kind, text)
	if err != nil {
		return Item{}, wrong(op, "the "+kind.Noun()+" cannot be read", err)
	}
	return s.put(ctx, op, project, d, func(_ kept, there bool) error {
		if there {
			return fault.New(op, fault.Conflict, fmt.Sprintf("there is a %s %s already", kind.Noun(), d.Name)).
				Hint("replace it, or choose another name")
		}
		return nil
	})
}

// Replace writes a new version of an entity. Of secrets that have the marker catalogue.Hidden the value stays, unless
// they would be sent elsewhere then; see secrets.go.
func (s *Service) Replace(
	ctx context.Context, project intent.ProjectID, kind catalogue.Kind, name string, text []byte,
) (Item, error) {
	return s.replace(ctx, "admin.Replace", project, kind, name, text, nil)
}

// ReplaceVersion is Replace for people who edit what they have seen: it fails with Conflict if the newest version is
// not the one that they began with.
func (s *Service) ReplaceVersion(
	ctx context.Context, project intent.ProjectID, kind catalogue.Kind, name string, version int, text []byte,
) (Item, error) {
	return s.replace(ctx, "admin.ReplaceVersion", project, kind, name, text, &version)
}

func (s *Service) replace(
	ctx context.Context, op string, project intent.ProjectID, kind catalogue.Kind, name string, text []byte, seen *int,
) (Item, error) {
	if err := checkKind(op, kind); err != nil {
		return Item{}, err
	}
	d, err := decodeDraft(kind, text)
	if err != nil {
		return Item{}, wrong(op, "the "+kind.Noun()+" cannot be read", err)
	}
	if d.Name != name {
		return Item{}, wrong(op, "the "+kind.Noun()+" cannot be replaced",
			&catalogue.Invalid{Problems: []catalogue.Problem{
				{Field: "name", Text: fmt.Sprintf("it has to stay %.100q: others refer to it by its name", name)},
			}})
	}
	return s.put(ctx, op, project, d, func(before kept, there bool) error {
		if !there {
			return s.absent(ctx, op, project, d.Ref)
		}
		if seen != nil && *seen != before.Version {
			return fault.New(op, fault.Conflict, fmt.Sprintf("%s has version %d by now, and you changed version %d",
				d.Ref, before.Version, *seen)).Hint("look at what others changed, and save again")
		}
		return nil
	})
}

// absent says why a project cannot change something.
func (s *Service) absent(ctx context.Context, op string, project intent.ProjectID, ref catalogue.Ref) error {
	now, err := s.snapshot(ctx, op, project)
	if err != nil {
		return err
	}
	if now.all.Get(ref.Kind, ref.Name) == nil {
		return missing(op, ref.Kind, ref.Name)
	}
	if _, ok := now.shared[ref]; ok {
		return fault.New(op, fault.NotFound, fmt.Sprintf("the project has no %s %s of its own: it is shared",
			ref.Kind.Noun(), ref.Name)).Hint("create one of the project, which takes its place")
	}
	return fault.New(op, fault.NotFound, fmt.Sprintf("the %s %s is built in", ref.Kind.Noun(), ref.Name)).
		Hint("create one, which takes its place")
}

func (s *Service) put(
	ctx context.Context, op string, project intent.ProjectID, d draft, may func(before kept, there bool) error,
) (Item, error) {
	if err := s.note(ctx, project, d.String()); err != nil {
		return Item{}, err
	}
	err := s.write(ctx, op, project, func(now *snapshot) (*plan, error) {
		before, there := now.in(project)[d.Ref]
		if err := may(before, there); err != nil {
			return nil, err
		}
		p, err := s.plan(ctx, project, now, []draft{d})
		if err != nil {
			return nil, err
		}
		if found := p.wrong[d.Ref]; len(found) > 0 {
			return nil, wrong(op, d.String()+" is not right", &catalogue.Invalid{Problems: found})
		}
		s.noteChange(ctx, p, before, there)
		return p, nil
	})
	if err != nil {
		return Item{}, err
	}
	return s.Get(ctx, project, d.Kind, d.Name)
}

// noteChange tells the audit trail what the only draft of a plan changes, without secrets.
func (s *Service) noteChange(ctx context.Context, p *plan, before kept, there bool) {
	var was, is any
	if there {
		if text, err := p.now.masked(catalogue.Kind(before.Kind), before.Content); err == nil {
			was = json.RawMessage(text)
		}
	}
	if len(p.rows) == 1 && p.rows[0].Content != nil {
		is = p.rows[0].Content
	}
	audit.Change(ctx, was, is)
}

// Delete deletes an entity; its old versions stay for the clusters that were made from them. Conflict names the
// entities, or the live clusters, that use it.
func (s *Service) Delete(ctx context.Context, project intent.ProjectID, kind catalogue.Kind, name string) error {
	const op = "admin.Delete"
	if err := checkKind(op, kind); err != nil {
		return err
	}
	d := draft{Ref: catalogue.Ref{Kind: kind, Name: name}}
	if err := s.note(ctx, project, d.String()); err != nil {
		return err
	}
	return s.write(ctx, op, project, func(now *snapshot) (*plan, error) {
		before, there := now.in(project)[d.Ref]
		if !there {
			return nil, s.absent(ctx, op, project, d.Ref)
		}
		p, err := s.plan(ctx, project, now, []draft{d})
		if err == nil {
			s.noteChange(ctx, p, before, there)
		}
		return p, err
	})
}

// DeleteVersion deletes an old version of an entity that no live cluster is made from.
func (s *Service) DeleteVersion(
	ctx context.Context, project intent.ProjectID, kind catalogue.Kind, name string, version int,
) error {
	const op = "admin.DeleteVersion"
	if err := checkKind(op, kind); err != nil {
		return err
	}
	ref := catalogue.Ref{Kind: kind, Name: name}
	if err := s.note(ctx, project, fmt.Sprintf("version %d of %s", version, ref)); err != nil {
		return err
	}
	err := s.c.Store.DeleteClusterEntityVersion(ctx, project, string(kind), name, version)
	if fault.Is(err, fault.NotFound) {
		return fault.New(op, fault.NotFound, fmt.Sprintf("there is no version %d of a %s %.100q", version, kind.Noun(),
			name))
	}
	return err
}
