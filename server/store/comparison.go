package store

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// requireCompared returns NotFound when what is compared does not exist.
func requireCompared(ctx context.Context, q querier, of intent.Compared) error {
	if of.DryRun != uuid.Nil {
		_, err := one[dryRunRow](ctx, q, statements.DryRunGet, of.Environment, of.DryRun)
		return err
	}
	for _, number := range []int{of.From, of.To} {
		if err := requireVersion(ctx, q, of.Environment, number); err != nil {
			return err
		}
	}
	return nil
}

// maxEdit is how many bytes of text a side of a DiffEdit has at most.
const maxEdit = 4 << 10

// DiffEdits passes on all differences, one by one, in no order; those of a dry run include what does not differ. The
// values of an edit are valid until visit returns.
func (s *Store) DiffEdits(ctx context.Context, of intent.Compared, visit func(intent.DiffEdit)) error {
	return s.read(ctx, "store.DiffEdits", func(q querier) error {
		if err := requireCompared(ctx, q, of); err != nil {
			return err
		}
		sql, args := statements.ComparisonVersions, []any{of.Environment, of.From, of.To, maxEdit}
		if of.DryRun != uuid.Nil {
			sql, args = statements.ComparisonDryRun, []any{of.DryRun, maxEdit}
		}
		rows, err := q.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e intent.DiffEdit
			if err := rows.Scan(&e.ID, &e.Old, &e.New, &e.Kind, nil, nil, nil); err != nil {
				return err
			}
			raw := rows.RawValues() // not copied: there may be many megabytes of them
			e.Before, e.After, e.Changes = raw[4], raw[5], raw[6]
			visit(e)
		}
		return rows.Err()
	})
}

type contentRow struct {
	Key        int64
	Attributes json.RawMessage
	Requires   []string
}

// Diffs returns differences in full, in the order in which they are named. NotFound when a version was deleted.
func (s *Store) Diffs(
	ctx context.Context, of intent.Compared, named []intent.DiffEdit,
) (out []intent.ResourceDiff, err error) {
	err = s.read(ctx, "store.Diffs", func(q querier) error {
		if of.DryRun != uuid.Nil {
			out, err = dryRunDiffs(ctx, q, of.DryRun, named)
			return err
		}
		out, err = versionDiffs(ctx, q, named)
		return err
	})
	return out, err
}

func dryRunDiffs(
	ctx context.Context, q querier, run intent.ActionID, named []intent.DiffEdit,
) (out []intent.ResourceDiff, err error) {
	var ids []string
	for _, e := range named {
		ids = append(ids, e.ID)
	}
	rows, err := many[dryRunDiffRow](ctx, q, statements.ComparisonDryRunDiffs, run, ids)
	if err != nil {
		return nil, err
	}
	found := map[string]dryRunDiffRow{}
	for _, r := range rows {
		found[r.Resource] = r
	}
	for _, e := range named {
		r, ok := found[e.ID]
		if !ok {
			return nil, fault.New("store.Diffs", fault.NotFound, "the dry run was deleted")
		}
		d, err := r.value()
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func versionDiffs(ctx context.Context, q querier, named []intent.DiffEdit) (out []intent.ResourceDiff, err error) {
	var keys []int64
	for _, e := range named {
		keys = append(keys, e.Old, e.New)
	}
	rows, err := many[contentRow](ctx, q, statements.ComparisonContents, keys)
	if err != nil {
		return nil, err
	}
	found := map[int64]contentRow{}
	for _, r := range rows {
		found[r.Key] = r
	}
	side := func(key int64) (map[string]any, error) {
		if key == 0 {
			return nil, nil
		}
		r, ok := found[key]
		if !ok {
			return nil, fault.New("store.Diffs", fault.NotFound, "one of the versions was deleted")
		}
		return diffRow{Attributes: r.Attributes, Requires: r.Requires}.attributes()
	}
	for _, e := range named {
		id, err := intent.ParseResourceID(e.ID)
		before, errBefore := side(e.Old)
		after, errAfter := side(e.New)
		if err := errors.Join(err, errBefore, errAfter); err != nil {
			return nil, err
		}
		out = append(out, intent.ResourceDiff{ID: id, Kind: e.Kind, Attributes: changes(before, after)})
	}
	return out, nil
}

// DryRunChange returns the change that a dry run found of one attribute; NotFound when it found none.
func (s *Store) DryRunChange(
	ctx context.Context, env intent.EnvironmentID, id intent.ActionID, resource, attribute string,
) (out intent.AttributeChange, err error) {
	err = s.read(ctx, "store.DryRunChange", func(q querier) error {
		if _, err := one[dryRunRow](ctx, q, statements.DryRunGet, env, id); err != nil {
			return err
		}
		var raw []byte
		if err := q.QueryRow(ctx, statements.ComparisonDryRunChange, id, resource, attribute).Scan(&raw); err != nil {
			return err
		}
		if raw == nil {
			return pgx.ErrNoRows
		}
		out, err = fromJSON[intent.AttributeChange](raw)
		return err
	})
	return out, err
}

// DryRunOnly returns a dry run without what it has found.
func (s *Store) DryRunOnly(
	ctx context.Context, env intent.EnvironmentID, id intent.ActionID,
) (out intent.DryRun, err error) {
	err = s.read(ctx, "store.DryRunOnly", func(q querier) error {
		row, err := one[dryRunRow](ctx, q, statements.DryRunGet, env, id)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// ActiveBefore returns the number of the version that was the intent before another version became it, or, of one that
// was never released, the newest that was released before it was made; 0 when there is none any more. It is never a
// preview.
func (s *Store) ActiveBefore(ctx context.Context, env intent.EnvironmentID, number int) (before int, err error) {
	err = s.read(ctx, "store.ActiveBefore", func(q querier) error {
		err := q.QueryRow(ctx, statements.VersionActiveBefore, env, number).Scan(&before)
		if isNoRows(err) {
			before, err = 0, nil
		}
		return err
	})
	return before, err
}

// FileSizes returns the sizes of those files that the members of one of the projects may read, by SHA-1.
func (s *Store) FileSizes(
	ctx context.Context, names []string, projects []intent.ProjectID,
) (sizes map[string]int, err error) {
	err = s.read(ctx, "store.FileSizes", func(q querier) error {
		rows, err := q.Query(ctx, statements.FileSizes, names, projects)
		if err != nil {
			return err
		}
		sizes = map[string]int{}
		var name string
		var size int
		_, err = pgx.ForEachRow(rows, []any{&name, &size}, func() error {
			sizes[name] = size
			return nil
		})
		return err
	})
	return sizes, err
}

// Files returns the contents of files by SHA-1; those that are not stored are missing.
func (s *Store) Files(ctx context.Context, names []string) (contents map[string][]byte, err error) {
	err = s.read(ctx, "store.Files", func(q querier) error {
		rows, err := q.Query(ctx, statements.FileContents, names)
		if err != nil {
			return err
		}
		contents = map[string][]byte{}
		var name string
		var content []byte
		_, err = pgx.ForEachRow(rows, []any{&name, &content}, func() error {
			contents[name] = content
			return nil
		})
		return err
	})
	return contents, err
}
