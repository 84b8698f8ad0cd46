package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// maxClusterEntityVersions is how many versions of entities a project has at most; so have all projects together of
// shared ones.
const maxClusterEntityVersions = 50_000

// ClusterEntity is a version of a provider, a hardware type, a service and so on. A zero project shares it with all.
type ClusterEntity struct {
	Project intent.ProjectID
	Kind    string
	Name    string
	Version int
	Content json.RawMessage // nil: the entity was deleted then
	Sealed  []byte          // sensitive fields
	Made    time.Time
	MadeBy  string
}

type clusterEntityRow struct {
	Project *uuid.UUID
	Kind    string
	Name    string
	Version int
	Content *json.RawMessage
	Sealed  []byte
	Made    time.Time
	MadeBy  string
}

func (r clusterEntityRow) value() (ClusterEntity, error) {
	e := ClusterEntity{
		Kind: r.Kind, Name: r.Name, Version: r.Version, Sealed: r.Sealed, Made: r.Made.UTC(), MadeBy: r.MadeBy,
	}
	if r.Project != nil {
		e.Project = *r.Project
	}
	if r.Content != nil {
		e.Content = *r.Content
	}
	return e, nil
}

// ClusterEntities returns the newest versions of what a project has, and of what is shared. With a zero project these
// are only the shared ones.
func (s *Store) ClusterEntities(ctx context.Context, project intent.ProjectID) ([]ClusterEntity, error) {
	return listed(ctx, s, "store.ClusterEntities", clusterEntityRow.value, statements.ClusterEntityNewest,
		known(project))
}

// ClusterEntityVersion says when a version was made. Of a deleted one, the entity was deleted then.
type ClusterEntityVersion struct {
	Version int
	Deleted bool
	Made    time.Time
	MadeBy  string
}

type clusterEntityVersionRow struct {
	Version int
	Deleted bool
	Made    time.Time
	MadeBy  string
}

func (r clusterEntityVersionRow) value() (ClusterEntityVersion, error) {
	return ClusterEntityVersion{Version: r.Version, Deleted: r.Deleted, Made: r.Made.UTC(), MadeBy: r.MadeBy}, nil
}

// ClusterEntityVersions lists the versions of an entity, newest first, at most limit.
func (s *Store) ClusterEntityVersions(
	ctx context.Context, project intent.ProjectID, kind, name string, limit int,
) ([]ClusterEntityVersion, error) {
	return listed(ctx, s, "store.ClusterEntityVersions", clusterEntityVersionRow.value,
		statements.ClusterEntityVersions,
		known(project), kind, name, limit)
}

