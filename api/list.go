package api

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// maxPage is the default and the largest size of a page.
const maxPage = 1000

// filters are the values per key of the argument filter.
type filters map[string][]string

func (f *filters) set(value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		return errors.New("Input should be a valid dictionary")
	}
	*f = filters{}
	for key, given := range object {
		list, ok := given.([]any)
		if !ok {
			list = []any{given}
		}
		for _, one := range list {
			switch x := plainNumbers(one).(type) {
			case string:
				(*f)[key] = append((*f)[key], x)
			case bool:
				(*f)[key] = append((*f)[key], strconv.FormatBool(x))
			case int:
				(*f)[key] = append((*f)[key], strconv.Itoa(x))
			default:
				return errors.New("Input should be a list of strings")
			}
		}
	}
	return nil
}

// paging are the arguments of a paged call.
type paging struct {
	Limit   int     `arg:"limit"`
	Start   *string `arg:"start"`
	End     *string `arg:"end"`
	FirstID *string `arg:"first_id"`
	LastID  *string `arg:"last_id"`
	Sort    string  `arg:"sort"`
	Filter  filters `arg:"filter"`
}

// kind says what a filter compares, or what the values of a column are.
type kind int

const (
	text kind = iota // as it is
	truth
	timeRange
	numberRange
	level
	moment // sort column: a time
	number // sort column: a number
	word   // sort column: a text
)

// list describes a paged call: what it sorts by and what it filters on.
type list struct {
	sort    string // default, such as requested.desc
	columns map[string]kind
	filters map[string]kind
	id      idKind
}

type idKind int

const (
	noID idKind = iota
	textID
	uuidID
)

// query checks the arguments of a paged call and makes them a question to the store.
func (l list) query(p paging) (intent.ListQuery, error) {
	q := intent.ListQuery{Limit: p.Limit}
	switch {
	case p.Limit < 0:
		return q, invalid("the parameter limit cannot be negative")
	case p.Limit > maxPage:
		return q, invalid("the parameter limit can not exceed %d, got %d", maxPage, p.Limit)
	case p.Limit == 0:
		q.Limit = maxPage
	}
	sort := p.Sort
	if sort == "" {
		sort = l.sort
	}
	column, order, ok := strings.Cut(strings.ToLower(sort), ".")
	columnKind, known := l.columns[column]
	if !ok || !known || order != "asc" && order != "desc" {
		return q, invalid(
			"Sort parameter invalid: %q; sort by %s, followed by .asc or .desc",
			sort,
			strings.Join(slices.Sorted(maps.Keys(l.columns)), ", "),
		)
	}
	q.Sort, q.Desc = column, order == "desc"
	var err error
	if q.After, err = l.bound(p.Start, p.FirstID, columnKind); err != nil {
		return q, err
	}
	if q.Before, err = l.bound(p.End, p.LastID, columnKind); err != nil {
		return q, err
	}
	if q.After != nil && q.Before != nil {
		return q, invalid("only one of start and first_id, or end and last_id, can be used at a time")
	}
	q.Filters, err = l.filterValues(p.Filter)
	return q, err
}

func (l list) bound(value, id *string, of kind) (*intent.Bound, error) {
	if value == nil && id == nil {
		return nil, nil
	}
	b := &intent.Bound{}
	if id != nil {
		switch l.id {
		case noID:
			return nil, invalid("this list has no first_id and last_id")
		case uuidID:
			if _, err := uuid.Parse(*id); err != nil {
				return nil, invalid("%q is not a UUID", *id)
			}
		}
		b.ID = *id
	}
	if value == nil {
		return b, nil
	}
	v := *value
	switch of {
	case moment:
		t, err := parseTime(v)
		if err != nil {
			return nil, invalid("%q: %v", v, err)
		}
		v = t.Format(time.RFC3339Nano)
	case number:
		if _, err := strconv.ParseInt(v, 10, 32); err != nil {
			return nil, invalid("%q is not a number", v)
		}
	case truth:
		t, err := parseBool(v)
		if err != nil {
			return nil, invalid("%q: %v", v, err)
		}
		v = strconv.FormatBool(t)
	}
	b.Value = &v
	return b, nil
}

