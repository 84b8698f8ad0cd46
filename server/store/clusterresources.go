package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type clusterResourceRow struct {
	Project *uuid.UUID
	Kind    string
	Plugin  string
	Type    string
	Name    string
	Version int
	Size    int64
	Hash    string
	Live    bool
	Slated  bool
	Made    time.Time
	MadeBy  string
}

func (r clusterResourceRow) value() (intent.ClusterResource, error) {
	out := intent.ClusterResource{
		ClusterResourceRef: intent.ClusterResourceRef{
			Kind: r.Kind, Plugin: r.Plugin, Type: r.Type, Name: r.Name, Version: r.Version,
		},
		Size: r.Size, Hash: r.Hash, Live: r.Live, Slated: r.Slated, Made: r.Made.UTC(), MadeBy: r.MadeBy,
	}
	if r.Project != nil {
		out.Project = *r.Project
	}
	return out, nil
}

// ClusterResourceFilter says which versions of resources to list. Empty fields do not matter.
type ClusterResourceFilter struct {
	Kind, Plugin, Type, Name string
	Version                  int
	Status                   intent.ClusterResourceStatus
	Shared                   bool // of a project: list the shared ones too
}

// ClusterResources lists versions of a project's resources, or of the shared ones if the project is zero: by name,
// newest first.
func (s *Store) ClusterResources(
	ctx context.Context, project intent.ProjectID, f ClusterResourceFilter,
) ([]intent.ClusterResource, error) {
	var live, slated *bool
	if l, sl, ok := f.Status.Flags(); ok {
		live, slated = &l, &sl
	}
	var version *int
	if f.Version != 0 {
		version = &f.Version
	}
	return listed(ctx, s, "store.ClusterResources", clusterResourceRow.value, statements.ClusterResourceRows,
		known(project), orAny(f.Kind), orAny(f.Plugin), orAny(f.Type), orAny(f.Name), version, f.Shared, live, slated)
}

// orAny is nil, which filters nothing, for an empty text.
func orAny(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// ClusterResource returns one version.
func (s *Store) ClusterResource(
	ctx context.Context, ref intent.ClusterResourceRef,
) (out intent.ClusterResource, err error) {
	err = s.read(ctx, "store.ClusterResource", func(q querier) error {
		out, err = clusterResource(ctx, q, ref)
		return err
	})
	return out, err
}

func clusterResource(ctx context.Context, q querier, ref intent.ClusterResourceRef) (intent.ClusterResource, error) {
	all, err := collect(ctx, q, clusterResourceRow.value, statements.ClusterResourceRows, known(ref.Project), ref.Kind,
		ref.Plugin, ref.Type, ref.Name, ref.Version, false, nil, nil)
	if err == nil && len(all) == 0 {
		err = fault.New("store.ClusterResource", fault.NotFound,
			fmt.Sprintf("there is no version %d of the resource %.200q", ref.Version, ref.Name))
	}
	if err != nil {
		return intent.ClusterResource{}, err
	}
	return all[0], nil
}

// ClusterResourceUse is how much the versions of a project's resources are.
type ClusterResourceUse struct{ Versions, Bytes int64 }

// ClusterResourceUse returns how much the versions of a project's resources are, or the shared ones.
func (s *Store) ClusterResourceUse(
	ctx context.Context, project intent.ProjectID,
) (use ClusterResourceUse, err error) {
	err = s.read(ctx, "store.ClusterResourceUse", func(q querier) error {
		use, err = one[ClusterResourceUse](ctx, q, statements.ClusterResourceUse, known(project))
		return err
	})
	return use, err
}

// AddClusterResource records a new version, and returns it with its number. allowed judges what the project uses before
// it. stored reports whether its content is kept; until AddClusterResource returns, ForgetClusterContent does not
// delete it. Both may be called several times.
func (s *Store) AddClusterResource(
	ctx context.Context, r intent.ClusterResource, allowed func(ClusterResourceUse) error,
	stored func(context.Context) error,
) (intent.ClusterResource, error) {
	err := s.write(ctx, "store.AddClusterResource", func(tx pgx.Tx) error {
		project := known(r.Project)
		if _, err := tx.Exec(ctx, statements.ClusterResourceLock, project); err != nil {
			return err
		}
		use, err := one[ClusterResourceUse](ctx, tx, statements.ClusterResourceUse, project)
		if err != nil {
			return err
		}
		if err := allowed(use); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.ClusterContentLock, r.Hash); err != nil {
			return err
		}
		if err := stored(ctx); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, statements.ClusterResourceNumber, project, r.Kind, r.Plugin, r.Type, r.Name).
			Scan(&r.Version); err != nil {
			return err
		}
		return tx.QueryRow(ctx, statements.ClusterResourceAdd, project, r.Kind, r.Plugin, r.Type, r.Name, r.Version,
			r.Size, r.Hash, cleanText(r.MadeBy)).Scan(&r.Made)
	})
	if err != nil {
		return intent.ClusterResource{}, err
	}
	r.Live, r.Slated, r.Made = false, false, r.Made.UTC()
	return r, nil
}