// ClusterEntity returns one version of an entity.
func (s *Store) ClusterEntity(
	ctx context.Context, project intent.ProjectID, kind, name string, version int,
) (out ClusterEntity, err error) {
	err = s.read(ctx, "store.ClusterEntityVersion", func(q querier) error {
		row, err := one[clusterEntityRow](ctx, q, statements.ClusterEntityGet, known(project), kind, name, version)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// ClusterEntityPin names a version of an entity that a project may use.
type ClusterEntityPin struct {
	Kind, Name string
	Version    int
}

// PinnedClusterEntities returns those of the versions that exist, of the project or shared.
func (s *Store) PinnedClusterEntities(
	ctx context.Context, project intent.ProjectID, pins []ClusterEntityPin,
) ([]ClusterEntity, error) {
	var kinds, names []string
	var versions []int
	for _, p := range pins {
		kinds, names, versions = append(kinds, p.Kind), append(names, p.Name), append(versions, p.Version)
	}
	return listed(ctx, s, "store.ClusterEntities", clusterEntityRow.value, statements.ClusterEntityPinned,
		known(project), kinds, names, versions)
}

// ClusterEntityStamp returns a text that is another one after every change of what a project may use; with a zero
// project, after every change of an entity of anybody.
func (s *Store) ClusterEntityStamp(ctx context.Context, project intent.ProjectID) (stamp string, err error) {
	err = s.read(ctx, "store.ClusterEntityStamp", func(q querier) error {
		return q.QueryRow(ctx, statements.ClusterEntityStamp, known(project)).Scan(&stamp)
	})
	return stamp, err
}

// ClusterEntityUse names a live cluster that uses an entity.
type ClusterEntityUse struct{ Cluster, Environment, Project string }

// AddClusterEntities writes new versions, which get their numbers: all, or none. Without content they say that the
// entity is deleted, for which no live cluster may use it. The stamp is that of what the caller went by; if it is
// another one by now, nothing is written, and written is false. Versions are of one project, or all shared.
func (s *Store) AddClusterEntities(
	ctx context.Context, project intent.ProjectID, stamp string, add []ClusterEntity,
) (versions []int, written bool, err error) {
	const op = "store.AddClusterEntities"
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		versions, written = nil, false
		if _, err := tx.Exec(ctx, statements.ClusterEntityLock); err != nil {
			return err
		}
		var now string
		err := tx.QueryRow(ctx, statements.ClusterEntityStamp, known(project)).Scan(&now)
		if err != nil || now != stamp {
			return err
		}
		var count int
		if err := tx.QueryRow(ctx, statements.ClusterEntityCount, known(project)).Scan(&count); err != nil {
			return err
		}
		if count+len(add) > maxClusterEntityVersions {
			return fault.New(op, fault.Exhausted, fmt.Sprintf("there are %d versions, and may be %d", count,
				maxClusterEntityVersions)).Hint("delete old versions")
		}
		for _, e := range add {
			if e.Content == nil {
				if err := unused(ctx, tx, op, project, e, nil); err != nil {
					return err
				}
			}
			var content *string
			if e.Content != nil {
				text := string(e.Content)
				content = &text
			}
			var version int
			if err := tx.QueryRow(ctx, statements.ClusterEntityAdd, known(project), e.Kind, e.Name, content, e.Sealed,
				cleanText(e.MadeBy)).Scan(&version); err != nil {
				return err
			}
			versions = append(versions, version)
		}
		written = true
		return nil
	})
	return versions, written && err == nil, err
}

// unused fails with Conflict if live clusters use an entity, or a version of it.
func unused(
	ctx context.Context, tx pgx.Tx, op string, project intent.ProjectID, e ClusterEntity, version *int,
) error {
	uses, err := many[ClusterEntityUse](ctx, tx, statements.ClusterEntityUsed, known(project), e.Kind, e.Name, version)
	if err != nil || len(uses) == 0 {
		return err
	}
	text, hint := "", "delete the clusters first, or make them from something else"
	for i, u := range uses {
		if i > 0 {
			text += ", "
		}
		text += u.Cluster + " (environment " + u.Environment + " of " + u.Project + ")"
	}
	return fault.New(op, fault.Conflict, "it is used by clusters: "+text).Hint(hint)
}

// DeleteClusterEntityVersion deletes a version of an entity that is not the newest one, and that no live cluster is
// made from.
func (s *Store) DeleteClusterEntityVersion(
	ctx context.Context, project intent.ProjectID, kind, name string, version int,
) error {
	const op = "store.DeleteClusterEntityVersion"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.ClusterEntityLock); err != nil {
			return err
		}
		newest, err := many[clusterEntityVersionRow](ctx, tx, statements.ClusterEntityVersions, known(project),
			kind, name, 1)
		if err != nil {
			return err
		}
		if len(newest) == 1 && newest[0].Version == version {
			return fault.New(op, fault.Conflict, fmt.Sprintf("version %d is the newest one", version)).
				Hint("delete the entity itself, or replace it first")
		}
		if err := unused(ctx, tx, op, project, ClusterEntity{Kind: kind, Name: name}, &version); err != nil {
			return err
		}
		return affected(tx.Exec(ctx, statements.ClusterEntityDeleteVersion, known(project), kind, name, version))
	})
}

// ClusterEntityProjects returns the projects that have entities of their own.
func (s *Store) ClusterEntityProjects(ctx context.Context) (out []intent.ProjectID, err error) {
	err = s.read(ctx, "store.ClusterEntityProjects", func(q querier) error {
		rows, err := q.Query(ctx, statements.ClusterEntityProjects)
		if err == nil {
			out, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		}
		return err
	})
	return out, err
}
