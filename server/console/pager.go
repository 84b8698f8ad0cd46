package console

import (
	"net/url"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// perPage is how many rows a list shows.
const perPage = 50

// pager leads from one page of a list to the next.
type pager struct {
	First, Prev, Next string // addresses; empty when there is none
	From, To, Total   int
}

// bounds reads the place in a list from an address.
func bounds(values url.Values, q *intent.ListQuery) {
	read := func(value, id string) *intent.Bound {
		if !values.Has(value) {
			return nil
		}
		v := values.Get(value)
		return &intent.Bound{Value: &v, ID: values.Get(id)}
	}
	q.After = read("start", "first")
	if q.After == nil {
		q.Before = read("end", "last")
	}
}

// paging makes the pager of a page. where gives the sort value and id of an item.
func paging[T any](
	base string,
	keep url.Values,
	q intent.ListQuery,
	p intent.Page[T],
	where func(T) (value, id string),
) pager {
	out := pager{From: p.Before + 1, To: p.Before + len(p.Items), Total: p.Total}
	if len(p.Items) == 0 {
		out.From = 0
		return out
	}
	link := func(item T, below bool) string {
		values := url.Values{}
		for k, v := range keep {
			values[k] = v
		}
		value, id := where(item)
		if below {
			values.Set("end", value)
			values.Set("last", id)
		} else {
			values.Set("start", value)
			values.Set("first", id)
		}
		return base + "?" + values.Encode()
	}
	if p.After > 0 {
		out.Next = link(p.Items[len(p.Items)-1], q.Desc)
	}
	if p.Before > 0 {
		out.Prev = link(p.Items[0], !q.Desc)
		out.First = base
		if len(keep) > 0 {
			out.First += "?" + keep.Encode()
		}
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
