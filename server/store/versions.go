package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/locks"
)

type versionRow struct {
	Environment uuid.UUID
	Number      int
	Created     time.Time
	Released    *time.Time
	Status      string
	Total       int
	Undefined   int
	Provenance  json.RawMessage
	Hold        json.RawMessage
	Confirmed   json.RawMessage
	Preview     bool
}

func (r versionRow) value() (intent.Version, error) {
	provenance, err1 := fromJSON[intent.Provenance](r.Provenance)
	hold, err2 := maybeJSON[intent.Hold](r.Hold)
	confirmed, err3 := maybeJSON[intent.Confirmation](r.Confirmed)
	return intent.Version{
		Environment: r.Environment, Number: r.Number, Created: r.Created.UTC(), Released: utc(r.Released),
		Status: intent.VersionStatus(r.Status), Total: r.Total, Provenance: provenance,
		Hold: hold, Confirmed: confirmed, Preview: r.Preview,
	}, errors.Join(err1, err2, err3)
}

// Version returns one version.
func (s *Store) Version(ctx context.Context, env intent.EnvironmentID, number int) (out intent.Version, err error) {
	err = s.read(ctx, "store.Version", func(q querier) error {
		row, err := one[versionRow](ctx, q, statements.VersionGet, env, number)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// ActiveVersion returns the version that is the intent, nil before the first release.
func (s *Store) ActiveVersion(ctx context.Context, env intent.EnvironmentID) (out *intent.Version, err error) {
	err = s.read(ctx, "store.ActiveVersion", func(q querier) error {
		out = nil
		row, err := one[versionRow](ctx, q, statements.VersionActive, env)
		if isNoRows(err) {
			return s.exists(ctx, q, env)
		}
		if err != nil {
			return err
		}
		v, err := row.value()
		out = &v
		return err
	})
	return out, err
}

// Versions lists the versions of an environment.
func (s *Store) Versions(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Version], error) {
	return page(ctx, s, "store.Versions", VersionList, q, versionRow.value, env)
}

type resourceRow struct {
	ID            string
	Type          string
	Agent         string
	Value         string
	Attributes    json.RawMessage
	AttributeHash string
	Requires      []string
	ResourceSet   string
	Undefined     []string
	SendEvent     bool
	ReceiveEvents bool
	Purged        bool
}

// keptRow is a resourceRow of a whole version.
type keptRow struct {
	resourceRow
	KeptRequires []string
}

func (r resourceRow) value(version int) (intent.Resource, error) {
	id, err1 := intent.ParseResourceID(r.ID)
	requires, err2 := parseIDs(r.Requires)
	undefined := r.Undefined
	if len(undefined) == 0 {
		undefined = nil
	}
	return intent.Resource{
		ID: id, Version: version, Attributes: r.Attributes, AttributeHash: r.AttributeHash, Requires: requires,
		ResourceSet: r.ResourceSet, Undefined: undefined, SendEvent: r.SendEvent, ReceiveEvents: r.ReceiveEvents,
		Purged: r.Purged,
	}, errors.Join(err1, err2)
}

func keptAtVersion(number int) func(keptRow) (intent.Resource, error) {
	return func(r keptRow) (intent.Resource, error) {
		resource, err1 := r.resourceRow.value(number)
		var err2 error
		resource.KeptRequires, err2 = parseIDs(r.KeptRequires)
		return resource, errors.Join(err1, err2)
	}
}

func atVersion(number int) func(resourceRow) (intent.Resource, error) {
	return func(r resourceRow) (intent.Resource, error) { return r.value(number) }
}

func parseIDs(texts []string) ([]intent.ResourceID, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	return convert(texts, intent.ParseResourceID)
}

func idTexts(ids []intent.ResourceID) []string {
	texts := make([]string, 0, len(ids))
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	return texts
}

// VersionResources returns all resources of a version by id. A purged one has in KeptRequires what it required when
// it was last kept, as of the active version.
func (s *Store) VersionResources(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
) (out []intent.Resource, err error) {
	err = s.read(ctx, "store.VersionResources", func(q querier) error {
		out, err = collect(ctx, q, keptAtVersion(number), statements.VersionResources, env, number)
		if err == nil && len(out) == 0 {
			return requireVersion(ctx, q, env, number)
		}
		return err
	})
	// Sorted here, because the database would sort whole rows, on disk when they are many.
	slices.SortFunc(out, func(a, b intent.Resource) int { return a.ID.Compare(b.ID) })
	return out, err
}

// VersionChanges returns, in no particular order, the resources of version number that version from does not have in
// the same way, and those of purged that it has. total is how many resources it has in all.
func (s *Store) VersionChanges(
	ctx context.Context,
	env intent.EnvironmentID,
	from, number int,
	purged []intent.ResourceID,
) (out []intent.Resource, total int, err error) {
	err = s.read(ctx, "store.VersionChanges", func(q querier) error {
		if err := q.QueryRow(ctx, statements.VersionTotal, env, number).Scan(&total); err != nil {
			return err
		}
		out, err = collect(ctx, q, keptAtVersion(number), statements.VersionChanges, env, from, number,
			idTexts(purged))
		return err
	})
	return out, total, err
}

func requireVersion(ctx context.Context, q querier, env intent.EnvironmentID, number int) error {
	_, err := one[versionRow](ctx, q, statements.VersionGet, env, number)
	if isNoRows(err) {
		err = fault.New("store.Version", fault.NotFound, "there is no such version")
	}
	return err
}

// VersionResourcePage lists the resources of a version, a page at a time.
func (s *Store) VersionResourcePage(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	q intent.ListQuery,
) (intent.Page[intent.Resource], error) {
	const op = "store.VersionResourcePage"
	if err := s.read(ctx, op, func(q querier) error { return requireVersion(ctx, q, env, number) }); err != nil {
		return intent.Page[intent.Resource]{}, err
	}
	return page(ctx, s, op, VersionResourceList, q, atVersion(number), env, number)
}

// VersionResource returns one resource as a version has it.
func (s *Store) VersionResource(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	id intent.ResourceID,
) (out intent.Resource, err error) {
	err = s.read(ctx, "store.VersionResource", func(q querier) error {
		row, err := one[resourceRow](ctx, q, statements.VersionResource, env, number, id.String())
		if err == nil {
			out, err = row.value(number)
		}
		return err
	})
	return out, err
}

// codeJSON is the document column of code.
type codeJSON struct {
	Code []intent.ResourceCode `json:"code"`
	Pip  intent.PipConfig      `json:"pip"`
}

// VersionCode returns the code that executors load for a version.
func (s *Store) VersionCode(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
) ([]intent.ResourceCode, intent.PipConfig, error) {
	var document codeJSON
	err := s.read(ctx, "store.VersionCode", func(q querier) error {
		var raw []byte
		err := q.QueryRow(ctx, statements.VersionCode, env, number).Scan(&raw)
		if err == nil {
			document, err = fromJSON[codeJSON](raw)
		}
		return err
	})
	return document.Code, document.Pip, err
}

// VersionOrigins returns NewVersion.Origins, which says where values were set, as it was stored.
func (s *Store) VersionOrigins(ctx context.Context, env intent.EnvironmentID, number int) (packed []byte, err error) {
	err = s.read(ctx, "store.VersionOrigins", func(q querier) error {
		return q.QueryRow(ctx, statements.VersionOrigins, env, number).Scan(&packed)
	})
	return packed, err
}

// DeleteVersion deletes a version; Conflict for the active one.
func (s *Store) DeleteVersion(ctx context.Context, env intent.EnvironmentID, number int) error {
	const op = "store.DeleteVersion"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		v, err := one[versionRow](ctx, tx, statements.VersionGet, env, number)
		if err != nil {
			return err
		}
		if v.Status == string(intent.VersionActive) {
			return fault.New(op, fault.Conflict, "the active version cannot be deleted").
				Hint("release another one first")
		}
		return deleteVersions(ctx, tx, env, []int{number})
	})
}

