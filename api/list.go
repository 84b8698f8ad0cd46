package api

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// filters are the values of the argument filter by key.
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
			one, err := plain(one)
			if err != nil {
				return err
			}
			switch x := one.(type) {
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

// pageIn is embedded in the arguments of paged calls in an environment.
type pageIn struct {
	inEnvironment
	paging
}

func (p pageIn) sharedArguments() string {
	var b strings.Builder
	write := func(text string) { b.WriteString(strconv.Quote(text) + " ") }
	write(p.Env.String())
	write(strconv.Itoa(p.Limit))
	write(p.Sort)
	for _, one := range []*string{p.Start, p.End, p.FirstID, p.LastID} {
		if one == nil {
			b.WriteString("- ")
		} else {
			write(*one)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Filter)) {
		write(key)
		for _, value := range p.Filter[key] {
			b.WriteByte('=')
			write(value)
		}
	}
	return b.String()
}

// query turns the arguments of a paged call into a query of a list, in its normal form.
func (p paging) query(l *store.List) (intent.ListQuery, error) {
	q := intent.ListQuery{
		Limit: p.Limit, After: bound(p.Start, p.FirstID), Before: bound(p.End, p.LastID), Filters: p.Filter,
	}
	if p.Sort != "" {
		field, order, ok := strings.Cut(strings.ToLower(p.Sort), ".")
		if !ok || order != "asc" && order != "desc" {
			return q, invalid("cannot sort by %q: give a field of the list, followed by .asc or .desc", p.Sort)
		}
		q.Sort, q.Desc = field, order == "desc"
	}
	return l.Normalize(q)
}

func bound(value, id *string) *intent.Bound {
	if value == nil && id == nil {
		return nil
	}
	b := &intent.Bound{Value: value}
	if id != nil {
		b.ID = *id
	}
	return b
}

// page is one page of a list, with links to the pages beside it.
type page[T any] struct {
	Data     []T          `json:"data"`
	Links    pageLinks    `json:"links"`
	Metadata pageMetadata `json:"metadata"`
}

type pageLinks struct {
	Self  string `json:"self"`
	First string `json:"first,omitempty"`
	Prev  string `json:"prev,omitempty"`
	Next  string `json:"next,omitempty"`
}

type pageMetadata struct {
	Total    int `json:"total"`
	Before   int `json:"before"`
	After    int `json:"after"`
	PageSize int `json:"page_size"`
	// DeploySummary is in lists of resources, when it is asked for.
	DeploySummary *deploySummary `json:"deploy_summary,omitempty"`
}

// place is where an item stands in a list: the text of its sort field (nil for none) and its id.
type place struct {
	value *string
	id    string
}

func at(value, id string) place           { return place{&value, id} }
func atTime(t time.Time, id string) place { return at(formatTime(t), id) }

// address is what the links of a page begin with.
type address struct {
	path  string
	list  *store.List
	extra []string // arguments beside those of paging: name, value, name, value …
}

// pageOf builds the answer of a paged call: the items as the API shows them, and links to the pages beside it.
func pageOf[T, R any](
	a address, q intent.ListQuery, p intent.Page[T], show func(T) R, where func(T) place,
) page[R] {
	out := page[R]{
		Data:     listed(p.Items, show),
		Links:    pageLinks{Self: a.link(q, q.After, q.Before)},
		Metadata: pageMetadata{Total: p.Total, Before: p.Before, After: p.After, PageSize: q.Limit},
	}
	if len(p.Items) == 0 {
		return out
	}
	first, last := where(p.Items[0]), where(p.Items[len(p.Items)-1])
	if p.After > 0 {
		out.Links.Next = a.beside(q, last, q.Desc)
	}
	if p.Before > 0 {
		out.Links.Prev = a.beside(q, first, !q.Desc)
		out.Links.First = a.link(q, nil, nil)
	}
	return out
}

// listed shows each of some items; an empty list when there are none.
func listed[T, R any](items []T, show func(T) R) []R {
	out := make([]R, len(items))
	for i, item := range items {
		out[i] = show(item)
	}
	return out
}

// beside links to the page next to an item: below it in value, or above.
func (a address) beside(q intent.ListQuery, at place, below bool) string {
	b := &intent.Bound{Value: at.value, ID: at.id}
	if below {
		return a.link(q, nil, b)
	}
	return a.link(q, b, nil)
}

// link writes the address of a page. Everything is percent-encoded, blanks too.
func (a address) link(q intent.ListQuery, after, before *intent.Bound) string {
	var b strings.Builder
	b.WriteString(a.path)
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
	for i := 0; i+1 < len(a.extra); i += 2 {
		add(a.extra[i], a.extra[i+1])
	}
	side := func(bound *intent.Bound, value, id string) {
		if bound == nil {
			return
		}
		if bound.Value != nil {
			add(value, *bound.Value)
		}
		if a.list.ID != store.NoID && bound.ID != "" {
			add(id, bound.ID)
		}
	}
	side(after, "start", "first_id")
	side(before, "end", "last_id")
	return b.String()
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// window reads the bounds of a list of version 1; at most one of them may be given.
func window(start, end *string) (after, before *time.Time, err error) {
	read := func(given *string) (*time.Time, error) {
		if given == nil {
			return nil, nil
		}
		t, err := store.ParseTime(*given)
		if err != nil {
			return nil, invalid("%v", err)
		}
		return &t, nil
	}
	if start != nil && end != nil {
		return nil, nil, invalid("only one of start and end can be used at a time")
	}
	if after, err = read(start); err != nil {
		return nil, nil, err
	}
	before, err = read(end)
	return after, before, err
}
