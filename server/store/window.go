package store

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Window is a view of some items of a list, from a place on. Unlike the paged lists (List), a windowed one can be
// sorted by several keys, each in a direction of its own, and does not count its items unless asked to.
//
//	… [ i3 i4 i5 ] place [ i6 i7 i8 ] …
//	   Backward              forward
type Window struct {
	Limit int
	Order []OrderKey
	// Place is where the window begins: what Span.Places has for an item, read with the same order. Nil: at the
	// beginning of the list or, backward, at its end.
	Place    []string
	Backward bool
}

// OrderKey is a key that a list is sorted by.
type OrderKey struct {
	Key  string
	Desc bool
}

// Span is what a window shows.
type Span[T any] struct {
	Items  []T
	Places [][]string // of each item
	More   bool       // there are further items in the direction of the window
}

// windowKey is a key that a windowed list can be sorted by: a column of its statement without null values.
type windowKey struct {
	column string
	kind   Kind
}

// windowList says how a list is sorted.
type windowList struct {
	keys   map[string]windowKey
	unique windowKey // decides between items that are equal in all keys
	show   string    // the columns that are read
}

var (
	resourceWindow = windowList{
		keys: map[string]windowKey{
			"agent":             {"agent", Text},
			"resource_type":     {"type", Text},
			"resource_id_value": {"value", Text},
			"blocked":           {"blocked", Text},
			"compliance":        {"compliance_order", Text},
			"last_handler_run":  {"last_run", Text},
			"is_deploying":      {"is_deploying", Boolean},
		},
		unique: windowKey{"id", Text}, show: "l.key, l.content, l.version",
	}
	notificationWindow = windowList{
		keys: map[string]windowKey{"created": {"created", Time}}, unique: windowKey{"id", UUID}, show: "l.*",
	}
	environmentWindow = windowList{
		keys:   map[string]windowKey{"id": {"id", UUID}, "name": {"name", Text}},
		unique: windowKey{"id", UUID}, show: "l.*",
	}
)

// sqlTypes are the types of the database for the kinds that a window sorts by.
var sqlTypes = map[Kind]string{Text: "text", UUID: "uuid", Boolean: "boolean", Time: "timestamptz"}

// sorted is a key with its direction.
type sorted struct {
	windowKey
	desc bool
}

// order returns the keys that a window sorts by. Items that are equal in them follow one another by the list's unique
// key, in the direction of the last one, so that an index over both serves either direction.
func (l windowList) order(given []OrderKey) ([]sorted, error) {
	var out []sorted
	desc := false
	for _, o := range given {
		key, ok := l.keys[o.Key]
		if !ok {
			return nil, invalidList("cannot sort by %q, only by %s", o.Key,
				strings.Join(sortedKeys(l.keys), ", "))
		}
		if slices.ContainsFunc(out, func(s sorted) bool { return s.windowKey == key }) {
			return nil, invalidList("the order names %q twice", o.Key)
		}
		desc = o.Desc
		out = append(out, sorted{key, desc})
	}
	if !slices.ContainsFunc(out, func(s sorted) bool { return s.windowKey == l.unique }) {
		out = append(out, sorted{l.unique, desc})
	}
	return out, nil
}

// windowSQL builds the statement of a window.
type windowSQL struct {
	sqlBuilder
	conditions []string
}

func newWindowSQL(fixed ...any) *windowSQL { return &windowSQL{sqlBuilder: sqlBuilder{args: fixed}} }

func (w *windowSQL) where(condition string) { w.conditions = append(w.conditions, condition) }

// page returns the statement that reads one item more than the window shows, nearest first; place is among its
// columns.
func (w *windowSQL) page(l windowList, rows string, in Window) (string, error) {
	by, err := l.order(in.Order)
	if err != nil {
		return "", err
	}
	return w.statement(l, rows, by, by, in.Place, in.Backward, in.Limit+1)
}

// statement returns the statement that reads so many items beyond a place, sorted by some keys; place is among its
// columns, with all keys.
func (w *windowSQL) statement(
	l windowList, rows string, all, by []sorted, place []string, backward bool, limit int,
) (string, error) {
	conditions := slices.Clone(w.conditions)
	if place != nil {
		beyond, err := w.beyond(by, place, backward)
		if err != nil {
			return "", err
		}
		conditions = append(conditions, beyond)
	}
	columns, order := make([]string, len(all)), make([]string, len(by))
	for i, s := range all {
		columns[i] = s.column + "::text"
	}
	for i, s := range by {
		order[i] = s.column
		if s.desc != backward {
			order[i] += " DESC"
		}
	}
	return "SELECT " + l.show + ", ARRAY[" + strings.Join(columns, ", ") + "] AS place" + from(rows, conditions) +
		" ORDER BY " + strings.Join(order, ", ") + " LIMIT " + strconv.Itoa(limit), nil
}

// beyond is the condition for lying strictly after a place in the order, or before it. Where all keys have one
// direction it is one comparison of rows, which an index can answer.
func (w *windowSQL) beyond(by []sorted, place []string, backward bool) (string, error) {
	if len(place) != len(by) {
		return "", invalidList("the cursor belongs to another order: start again without it")
	}
	columns, values := make([]string, len(by)), make([]string, len(by))
	for i, s := range by {
		_, parameter, err := s.kind.parse(place[i])
		if err != nil {
			return "", invalidList("the cursor belongs to another order: start again without it")
		}
		columns[i], values[i] = s.column, w.arg(parameter)+"::"+sqlTypes[s.kind]
	}
	compare := func(s sorted) string {
		if s.desc != backward {
			return " < "
		}
		return " > "
	}
	if !slices.ContainsFunc(by, func(s sorted) bool { return s.desc != by[0].desc }) {
		return "(" + strings.Join(columns, ", ") + ")" + compare(by[0]) + "(" + strings.Join(values, ", ") + ")", nil
	}
	var ways []string
	equal := ""
	for i, s := range by {
		ways = append(ways, "("+equal+columns[i]+compare(s)+values[i]+")")
		equal += columns[i] + " = " + values[i] + " AND "
	}
	return "(" + strings.Join(ways, " OR ") + ")", nil
}

// count returns the statement that counts the items on all pages.
func (w *windowSQL) count(rows string) string { return "SELECT count(*)" + from(rows, w.conditions) }

// readWindow reads the rows of a window, in the order of the list.
func readWindow[R any](
	ctx context.Context, q querier, l windowList, w *windowSQL, rows string, in Window,
) (out []R, more bool, err error) {
	if in.Limit < 0 || in.Limit > MaxPage {
		return nil, false, invalidList("a page has between 0 and %d items, not %d", MaxPage, in.Limit)
	}
	sql, err := w.page(l, rows, in)
	if err != nil {
		return nil, false, err
	}
	found, err := q.Query(ctx, sql, w.args...)
	if err != nil {
		return nil, false, err
	}
	if out, err = pgx.CollectRows(found, pgx.RowToStructByName[R]); err != nil {
		return nil, false, err
	}
	if more = len(out) > in.Limit; more {
		out = out[:in.Limit]
	}
	if in.Backward {
		slices.Reverse(out)
	}
	return out, more, nil
}
