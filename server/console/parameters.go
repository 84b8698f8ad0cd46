package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// valuesPage lists parameters of the environment, or facts of its resources.
type valuesPage struct {
	frame
	Facts  bool
	Filter valueFilter
	List   valueTable
	MaySet bool
}

type valueFilter struct {
	Name, Source, Resource string
	Choices                []choice // of facts: whether they expire
	Any                    bool
}

type valueTable struct {
	ID     string
	Facts  bool
	Rows   []valueRow
	Pager  pager
	Sorts  []sortLink
	Any    bool
	MaySet bool
	EnvURL string
	Back   string
}

type valueRow struct {
	Name, Value   string
	Long          bool
	Resource, URL string
	Source        string // in words
	By            string // who set it, when a request did
	Updated       time.Time
	Expires       *time.Time
	Expired       bool
}

// sourceWords say where a value comes from.
var sourceWords = map[string]string{
	"user": "a person or program", "fact": "its handler", "plugin": "a plug-in", "report": "a report",
}

func (c *console) parameters(r *http.Request) (view, error) { return c.values(r, false) }

func (c *console) facts(r *http.Request) (view, error) { return c.values(r, true) }

// values lists parameters, or facts.
func (c *console) values(r *http.Request, facts bool) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	title, page, list := "Parameters", "parameters", store.ParameterList
	columns := []column{{"name", "Name"}, {"", "Value"}, {"source", "Set by"}, {"updated", "Set"}}
	if facts {
		title, page, list = "Facts", "facts", store.FactList
		columns = []column{{"resource_id", "Resource"}, {"name", "Fact"}}
	}
	f, err := c.frame(r, title, page, crumb{Text: title})
	if err != nil {
		return view{}, err
	}
	l := listingOf(r, list, envURL(e.ID)+"/"+page)
	get := func(name string) string { return strings.TrimSpace(r.URL.Query().Get(name)) }
	filter := valueFilter{Name: get("name"), Source: get("source"), Resource: get("resource")}
	if filter.Name != "" {
		l.filter("name", filter.Name, "name", filter.Name)
	}
	if facts {
		if filter.Resource != "" {
			l.filter("resource_id", filter.Resource, "resource", filter.Resource)
		}
		expires := get("expires")
		if expires == "true" || expires == "false" {
			l.filter("expires", expires, "expires", expires)
		}
		filter.Choices = []choice{
			{"", "All", expires == ""}, {"true", "Those that expire", expires == "true"},
			{"false", "Those that do not", expires == "false"},
		}
	} else if filter.Source != "" {
		l.filter("source", filter.Source, "source", filter.Source)
	}
	filter.Any = l.filtered()
	l.sort(r.URL.Query().Get("sort"))
	found, err := c.store.Parameters(r.Context(), e.ID, facts, l.query)
	if err != nil {
		return view{}, err
	}
	p := valuesPage{
		frame: f, Facts: facts, Filter: filter,
		MaySet: access.Of(r.Context()).Decide(access.SetParameters, access.TargetOf(e)).Allowed,
	}
	p.List = valueTable{
		ID: page + "list", Facts: facts, Any: filter.Any, MaySet: p.MaySet, EnvURL: envURL(e.ID), Back: f.Back,
		Sorts: l.sortLinks(columns),
	}
	for i, one := range columns {
		if one.field == "" { // nothing sorts by values
			p.List.Sorts[i].URL = ""
		}
	}
	for _, one := range found.Items {
		p.List.Rows = append(p.List.Rows, c.valueRowOf(e.ID, one))
	}
	p.List.Pager = pagerOf(l, found, func(x intent.Parameter) (string, string) {
		switch l.query.Sort {
		case "source":
			return x.Source, x.ID.String()
		case "updated":
			return stamp(x.Updated), x.ID.String()
		case "resource_id":
			return x.Resource.String(), x.ID.String()
		}
		return x.Name, x.ID.String()
	})
	return view{template: "values", data: p, fragments: []fragment{{p.List.ID, "valuelist", p.List}}}, nil
}

func (c *console) valueRowOf(env uuid.UUID, p intent.Parameter) valueRow {
	row := valueRow{
		Name: p.Name, Value: cutText(p.Value), Updated: p.Updated, Source: sourceWords[p.Source], By: p.SetBy,
	}
	if row.Source == "" {
		row.Source = p.Source
	}
	row.Long = isLong(row.Value)
	if !p.Resource.IsZero() {
		row.Resource, row.URL = p.Resource.String(), resourceURL(env, p.Resource)
	}
	if p.Expires {
		at := p.Updated.Add(c.factExpire)
		row.Expires, row.Expired = &at, at.Before(c.now())
	}
	return row
}

// shownInList is how much of a value a list shows.
const shownInList = 4 << 10

func cutText(text string) string {
	if len(text) > shownInList {
		return strings.ToValidUTF8(text[:shownInList], "") + "\n[cut here; the API returns all of it]"
	}
	return text
}

// maxValueName is the length of the longest name that the form takes.
const maxValueName = 500

// valueNamed reads which parameter or fact a form is about, and the page to return to.
func valueNamed(r *http.Request, e intent.Environment) (name string, resource intent.ResourceID, err error) {
	name = strings.TrimSpace(r.PostFormValue("name"))
	if name == "" || len(name) > maxValueName {
		return name, resource, fault.New("console.parameter", fault.Invalid,
			"a name has between 1 and 500 letters").Hint("go back and name it")
	}
	if text := strings.TrimSpace(r.PostFormValue("resource")); text != "" {
		if resource, err = intent.ParseResourceID(text); err != nil {
			err = fault.Wrap("console.parameter", fault.Invalid, err).Say("that is not the id of a resource").
				Hint("copy it from the page of the resource, such as fs::File[web01,path=/etc/motd]")
		}
	}
	return name, resource, err
}

// doSetParameter sets a parameter, or a fact when the form names a resource.
func (c *console) doSetParameter(r *http.Request, e intent.Environment) (string, error) {
	name, resource, err := valueNamed(r, e)
	if err != nil {
		return "", err
	}
	fact := r.PostFormValue("fact") == "yes"
	if fact && resource.IsZero() {
		return "", fault.New("console.parameter", fault.Invalid, "a fact belongs to a resource").
			Hint("go back and name the resource")
	}
	page, done := "/parameters", "parameterset"
	if fact {
		page, done = "/facts", "factset"
	}
	err = c.control.SetParameter(r.Context(), e.ID, intent.Parameter{
		ID: uuid.New(), Name: name, Value: strings.ReplaceAll(r.PostFormValue("value"), "\r\n", "\n"), Source: "user",
		Resource: resource, Updated: c.now(), Expires: fact && r.PostFormValue("expires") == "yes",
	})
	return back(r, envURL(e.ID)+page, done), err
}

// doDeleteParameter deletes a parameter, or a fact when the form names a resource.
func (c *console) doDeleteParameter(r *http.Request, e intent.Environment) (string, error) {
	name, resource, err := valueNamed(r, e)
	if err != nil {
		return "", err
	}
	page, done := "/parameters", "parameterdeleted"
	if !resource.IsZero() {
		page, done = "/facts", "factdeleted"
	}
	return back(r, envURL(e.ID)+page, done), c.control.DeleteParameter(r.Context(), e.ID, name, resource)
}
