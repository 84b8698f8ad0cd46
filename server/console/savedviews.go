package console

import (
	"net/http"
	"net/url"

	"ordain.dev/ordain/internal/intent"
)

// savedViews are the named filters of the list of resources. Each is a link, since the address holds all of a filter.
type savedViews struct {
	URL    string // of the list
	Rows   []savedViewRow
	Filter string // that can be saved; empty: nothing is chosen
	Name   string // of the view that is shown
}

type savedViewRow struct {
	Name, URL string
	Chosen    bool
}

func (c *console) savedViews(r *http.Request, e intent.Environment, f resourceFilter) (savedViews, error) {
	out := savedViews{URL: envURL(e.ID) + "/resources", Filter: f.address().Encode()}
	views, err := c.control.SavedViews(r.Context(), e.ID)
	for _, v := range views {
		row := savedViewRow{Name: v.Name, URL: out.URL + "?" + v.Filter, Chosen: v.Filter == out.Filter}
		if row.Chosen {
			out.Name = v.Name
		}
		out.Rows = append(out.Rows, row)
	}
	return out, err
}

// doSaveView saves what is chosen in the list. What is saved is read as a filter first, so that it holds nothing else.
func (c *console) doSaveView(r *http.Request, e intent.Environment) (string, error) {
	values, err := url.ParseQuery(r.PostFormValue("filter"))
	if err != nil {
		values = url.Values{}
	}
	filter := readResourceFilter(values).address().Encode()
	next := envURL(e.ID) + "/resources?" + filter + "&done=saved"
	return next, c.control.SaveView(r.Context(), e.ID, intent.SavedView{Name: r.PostFormValue("name"), Filter: filter})
}

func (c *console) doDeleteView(r *http.Request, e intent.Environment) (string, error) {
	return envURL(e.ID) + "/resources?done=saved", c.control.DeleteView(r.Context(), e.ID, r.PostFormValue("name"))
}
