package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// list describes one paged list: the statement that gives all its rows, how it
// may be sorted, and which filters it knows. What a client sends selects among
// these and otherwise only ever becomes a parameter, never SQL text.
//
// The bounds of a page lie above or below a place in the order of the sort
// column, whichever way the page is sorted; the page holds the rows nearest to
// its bound:
//
//	            below (Before)          above (After)
//	… r2 r3 [ r4 r5 r6 ] place [ r7 r8 r9 ] r10 …
type list struct {
	base    string            // its fixed parameters come first
	counted string            // gives the same rows where fewer columns are quicker to count; empty: base
	columns map[string]column // by the client's name of the sort column
	sort    string            // default sort column
	desc    bool              // default direction
	key     column            // makes a place unique
	filters map[string]filter // by the client's name
}

// column is a column of the base statement.
type column struct {
	name string
	kind kind
}

type kind int

const (
	text kind = iota
	number
	moment
	identity // uuid
	truth
)

// filter makes a condition on a column of the base statement.
type filter struct {
	column string
	kind   kind // of the values of a range
	build  func(b *listBuilder, f filter, values []string) (string, error)
}

const (
	defaultLimit = 1000
	maxLimit     = 1000
)

// listBuilder collects the parameters of one query.
type listBuilder struct {
	list list
	args []any
}

// arg adds a parameter and gives its name.
func (b *listBuilder) arg(v any) string {
	b.args = append(b.args, v)
	return "$" + strconv.Itoa(len(b.args))
}

func badList(format string, args ...any) error {
	return fault.New("store.list", fault.Invalid, fmt.Sprintf(format, args...))
}

// listSQL is a list query ready to run.
type listSQL struct {
	page    string // the rows nearest to the bound, nearest first
	counts  string // all rows, and those on the bound's side of the place
	args    []any
	limit   int
	bounded bool
	above   bool // the rows lie above the bound
	desc    bool // how the page is to be sorted
}

// build turns a client's query into SQL; fixed are the parameters of the base statement.
func (l list) build(q intent.ListQuery, fixed ...any) (listSQL, error) {
	out := listSQL{limit: q.Limit, desc: q.Desc}
	if out.limit == 0 {
		out.limit = defaultLimit
	}
	if out.limit < 0 || out.limit > maxLimit {
		return out, badList("limit must be between 1 and %d", maxLimit)
	}
	name := strings.ToLower(q.Sort)
	if name == "" {
		name, out.desc = l.sort, l.desc
	}
	by, ok := l.columns[name]
	if !ok {
		return out, badList("Sort parameter invalid: there is no sort column %q", q.Sort)
	}
	b := &listBuilder{list: l, args: slices.Clone(fixed)}
	var where []string
	for _, key := range sortedKeys(q.Filters) {
		f, ok := l.filters[key]
		if !ok {
			return out, badList("there is no filter %q in this list", key)
		}
		if len(q.Filters[key]) == 0 {
			continue
		}
		condition, err := f.build(b, f, q.Filters[key])
		if err != nil {
			return out, fault.Wrap("store.list", fault.Invalid, err).Say("filter " + key)
		}
		where = append(where, condition)
	}
	rows := func(base string) string {
		from := " FROM (" + base + ") AS l"
		if len(where) > 0 {
			from += " WHERE " + strings.Join(where, " AND ")
		}
		return from
	}
	ascending := !out.desc
	place := "true"
	switch {
	case q.After != nil && q.Before != nil:
		return out, badList("a page lies after one place or before one, not both")
	case q.After != nil:
		out.bounded, out.above, ascending = true, true, true
	case q.Before != nil:
		out.bounded, ascending = true, false
	}
	var err error
	if q.After != nil {
		place, err = b.beyond(by, *q.After, true)
	} else if q.Before != nil {
		place, err = b.beyond(by, *q.Before, false)
	}
	if err != nil {
		return out, err
	}
	direction := "ASC"
	if !ascending {
		direction = "DESC"
	}
	out.counts = "SELECT count(*), count(*) FILTER (WHERE " + place + ")" + rows(cmp.Or(l.counted, l.base))
	glue := " WHERE "
	if len(where) > 0 {
		glue = " AND "
	}
	order := by.name + " " + direction
	if l.key.name != by.name {
		order += ", " + l.key.name + " " + direction
	}
	out.page = "SELECT l.*" + rows(l.base) + glue + place + " ORDER BY " + order + " LIMIT " + strconv.Itoa(out.limit)
	out.args = b.args
	return out, nil
}

