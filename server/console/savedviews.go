package console

import (
	"net/http"
	"net/url"

	"ordain.dev/ordain/internal/intent"
)

// savedViews are the named filters of a list. Each is a link, since the address holds all of a filter. Those of the
// resources of a version, and of a comparison, are for all versions: a link leads to the version that is shown.
type savedViews struct {
	EnvURL string
	List   intent.ViewList
	Back   string // address of the list, with its filter
	Rows   []savedViewRow
	Filter string // that can be saved; empty: nothing is chosen
	Name   string // of the view that is shown
}

type savedViewRow struct {
	Name, URL string
	Chosen    bool
}

// viewFilters read the filter of a list from an address, and keep nothing else. The list of runs has none: its tabs are
// all that can be chosen there.
var viewFilters = map[intent.ViewList]func(url.Values) string{
	intent.ViewsOfResources: func(v url.Values) string { return readResourceFilter(v).address().Encode() },
	intent.ViewsOfVersions: func(v url.Values) string {
		return onlyThese(v, "type", "status", "value", "agent", "sort")
	},
	intent.ViewsOfComparisons: func(v url.Values) string { return onlyThese(v, "type", "agent", "kind", "q") },
}

func onlyThese(values url.Values, names ...string) string {
	kept := url.Values{}
	for _, name := range names {
		if text := values.Get(name); text != "" {
			kept.Set(name, text)
		}
	}
	return kept.Encode()
}

// savedViews returns the views of a list that is at a path. keep is what every address of the list has.
func (c *console) savedViews(
	r *http.Request, e intent.Environment, list intent.ViewList, path string, keep url.Values,
) (savedViews, error) {
	out := savedViews{EnvURL: envURL(e.ID), List: list, Filter: viewFilters[list](r.URL.Query())}
	address := func(filter string) string {
		switch kept := keep.Encode(); {
		case kept == "" && filter == "":
			return path
		case kept == "" || filter == "":
			return path + "?" + kept + filter
		default:
			return path + "?" + kept + "&" + filter
		}
	}
	out.Back = address(out.Filter)
	views, err := c.control.SavedViews(r.Context(), e.ID)
	for _, v := range views {
		if v.List != list {
			continue
		}
		row := savedViewRow{Name: v.Name, URL: address(v.Filter), Chosen: v.Filter == out.Filter}
		if row.Chosen {
			out.Name = v.Name
		}
		out.Rows = append(out.Rows, row)
	}
	return out, err
}

// doSaveView saves what is chosen in a list. What is saved is read as a filter first, so that it holds nothing else.
func (c *console) doSaveView(r *http.Request, e intent.Environment) (string, error) {
	values, err := url.ParseQuery(r.PostFormValue("filter"))
	if err != nil {
		values = url.Values{}
	}
	list := intent.ViewList(r.PostFormValue("list"))
	if viewFilters[list] == nil {
		list = intent.ViewsOfResources
	}
	v := intent.SavedView{Name: r.PostFormValue("name"), List: list, Filter: viewFilters[list](values)}
	return back(r, envURL(e.ID)+"/resources", "saved"), c.control.SaveView(r.Context(), e.ID, v)
}

func (c *console) doDeleteView(r *http.Request, e intent.Environment) (string, error) {
	next := back(r, envURL(e.ID)+"/resources", "saved")
	return next, c.control.DeleteView(r.Context(), e.ID, r.PostFormValue("name"))
}