// filterValues checks filters and brings their values to one form: times in
// UTC, RFC 3339; truths as true and false.
func (l list) filterValues(given filters) (map[string][]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	out := make(map[string][]string, len(given))
	for _, key := range slices.Sorted(maps.Keys(given)) {
		of, ok := l.filters[key]
		if !ok {
			return nil, invalid("Filter validation failed: %s is not a filter of this list", key)
		}
		if of == truth && len(given[key]) != 1 {
			return nil, invalid("Filter validation failed: %s takes one value", key)
		}
		for _, v := range given[key] {
			checked, err := filterValue(of, v)
			if err != nil {
				return nil, invalid("Filter validation failed: %s: %v", key, err)
			}
			out[key] = append(out[key], checked)
		}
	}
	return out, nil
}

func filterValue(of kind, v string) (string, error) {
	switch of {
	case truth:
		b, err := parseBool(v)
		return strconv.FormatBool(b), err
	case timeRange, numberRange:
		operator, operand, ok := strings.Cut(v, ":")
		operator = strings.ToLower(operator)
		if !ok || !slices.Contains([]string{"lt", "le", "gt", "ge"}, operator) {
			return "", errors.New("want lt:, le:, gt: or ge: and a value")
		}
		if of == numberRange {
			n, err := strconv.ParseInt(strings.TrimSpace(operand), 10, 32)
			return operator + ":" + strconv.FormatInt(n, 10), err
		}
		t, err := parseTime(operand)
		return operator + ":" + t.Format(time.RFC3339Nano), err
	case level:
		upper := strings.ToUpper(v)
		if !slices.Contains([]string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}, upper) {
			return "", errors.New("want TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL")
		}
		return upper, nil
	}
	return v, nil
}

// place is where an item stands in a list: the text of its sort column (nil
// for none) and its id.
type place struct {
	value *string
	id    string
}

func at(value, id string) place           { return place{&value, id} }
func atTime(t time.Time, id string) place { return at(formatTime(t), id) }

// paged answers with one page: the items as the API shows them, links to the
// pages beside it, and where it lies.
func paged[T, R any](
	path string,
	l list,
	q intent.ListQuery,
	p intent.Page[T],
	show func(T) R,
	where func(T) place,
	extra ...string,
) (reply, error) {
	links := map[string]string{"self": link(path, l, q, q.After, q.Before, extra)}
	if len(p.Items) > 0 {
		first, last := where(p.Items[0]), where(p.Items[len(p.Items)-1])
		if p.After > 0 {
			links["next"] = beside(path, l, q, last, q.Desc, extra)
		}
		if p.Before > 0 {
			links["prev"] = beside(path, l, q, first, !q.Desc, extra)
			links["first"] = link(path, l, q, nil, nil, extra)
		}
	}
	return reply{body: map[string]any{
		"data":  listed(p.Items, show),
		"links": links,
		"metadata": map[string]any{
			"total": p.Total, "before": p.Before, "after": p.After, "page_size": q.Limit,
		},
	}}, nil
}

// listed is what an answer says of each item; an empty list when there is none.
func listed[T, R any](items []T, one func(T) R) []R {
	out := make([]R, len(items))
	for i, item := range items {
		out[i] = one(item)
	}
	return out
}

// beside links to the page next to an item: below it in value, or above.
func beside(path string, l list, q intent.ListQuery, at place, below bool, extra []string) string {
	b := &intent.Bound{Value: at.value, ID: at.id}
	if below {
		return link(path, l, q, nil, b, extra)
	}
	return link(path, l, q, b, nil, extra)
}

// link writes the address of a page. Everything is percent-encoded, blanks too.
func link(path string, l list, q intent.ListQuery, after, before *intent.Bound, extra []string) string {
	var b strings.Builder
	b.WriteString(path)
	separator := byte('?')
	add := func(key, value string) {
		b.WriteByte(separator)
		separator = '&'
		b.WriteString(escape(key) + "=" + escape(value))
	}
	add("limit", strconv.Itoa(q.Limit))
	order := "asc"
	if q.Desc {
		order = "desc"
	}
	add("sort", q.Sort+"."+order)
	for _, key := range slices.Sorted(maps.Keys(q.Filters)) {
		for _, value := range q.Filters[key] {
			add("filter."+key, value)
		}
	}
	for i := 0; i+1 < len(extra); i += 2 {
		add(extra[i], extra[i+1])
	}
	side := func(bound *intent.Bound, value, id string) {
		if bound == nil {
			return
		}
		if bound.Value != nil {
			add(value, *bound.Value)
		}
		if l.id != noID && bound.ID != "" {
			add(id, bound.ID)
		}
	}
	side(after, "start", "first_id")
	side(before, "end", "last_id")
	return b.String()
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
