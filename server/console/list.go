package console

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// perPage is how many rows a list shows.
const perPage = 50

// listing is a list of the store as a request asks for it, and the addresses of its other pages.
type listing struct {
	list  *store.List
	path  string     // of the page that shows it
	keep  url.Values // the parameters that its other pages have too: the filters and the order
	query intent.ListQuery
}

// listingOf reads from a request at which place of a list to begin.
func listingOf(r *http.Request, list *store.List, path string) *listing {
	values := r.URL.Query()
	bound := func(value, id string) *intent.Bound {
		if !values.Has(value) {
			return nil
		}
		v := values.Get(value)
		return &intent.Bound{Value: &v, ID: values.Get(id)}
	}
	l := &listing{list: list, path: path, keep: url.Values{}}
	l.query = intent.ListQuery{Limit: perPage, Sort: list.Sort, Desc: list.Desc, Filters: map[string][]string{}}
	if l.query.After = bound("start", "first"); l.query.After == nil {
		l.query.Before = bound("end", "last")
	}
	return l
}

// filter shows only rows whose field has a value. The address says so with name=shown.
func (l *listing) filter(field, value, name, shown string) {
	l.query.Filters[field] = []string{value}
	l.keep.Set(name, shown)
}

// filtered reports whether a filter is set.
func (l *listing) filtered() bool { return len(l.query.Filters) > 0 }

// sort orders the list as the address wants it, such as agent.desc. Any other text leaves the order as it is.
func (l *listing) sort(wanted string) {
	name, order, _ := strings.Cut(wanted, ".")
	if f, ok := l.list.Field(name); ok && f.Sortable {
		l.query.Sort, l.query.Desc = name, order == "desc"
		l.keep.Set("sort", wanted)
	}
}

// column is a field of a list with the heading that people see.
type column struct{ field, heading string }

// sortLink is the heading of a column, which sorts the list by it.
type sortLink struct {
	Text, URL, Order string
}

// sortLinks returns the headings of columns. That of the column by which the list is sorted turns the order round.
func (l *listing) sortLinks(columns []column) (out []sortLink) {
	for _, c := range columns {
		link, next := sortLink{Text: c.heading, Order: "none"}, "asc"
		if l.query.Sort == c.field {
			link.Order = "ascending"
			if l.query.Desc {
				link.Order = "descending"
			} else {
				next = "desc"
			}
		}
		link.URL = l.address("sort", c.field+"."+next)
		out = append(out, link)
	}
	return out
}

// address returns the address of the list with these parameters beside those that are kept.
func (l *listing) address(parameters ...string) string {
	values := maps.Clone(l.keep)
	for i := 0; i+1 < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	if len(values) == 0 {
		return l.path
	}
	return l.path + "?" + values.Encode()
}

// pager links a page of a list to the pages beside it.
type pager struct {
	First, Prev, Next string // addresses; empty when there is no such page
	From, To, Total   int
	Of                string // what is listed, where a page has several lists
}

// pagerOf returns the pager of a page. place returns where an item stands: the value of the sort field, and its id.
func pagerOf[T any](l *listing, p intent.Page[T], place func(T) (value, id string)) pager {
	out := pager{From: p.Before + 1, To: p.Before + len(p.Items), Total: p.Total}
	if len(p.Items) == 0 {
		out.From = 0
		return out
	}
	beside := func(item T, below bool) string {
		value, id := place(item)
		if below {
			return l.address("end", value, "last", id)
		}
		return l.address("start", value, "first", id)
	}
	if p.After > 0 {
		out.Next = beside(p.Items[len(p.Items)-1], l.query.Desc)
	}
	if p.Before > 0 {
		out.Prev = beside(p.Items[0], !l.query.Desc)
		out.First = l.address()
	}
	return out
}

// resourcePlace returns where a resource stands in a list that is sorted by a field.
func resourcePlace(field string, id intent.ResourceID, status intent.Status) (value, key string) {
	key = id.String()
	switch field {
	case "status":
		return string(status), key
	case "agent":
		return id.Agent, key
	case "resource_id_value":
		return id.Value, key
	}
	return id.Type, key
}

// stamp writes a time as the bound of a page.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
