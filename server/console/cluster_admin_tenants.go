package console

import (
	"fmt"
	"net/http"
	"strconv"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// clusterAdminTenantsPage shows what projects may use of the cluster service, and use.
type clusterAdminTenantsPage struct {
	frame
	Nav    catalogueNav
	Shared bool
	Manage bool
	Rows   []tenantRow
	Pager  pager
}

type tenantRow struct {
	Name, URL, Action string
	ID                string
	Set               bool
	Workers           int
	Clusters, Nodes   int
	MaxClusters       string // empty: no limit
	MaxNodes          string
	Full              string // what is used up, in words
}

// tenants shows one project, or all of them.
func (c *console) tenants(r *http.Request) (view, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return view{}, err
	}
	f, nav, err := c.adminFrame(r, s, "Limits", "tenants", crumb{Text: "Limits"})
	if err != nil {
		return view{}, err
	}
	p := clusterAdminTenantsPage{
		frame: f, Nav: nav, Shared: s.Shared,
		Manage: access.Of(r.Context()).Decide(access.ManageTenants, access.Target{}).Allowed,
	}
	var all []store.ClusterTenant
	if s.Shared {
		all, err = c.catalogue.Tenants(r.Context())
	} else {
		all = make([]store.ClusterTenant, 1)
		all[0], err = c.catalogue.Tenant(r.Context(), s.Project.ID)
	}
	if err != nil {
		return view{}, err
	}
	from, to, pages := numbered(r.URL.Query().Get("page"), len(all), r.URL.Path, nil)
	p.Pager = pages
	for _, t := range all[from:to] {
		p.Rows = append(p.Rows, tenantOf(t))
	}
	return view{template: "cluster_admin_tenants", data: p}, nil
}

func tenantOf(t store.ClusterTenant) tenantRow {
	row := tenantRow{
		Name: t.Name, URL: projectURL(t.Project), Action: projectURL(t.Project) + "/tenant", ID: t.Project.String(),
		Set: t.Set, Workers: t.Workers, Clusters: t.Clusters, Nodes: t.Nodes,
		MaxClusters: limitText(t.MaxClusters), MaxNodes: limitText(t.MaxNodes),
	}
	switch {
	case t.MaxClusters != nil && t.Clusters >= *t.MaxClusters:
		row.Full = "no more clusters"
	case t.MaxNodes != nil && t.Nodes >= *t.MaxNodes:
		row.Full = "no more nodes"
	}
	return row
}

func limitText(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func (c *console) doSetTenant(r *http.Request) (string, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return "", err
	}
	number := func(name string) (*int, error) {
		text := field(r, name)
		if text == "" {
			return nil, nil
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fault.New("console.tenant", fault.Invalid, fmt.Sprintf("%.40q is not a whole number", text)).
				Hint("leave the field empty for no limit")
		}
		return &n, nil
	}
	workers, err := number("workers")
	if err != nil {
		return "", err
	}
	if workers == nil {
		return "", fault.New("console.tenant", fault.Invalid, "the number of workers is missing").
			Hint("0 makes the tasks of the project wait")
	}
	clusters, err := number("clusters")
	if err != nil {
		return "", err
	}
	nodes, err := number("nodes")
	if err != nil {
		return "", err
	}
	next := s.base + "/tenant?done=saved"
	if r.PostFormValue("from") == "all" {
		next = "/tenants?done=saved"
	}
	return next, c.catalogue.SetTenant(r.Context(), s.Project.ID, *workers, clusters, nodes)
}
