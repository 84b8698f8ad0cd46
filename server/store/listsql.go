package store

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// The bounds of a page lie above or below a place in the order of the sort field, whichever way the page is sorted;
// the page holds the rows nearest to its bound:
//
//	            below (Before)          above (After)
//	… r2 r3 [ r4 r5 r6 ] place [ r7 r8 r9 ] r10 …

// listSQL is a query of a list, ready to run.
type listSQL struct {
	page    string // the rows nearest to the bound, nearest first
	counts  string // counts all rows, and those on the bound's side of the place
	args    []any
	bounded bool
	above   bool // the rows lie above the bound
}

// plannedAnew, before the arguments of a statement, has the database plan it for these arguments. Otherwise it keeps a
// plan for statements that come again, which suits arrays of any length as little as those of another.
var plannedAnew any = pgx.QueryExecModeDescribeExec

// sqlBuilder collects the parameters of one statement.
type sqlBuilder struct {
	list *List
	args []any
}

// arg adds a parameter and returns its name.
func (b *sqlBuilder) arg(v any) string {
	b.args = append(b.args, v)
	return "$" + strconv.Itoa(len(b.args))
}

// value adds a parameter that a client sent as text.
func (b *sqlBuilder) value(k Kind, s string) (string, error) {
	_, parameter, err := k.parse(s)
	return b.arg(parameter), err
}

// buildWhere turns a normalized query into SQL for the rows that fulfil further conditions; fixed are the parameters of
// the list's statement.
func (l *List) buildWhere(q intent.ListQuery, where func(*sqlBuilder) []string, fixed ...any) (listSQL, error) {
	out := listSQL{bounded: q.After != nil || q.Before != nil, above: q.After != nil}
	b := &sqlBuilder{list: l, args: slices.Clone(fixed)}
	var conditions []string
	if where != nil {
		conditions = where(b)
	}
	for _, name := range sortedKeys(q.Filters) {
		f, _ := l.Field(name)
		condition, err := b.filter(f, q.Filters[name])
		if err != nil {
			return out, err
		}
		conditions = append(conditions, condition)
	}
	by, _ := l.Field(q.Sort)
	sorted := column{by.column, by.Kind}
	place, err := b.place(q)
	if err != nil {
		return out, err
	}
	ascending := !q.Desc
	if out.bounded {
		ascending = out.above
	}
	direction := " DESC"
	if ascending {
		direction = " ASC"
	}
	order := sorted.name + direction
	if l.key.name != sorted.name {
		order += ", " + l.key.name + direction
	}
	counted := l.rows
	if l.counted != nil {
		counted = l.counted
	}
	out.counts = "SELECT count(*), count(*) FILTER (WHERE " + place + ")" + from(*counted, conditions)
	out.page = "SELECT l.*" + from(*l.rows, append(conditions, place)) +
		" ORDER BY " + order + " LIMIT " + strconv.Itoa(q.Limit)
	out.args = b.args
	return out, nil
}

func from(statement string, conditions []string) string {
	out := " FROM (" + statement + ") AS l"
	if len(conditions) > 0 {
		out += " WHERE " + strings.Join(conditions, " AND ")
	}
	return out
}

// filter returns the condition of a filter on a field.
func (b *sqlBuilder) filter(f Field, values []string) (string, error) {
	switch f.Filter {
	case Contains:
		var alternatives []string
		for _, v := range values {
			alternatives = append(alternatives, "position(lower("+b.arg(v)+"::text) in lower("+f.column+")) > 0")
		}
		return "(" + strings.Join(alternatives, " OR ") + ")", nil
	case Equals:
		return f.column + " = ANY(" + b.arg(values) + "::text[])", nil
	case EqualsOrNot:
		var is, not []string
		for _, v := range values {
			if rest, negated := strings.CutPrefix(v, "!"); negated {
				not = append(not, rest)
			} else {
				is = append(is, v)
			}
		}
		var all []string
		if len(is) > 0 {
			all = append(all, f.column+" = ANY("+b.arg(is)+"::text[])")
		}
		if len(not) > 0 {
			all = append(all, f.column+" <> ALL("+b.arg(not)+"::text[])")
		}
		return "(" + strings.Join(all, " AND ") + ")", nil
	case Is:
		v, err := b.value(Boolean, values[0])
		return f.column + " = " + v, err
	case IsSet:
		v, err := b.value(Boolean, values[0])
		return "(" + f.column + " IS NOT NULL) = " + v, err
	case AtLeast:
		v, err := b.value(Level, values[0])
		return f.column + " >= " + v, err
	case InRange:
		var all []string
		for _, v := range values {
			operator, bound, err := splitRange(v)
			if err != nil {
				return "", err
			}
			parameter, err := b.value(f.Kind, bound)
			if err != nil {
				return "", err
			}
			all = append(all, f.column+" "+rangeOperators[operator]+" "+parameter)
		}
		return "(" + strings.Join(all, " AND ") + ")", nil
	}
	return "", invalidList("this list has no filter %s", f.Name)
}