// PruneVersions deletes the oldest retired and skipped versions so that at most keep remain, and returns how many it
// deleted.
func (s *Store) PruneVersions(ctx context.Context, env intent.EnvironmentID, keep int) (n int, err error) {
	const op = "store.PruneVersions"
	if keep < 0 {
		return 0, fault.New(op, fault.Invalid, "the number of versions to keep is negative")
	}
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := lockEnvironment(ctx, tx, env); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, statements.VersionOld, env, keep)
		if err != nil {
			return err
		}
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return err
		}
		n = len(numbers)
		return deleteVersions(ctx, tx, env, numbers)
	})
	return n, err
}

// deleteVersions deletes versions and what only they used.
func deleteVersions(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, numbers []int) error {
	if len(numbers) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, statements.VersionDelete, env, numbers)
	if err != nil {
		return err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		// Orphans that no version has any more are forgotten, with their state.
		if _, err := tx.Exec(ctx, statements.OrphanCollect, env, keys); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.ContentCollect, env, keys); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.ResourceCollect, env); err != nil {
			return err
		}
	}
	return collectCode(ctx, tx)
}

// collectCode deletes code that no version uses any more, unless a version is being stored.
func collectCode(ctx context.Context, tx pgx.Tx) error {
	var alone bool
	if err := tx.QueryRow(ctx, statements.CodeLockAlone, locks.Code).Scan(&alone); err != nil || !alone {
		return err
	}
	_, err := tx.Exec(ctx, statements.CodeCollect)
	return err
}