// SlateClusterResource says whether plug-ins have a version after the next sync. Another version of the name that was
// to be had then is not.
func (s *Store) SlateClusterResource(
	ctx context.Context, ref intent.ClusterResourceRef, slated bool,
) (out intent.ClusterResource, err error) {
	err = s.changeResource(ctx, "store.SlateClusterResource", ref, func(tx pgx.Tx, r intent.ClusterResource) error {
		out = r
		if r.Slated == slated {
			return nil
		}
		out.Slated = slated
		names := []any{known(ref.Project), ref.Kind, ref.Plugin, ref.Type, ref.Name, ref.Version}
		if slated {
			if _, err := tx.Exec(ctx, statements.ClusterResourceUnslate, names...); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, statements.ClusterResourceSlate, append(names, slated)...)
		return err
	})
	return out, err
}

// changeResource calls f with a version that nobody else changes meanwhile.
func (s *Store) changeResource(
	ctx context.Context, op string, ref intent.ClusterResourceRef, f func(pgx.Tx, intent.ClusterResource) error,
) error {
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.ClusterResourceLock, known(ref.Project)); err != nil {
			return err
		}
		r, err := clusterResource(ctx, tx, ref)
		if err != nil {
			return err
		}
		return f(tx, r)
	})
}

// SyncClusterResources makes what is staged active, and what is recalled inactive, and returns both. With a zero
// project these are the shared ones.
func (s *Store) SyncClusterResources(
	ctx context.Context, project intent.ProjectID,
) (activated, retired []intent.ClusterResource, err error) {
	err = s.write(ctx, "store.SyncClusterResources", func(tx pgx.Tx) (err error) {
		if _, err = tx.Exec(ctx, statements.ClusterResourceLock, known(project)); err != nil {
			return err
		}
		retired, err = collect(ctx, tx, clusterResourceRow.value, statements.ClusterResourceRetire, known(project))
		if err != nil {
			return err
		}
		activated, err = collect(ctx, tx, clusterResourceRow.value, statements.ClusterResourceEnliven, known(project))
		return err
	})
	return activated, retired, err
}

// DeleteClusterResource removes a version, and returns it. Conflict: it is not inactive.
func (s *Store) DeleteClusterResource(
	ctx context.Context, ref intent.ClusterResourceRef,
) (out intent.ClusterResource, err error) {
	const op = "store.DeleteClusterResource"
	err = s.changeResource(ctx, op, ref, func(tx pgx.Tx, r intent.ClusterResource) error {
		out = r
		if r.Live || r.Slated {
			return fault.New(op, fault.Conflict,
				fmt.Sprintf("version %d of the resource %s is %s", r.Version, r.Name, r.Status())).
				Hint("recall it, and sync if it was active; then delete it")
		}
		_, err := tx.Exec(ctx, statements.ClusterResourceDelete, known(ref.Project), ref.Kind, ref.Plugin, ref.Type,
			ref.Name, ref.Version)
		return err
	})
	return out, err
}

// ForgetClusterContent calls drop if no version has a content, and reports that; no version with it is added meanwhile.
// drop may be called several times.
func (s *Store) ForgetClusterContent(
	ctx context.Context, hash string, drop func(context.Context) error,
) (dropped bool, err error) {
	err = s.write(ctx, "store.ForgetClusterContent", func(tx pgx.Tx) error {
		dropped = false
		if _, err := tx.Exec(ctx, statements.ClusterContentLock, hash); err != nil {
			return err
		}
		used, err := hashesUsed(ctx, tx, []string{hash})
		if err != nil || len(used) > 0 {
			return err
		}
		dropped = true
		return drop(ctx)
	})
	return dropped && err == nil, err
}

// ClusterContentsUsed returns those of the contents that a version has.
func (s *Store) ClusterContentsUsed(ctx context.Context, hashes []string) (used []string, err error) {
	err = s.read(ctx, "store.ClusterContentsUsed", func(q querier) error {
		used, err = hashesUsed(ctx, q, hashes)
		return err
	})
	return used, err
}

func hashesUsed(ctx context.Context, q querier, hashes []string) ([]string, error) {
	rows, err := q.Query(ctx, statements.ClusterContentsUsed, hashes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// LiveClusterResources lists what a plug-in has for a project: of its own and of the shared ones, one for each type and
// name.
func (s *Store) LiveClusterResources(
	ctx context.Context, project intent.ProjectID, kind, plugin string,
) ([]intent.ClusterResource, error) {
	return listed(ctx, s, "store.LiveClusterResources", clusterResourceRow.value, statements.ClusterResourceLive,
		known(project), kind, plugin)
}

// LiveClusterContent returns the size of a content. NotFound: no plug-in has it for this project.
func (s *Store) LiveClusterContent(
	ctx context.Context, project intent.ProjectID, hash string,
) (size int64, err error) {
	const op = "store.LiveClusterContent"
	err = s.read(ctx, op, func(q querier) error {
		err := q.QueryRow(ctx, statements.ClusterContentLive, known(project), hash).Scan(&size)
		if isNoRows(err) {
			return fault.New(op, fault.NotFound, "no active resource of this project has that content")
		}
		return err
	})
	return size, err
}
