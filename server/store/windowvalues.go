package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Resources are sorted by parts of their state, which have few values and no index, since they change all the time (see
// migration 13). Sorting 100,000 resources for each page takes long; so a page is put together value by value, each in
// the order of an index:
//
//	which values? ─▶ those with the first, by id ─▶ those with the second … ─▶ until the page is full
//
// The planner knows how many resources have a value: for a common one it follows the index and stops when the page is
// full, and for a rare one it sorts the few that there are.

// fewValued is a column that a list is sorted by, and that has few values.
type fewValued struct {
	counted string            // the same, in the rows for counting
	values  []string          // ascending
	is      map[string]string // the condition for having a value
}

// enumerated describes a column of text.
func enumerated(column string, values ...string) fewValued {
	out := fewValued{counted: column, values: values, is: map[string]string{}}
	for _, v := range values {
		out.is[v] = column + " = '" + v + "'"
	}
	return out
}

// fewValues are the columns of resourceWindow that have few values.
var fewValues = map[string]fewValued{
	"blocked":  enumerated("blocked", "blocked", "not_blocked", "temporarily_blocked"),
	"last_run": enumerated("last_run", "failed", "new", "skipped", "successful"),
	"is_deploying": {"is_deploying::text", []string{"false", "true"}, map[string]string{
		"false": "NOT is_deploying", "true": "is_deploying",
	}},
	// The conditions name what the database has statistics of.
	"compliance_order": {
		"coalesce(compliance, '~')", []string{"compliant", "has_update", "non_compliant", "undefined", "~"},
		map[string]string{
			"compliant":     "NOT orphan AND state_compliance = 'compliant'",
			"has_update":    "NOT orphan AND state_compliance = 'has_update'",
			"non_compliant": "NOT orphan AND state_compliance = 'non_compliant'",
			"undefined":     "NOT orphan AND state_compliance = 'undefined'", "~": "orphan",
		},
	},
}

// readByValue is readWindow for a list of all resources. It reports false when the list is not sorted by a part of the
// state first, and readWindow has to read it.
func readByValue(
	ctx context.Context, q querier, w *windowSQL, rows, counted string, in Window,
) (out []windowResourceRow, more, done bool, err error) {
	by, err := resourceWindow.order(in.Order)
	if err != nil {
		return nil, false, false, err
	}
	few, ok := fewValues[by[0].column]
	if !ok || in.Limit < 0 || in.Limit > MaxPage || in.Place != nil && len(in.Place) != len(by) {
		return nil, false, false, nil // or readWindow says what is wrong
	}
	values := slices.Clone(few.values)
	if by[0].desc != in.Backward {
		slices.Reverse(values)
	}
	rest := in.Place
	if in.Place != nil {
		first := slices.Index(values, in.Place[0])
		if first < 0 {
			return nil, false, false, nil
		}
		values, rest = values[first:], in.Place[1:]
	}
	present, err := w.present(ctx, q, few, counted)
	if err != nil {
		return nil, false, false, err
	}
	seen := map[int64]bool{} // one whose state changes meanwhile is shown once
	for i, value := range values {
		if i > 0 {
			rest = nil
		}
		if !slices.Contains(present, value) {
			continue
		}
		one := &windowSQL{sqlBuilder{args: slices.Clip(w.args)}, append(slices.Clip(w.conditions), few.is[value])}
		sql, err := one.statement(resourceWindow, rows, by, by[1:], rest, in.Backward, in.Limit+1-len(out))
		if err != nil {
			return nil, false, false, err
		}
		found, err := many[windowResourceRow](ctx, q, sql, one.args...)
		if err != nil {
			return nil, false, false, err
		}
		for _, r := range found {
			if !seen[r.Key] {
				seen[r.Key], out = true, append(out, r)
			}
		}
		if len(out) > in.Limit {
			break
		}
	}
	if more = len(out) > in.Limit; more {
		out = out[:in.Limit]
	}
	if in.Backward {
		slices.Reverse(out)
	}
	return out, more, true, nil
}

// present returns the values that the column has in the list.
func (w *windowSQL) present(ctx context.Context, q querier, few fewValued, counted string) ([]string, error) {
	rows, err := q.Query(ctx, "SELECT "+few.counted+" AS value"+from(counted, w.conditions)+" GROUP BY 1", w.args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