// beyond is the condition for lying strictly above or below a place. NULL is
// above all values, as in PostgreSQL's order.
func (b *listBuilder) beyond(by column, at intent.Bound, above bool) (string, error) {
	compare := "<"
	if above {
		compare = ">"
	}
	var key string
	if at.ID != "" && b.list.key.name != by.name {
		v, err := b.list.key.kind.parse(at.ID)
		if err != nil {
			return "", badList("the id of the bound: %v", err)
		}
		key = b.arg(v)
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
	v, err := by.kind.parse(*at.Value)
	if err != nil {
		return "", badList("the bound: %v", err)
	}
	value := b.arg(v)
	condition := by.name + " " + compare + " " + value
	if key != "" {
		condition = "(" + by.name + ", " + b.list.key.name + ") " + compare + " (" + value + ", " + key + ")"
	}
	if above {
		condition = "(" + condition + " OR " + by.name + " IS NULL)"
	}
	return condition, nil
}

func (k kind) parse(s string) (any, error) {
	switch k {
	case number:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", s)
		}
		return n, nil
	case moment:
		return parseTime(s)
	case identity:
		id, err := uuid.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not an id", s)
		}
		return id, nil
	case truth:
		return parseBool(s)
	}
	if strings.ContainsRune(s, 0) {
		return nil, fmt.Errorf("%q holds a zero byte", s)
	}
	return s, nil
}

func parseBool(s string) (bool, error) {
	v, err := strconv.ParseBool(strings.ToLower(s))
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return v, nil
}

// timeLayouts are the ISO forms that clients send, with T between date and time.
var timeLayouts = []string{
	"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999Z07", "2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04", "2006-01-02",
	"20060102T150405.999999999Z07:00", "20060102T150405Z0700", "20060102T150405.999999999", "20060102T150405", "20060102",
}

// parseTime reads any ISO form with any one character between date and time
// (a client's "+" may arrive as a blank, or a blank as "+"); without an
// offset it means UTC.
func parseTime(s string) (time.Time, error) {
	for _, at := range []int{len("2006-01-02"), len("20060102")} {
		form := s
		if len(s) > at {
			form = s[:at] + "T" + s[at+1:]
			// An offset's plus sign may have become a blank on the way.
			if i := strings.LastIndexByte(form, ' '); i > at {
				form = form[:i] + "+" + form[i+1:]
			}
		}
		for _, layout := range timeLayouts {
			if t, err := time.Parse(layout, form); err == nil {
				return t, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time", s)
}

// page runs a list query.
func page[R, V any](
	ctx context.Context,
	s *Store,
	op string,
	l list,
	q intent.ListQuery,
	f func(R) (V, error),
	fixed ...any,
) (intent.Page[V], error) {
	var out intent.Page[V]
	sql, err := l.build(q, fixed...)
	if err != nil {
		return out, err
	}
	err = s.read(ctx, op, func(db querier) error {
		rows, err := many[R](ctx, db, sql.page, sql.args...)
		if err != nil {
			return err
		}
		if out.Items, err = convert(rows, f); err != nil {
			return err
		}
		n := len(rows)
		switch {
		case sql.bounded:
		case n < sql.limit:
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
		nearer, further := total-side, max(side-n, 0)
		switch {
		case !sql.bounded:
			out.Before, out.After = 0, max(total-n, 0)
		case sql.above == sql.desc: // nearest first is the wrong way round
			out.Before, out.After = further, nearer
			slices.Reverse(out.Items)
		default:
			out.Before, out.After = nearer, further
		}
		return nil
	})
	return out, err
}