// place returns the condition for lying on the side of the bound of a query on which its page is.
func (b *sqlBuilder) place(q intent.ListQuery) (string, error) {
	by, _ := b.list.Field(q.Sort)
	switch {
	case q.After != nil:
		return b.beyond(column{by.column, by.Kind}, *q.After, true)
	case q.Before != nil:
		return b.beyond(column{by.column, by.Kind}, *q.Before, false)
	}
	return "true", nil
}

// beyond is the condition for lying strictly above or below a place. NULL is above all values, as in PostgreSQL's
// order.
func (b *sqlBuilder) beyond(by column, at intent.Bound, above bool) (string, error) {
	compare := "<"
	if above {
		compare = ">"
	}
	var key string
	if at.ID != "" && b.list.key.name != by.name {
		var err error
		if key, err = b.value(b.list.key.kind, at.ID); err != nil {
			return "", err
		}
	}
	if at.Value == nil {
		tie := "false"
		if key != "" {
			tie = b.list.key.name + " " + compare + " " + key
		}
		if above {
			return "(" + by.name + " IS NULL AND " + tie + ")", nil
		}
		return "(" + by.name + " IS NOT NULL OR " + tie + ")", nil
	}
	value, err := b.value(by.kind, *at.Value)
	if err != nil {
		return "", err
	}
	condition := by.name + " " + compare + " " + value
	if key != "" {
		condition = "(" + by.name + ", " + b.list.key.name + ") " + compare + " (" + value + ", " + key + ")"
	}
	if above && !b.list.filled {
		condition = "(" + condition + " OR " + by.name + " IS NULL)"
	}
	return condition, nil
}

// page runs a query of a list.
func page[R, V any](
	ctx context.Context,
	s *Store,
	op string,
	l *List,
	q intent.ListQuery,
	convertRow func(R) (V, error),
	fixed ...any,
) (intent.Page[V], error) {
	return pageWhere(ctx, s, op, l, q, nil, convertRow, fixed...)
}

// pageWhere runs a query of a list for the rows that fulfil further conditions, which have no parameters.
func pageWhere[R, V any](
	ctx context.Context,
	s *Store,
	op string,
	l *List,
	q intent.ListQuery,
	where []string,
	convertRow func(R) (V, error),
	fixed ...any,
) (intent.Page[V], error) {
	var out intent.Page[V]
	q, err := l.Normalize(q)
	if err != nil {
		return out, err
	}
	sql, err := l.buildWhere(q, func(*sqlBuilder) []string { return where }, fixed...)
	if err != nil {
		return out, err
	}
	if l.planned || l.filtersPlanned && len(q.Filters) > 0 {
		sql.args = slices.Insert(sql.args, 0, plannedAnew)
	}
	err = s.read(ctx, op, func(db querier) error {
		var err error
		if out.Items, err = collect(ctx, db, convertRow, sql.page, sql.args...); err != nil {
			return err
		}
		n := len(out.Items)
		switch {
		case sql.bounded:
		case n < q.Limit:
			out.Total = n
			return nil
		case q.Total >= n && n > 0:
			out.Total, out.After = q.Total, q.Total-n
			return nil
		}
		var total, side int // side: rows on the bound's side of the place
		if err := db.QueryRow(ctx, sql.counts, sql.args...).Scan(&total, &side); err != nil {
			return err
		}
		out.Total = total
		out.Before, out.After = around(q, n, total, side)
		if facesAway(q) {
			slices.Reverse(out.Items)
		}
		return nil
	})
	return out, err
}

// facesAway reports whether a page is sorted the other way than nearest to its bound first.
func facesAway(q intent.ListQuery) bool {
	return q.After != nil && q.Desc || q.Before != nil && !q.Desc
}

// around returns how many rows lie before and after the n rows of a page, of all and of those on the bound's side of
// the place.
func around(q intent.ListQuery, n, total, side int) (before, after int) {
	nearer, further := total-side, max(side-n, 0)
	switch {
	case q.After == nil && q.Before == nil:
		return 0, max(total-n, 0)
	case facesAway(q):
		return further, nearer
	}
	return nearer, further
}
