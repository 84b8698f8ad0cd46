package store

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"ordain.dev/ordain/internal/intent"
)

type diffRow struct {
	ID         string
	Newer      bool
	Attributes json.RawMessage
	Requires   []string
}

// attributes returns what a resource is compared by: its attributes and, as in the API, its requirements.
func (r diffRow) attributes() (map[string]any, error) {
	m, err := fromJSON[map[string]any](r.Attributes)
	if m == nil {
		m = map[string]any{}
	}
	requires := make([]any, 0, len(r.Requires))
	for _, id := range r.Requires {
		requires = append(requires, id)
	}
	m["requires"] = requires
	return m, err
}

// DiffVersions compares two versions of an environment; unchanged resources are left out.
func (s *Store) DiffVersions(
	ctx context.Context,
	env intent.EnvironmentID,
	from, to int,
) (out []intent.ResourceDiff, err error) {
	err = s.read(ctx, "store.DiffVersions", func(q querier) error {
		for _, number := range []int{from, to} {
			if err := requireVersion(ctx, q, env, number); err != nil {
				return err
			}
		}
		rows, err := many[diffRow](ctx, q, statements.DiffContents, env, from, to)
		if err != nil {
			return err
		}
		out, err = pairUp(rows)
		return err
	})
	return out, err
}

// pairUp turns rows, which are sorted by id with the older version first, into diffs.
func pairUp(rows []diffRow) ([]intent.ResourceDiff, error) {
	out := []intent.ResourceDiff{}
	for i := 0; i < len(rows); i++ {
		id, err := intent.ParseResourceID(rows[i].ID)
		if err != nil {
			return nil, err
		}
		d := intent.ResourceDiff{ID: id}
		var before, after map[string]any
		var errBefore, errAfter error
		switch {
		case i+1 < len(rows) && rows[i+1].ID == rows[i].ID:
			d.Kind = intent.DiffModified
			before, errBefore = rows[i].attributes()
			after, errAfter = rows[i+1].attributes()
			i++
		case rows[i].Newer:
			d.Kind = intent.DiffAdded
			after, errAfter = rows[i].attributes()
		default:
			d.Kind = intent.DiffDeleted
			before, errBefore = rows[i].attributes()
		}
		if errBefore != nil {
			return nil, errBefore
		}
		if errAfter != nil {
			return nil, errAfter
		}
		d.Attributes = changes(before, after)
		if d.Kind == intent.DiffModified && len(d.Attributes) == 0 {
			continue // only something that is not deployed differs, such as the resource set
		}
		out = append(out, d)
	}
	return out, nil
}

func changes(before, after map[string]any) map[string]intent.AttributeChange {
	out := make(map[string]intent.AttributeChange)
	for name, old := range before {
		if now, ok := after[name]; !ok || !equalJSON(old, now) {
			out[name] = intent.AttributeChange{Current: old, Desired: now}
		}
	}
	for name, now := range after {
		if _, ok := before[name]; !ok {
			out[name] = intent.AttributeChange{Desired: now}
		}
	}
	return out
}

func equalJSON(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}
