package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// clusterAdminListPage lists what a catalogue has of a kind.
type clusterAdminListPage struct {
	frame
	Nav     catalogueNav
	Kinds   []navLink
	Kind    catalogue.Kind
	Title   string
	Noun    string
	About   string
	Shared  bool
	May     bool // change it
	NewURL  string
	ListURL string
	Name    string // filter
	Origin  string
	Origins []string
	Any     bool // a filter is set
	Rows    []entityRow
	Pager   pager
	Export  string
}

// entityRow is an entity in a list.
type entityRow struct {
	Name, Label, Description, URL string
	Version                       int
	Origin                        string
	Made                          *time.Time
	By                            string
}

// kindTitles name the lists, in the order in which people look for them.
var kindTitles = []struct {
	kind         catalogue.Kind
	title, about string
}{
	{catalogue.Templates, "Templates", "A template says which clusters people may make: of which services, " +
		"on which hardware and images, how large and for how long."},
	{catalogue.Services, "Services", "A service is software on a machine: what it needs, and how automators install, " +
		"configure, start and stop it."},
	{catalogue.Providers, "Providers", "A provider is a place that has machines, with the credentials to make them."},
	{catalogue.HardwareTypes, "Hardware types", "A hardware type is a size of machine, with its name at each " +
		"provider."},
	{catalogue.ImageTypes, "Image types", "An image type is an operating system, with its name at each provider."},
	{catalogue.PartialTemplates, "Partial templates", "A partial template is a part that several templates include."},
	{catalogue.ProviderTypes, "Provider types", "A provider type describes a plug-in that makes machines, and " +
		"its fields."},
	{catalogue.AutomatorTypes, "Automator types", "An automator type describes a plug-in that carries out the " +
		"actions of services, and its fields."},
}

func titleOf(kind catalogue.Kind) string {
	for _, k := range kindTitles {
		if k.kind == kind {
			return k.title
		}
	}
	return string(kind)
}

// kindOf returns the kind in the path of a request.
func kindOf(r *http.Request) (catalogue.Kind, error) {
	name := r.PathValue("kind")
	for _, k := range kindTitles {
		if string(k.kind) == name {
			return k.kind, nil
		}
	}
	return "", fault.New("console.catalogue", fault.NotFound, fmt.Sprintf("the catalogue has no %.40q", name))
}

func (c *console) catalogueList(r *http.Request) (view, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return view{}, err
	}
	kind := catalogue.Templates
	if r.PathValue("kind") != "" {
		if kind, err = kindOf(r); err != nil {
			return view{}, err
		}
	}
	f, nav, err := c.adminFrame(r, s, titleOf(kind)+" · Cluster catalogue", "catalogue",
		crumb{Text: "Cluster catalogue", URL: s.URL()}, crumb{Text: titleOf(kind)})
	if err != nil {
		return view{}, err
	}
	query := r.URL.Query()
	p := clusterAdminListPage{
		frame: f, Nav: nav, Kind: kind, Title: titleOf(kind), Noun: kind.Noun(), Shared: s.Shared,
		May:    s.may(r, access.ChangeCatalogue, access.ChangeSharedCatalogue),
		NewURL: s.URL() + "/new/" + string(kind), ListURL: s.kindURL(kind), Export: s.URL() + "/export",
		Name: strings.TrimSpace(query.Get("name")), Origin: query.Get("origin"),
		Origins: []string{"own", "shared", "built in"},
	}
	if s.Shared {
		p.Origins = []string{"shared", "built in"}
	}
	p.Any = p.Name != "" || p.Origin != ""
	for _, k := range kindTitles {
		p.Kinds = append(p.Kinds, navLink{k.title, s.kindURL(k.kind), k.kind == kind})
		if k.kind == kind {
			p.About = k.about
		}
	}
	all, err := c.catalogue.List(r.Context(), s.Project.ID, kind)
	if err != nil {
		return view{}, err
	}
	var rows []admin.Item
	for _, item := range all {
		if strings.Contains(strings.ToLower(item.Name), strings.ToLower(p.Name)) &&
			(p.Origin == "" || p.Origin == ownerOf(item.Project, item.BuiltIn, s)) {
			rows = append(rows, item)
		}
	}
	keep := url.Values{}
	for name, value := range map[string]string{"name": p.Name, "origin": p.Origin} {
		if value != "" {
			keep.Set(name, value)
		}
	}
	from, to, pages := numbered(query.Get("page"), len(rows), p.ListURL, keep)
	p.Pager = pages
	for _, item := range rows[from:to] {
		row, err := entityRowOf(item, s)
		if err != nil {
			return view{}, err
		}
		p.Rows = append(p.Rows, row)
	}
	return view{template: "cluster_admin_list", data: p}, nil
}

func entityRowOf(item admin.Item, s catalogueScope) (entityRow, error) {
	e, err := catalogue.Decode(item.Kind, item.Content)
	if err != nil {
		return entityRow{}, err
	}
	h := catalogue.HeadOf(e)
	row := entityRow{
		Name: item.Name, Label: h.Label, Description: h.Description, URL: s.entityURL(item.Kind, item.Name),
		Version: item.Version, Origin: ownerOf(item.Project, item.BuiltIn, s), By: item.MadeBy,
	}
	if !item.Made.IsZero() {
		row.Made = &item.Made
	}
	return row, nil
}

// numbered cuts a list that is in memory into pages, and returns the bounds of one with the links to those beside it.
func numbered(wanted string, total int, path string, keep url.Values) (from, to int, p pager) {
	page, err := strconv.Atoi(wanted)
	if last := max(1, (total+perPage-1)/perPage); err != nil || page < 1 || page > last {
		page = min(max(page, 1), last)
	}
	from, to = (page-1)*perPage, min(page*perPage, total)
	address := func(n int) string {
		values := url.Values{}
		for name := range keep {
			values.Set(name, keep.Get(name))
		}
		if n > 1 {
			values.Set("page", strconv.Itoa(n))
		}
		if len(values) == 0 {
			return path
		}
		return path + "?" + values.Encode()
	}
	p = pager{From: from + 1, To: to, Total: total}
	if page > 1 {
		p.Prev, p.First = address(page-1), address(1)
	}
	if to < total {
		p.Next = address(page + 1)
	}
	return from, to, p
}

// mine reports whether an item belongs to a scope, so that it can be changed there.
func (s catalogueScope) mine(item admin.Item) bool {
	return !item.BuiltIn && item.Project == s.Project.ID && (s.Shared || item.Project != uuid.Nil)
}
