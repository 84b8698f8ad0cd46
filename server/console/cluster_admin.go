package console

import (
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// The admin view of the cluster service. Its pages exist twice: for a project, and for what all projects share.
//
//	catalogue             lists of a kind            cluster_admin_list.go
//	catalogue/KIND/NAME   form, JSON, history        cluster_admin_entity.go, _fields.go, _apply.go, _diff.go
//	catalogue/try         a layout, or why not       cluster_admin_try.go
//	catalogue/import      files in, export out       cluster_admin_import.go
//	plugin-resources      files of plug-ins          cluster_admin_resources.go
//	provisioners          queues and who works       cluster_admin_provisioners.go
//	tenants, tenant       limits and use             cluster_admin_tenants.go

// catalogueScope is whose catalogue a page is about: a project's, or with a zero project what all projects share.
type catalogueScope struct {
	Project intent.Project
	Shared  bool
	base    string // of the addresses
}

// URL is the address of the catalogue.
func (s catalogueScope) URL() string { return s.base + "/catalogue" }

// kindURL is the address of the list of a kind.
func (s catalogueScope) kindURL(kind catalogue.Kind) string { return s.URL() + "/" + string(kind) }

// entityURL is the address of an entity.
func (s catalogueScope) entityURL(kind catalogue.Kind, name string) string {
	return s.kindURL(kind) + "/" + url.PathEscape(name)
}

// may reports whether the sender may do a verb of projects or, where all projects share something, another one.
func (s catalogueScope) may(r *http.Request, project, server access.Verb) bool {
	if s.Shared {
		return access.Of(r.Context()).Decide(server, access.Target{}).Allowed
	}
	return access.Of(r.Context()).Decide(project, access.Target{Project: s.Project.ID}).Allowed
}

// catalogueScope returns what the path of a request is about.
func (c *console) catalogueScope(r *http.Request) (catalogueScope, error) {
	if c.catalogue == nil {
		return catalogueScope{}, fault.New("console.catalogue", fault.NotFound, "this server has no cluster service")
	}
	if r.PathValue("project") == "" {
		return catalogueScope{Shared: true}, nil
	}
	p, err := c.projectOf(r)
	return catalogueScope{Project: p, base: projectURL(p.ID)}, err
}

// catalogueNav is the navigation of the admin view.
type catalogueNav struct {
	Label string
	Links []navLink
}

type navLink struct {
	Text, URL string
	Current   bool
}

// adminFrame returns the frame of a page of the admin view. Crumbs are those below the project.
func (c *console) adminFrame(
	r *http.Request, s catalogueScope, title, page string, trail ...crumb,
) (frame, catalogueNav, error) {
	place := []crumb{{Text: "Shared by all projects", URL: "/catalogue"}}
	label, entry := "Clusters of all projects", "catalogue"
	if !s.Shared {
		entry = "project"
		place = []crumb{{Text: s.Project.Name, URL: s.base}}
		label = "Clusters of " + s.Project.Name
	}
	f, err := c.frame(r, title, entry, append(place, trail...)...)
	f.Live = false // a form must not change while somebody fills it in
	nav := catalogueNav{Label: label}
	add := func(text, path, key string, project, server access.Verb) {
		if s.may(r, project, server) {
			nav.Links = append(nav.Links, navLink{text, s.base + path, key == page})
		}
	}
	add("Cluster catalogue", "/catalogue", "catalogue", access.SeeCatalogue, access.ChangeSharedCatalogue)
	add("Try a template", "/catalogue/try", "try", access.SeeCatalogue, access.ChangeSharedCatalogue)
	add("Import and export", "/catalogue/import", "import", access.ChangeCatalogue, access.ChangeSharedCatalogue)
	add("Plug-in resources", "/plugin-resources", "resources", access.SeeCatalogue, access.UploadSharedResource)
	add("Provisioners", "/provisioners", "provisioners", access.SeeProvisioners, access.SeeAllProvisioners)
	if s.Shared {
		add("Limits", "/tenants", "tenants", access.ManageTenants, access.ManageTenants)
	} else {
		add("Limits", "/tenant", "tenants", access.SeeTenant, access.SeeTenant)
	}
	return f, nav, err
}

// clusterAdminRoutes registers the routes of the admin view.
func (c *console) clusterAdminRoutes(
	handle func(string, access.Verb, http.HandlerFunc), page func(string, access.Verb, loader),
	form func(string, access.Verb, func(*http.Request) (string, error)),
) {
	for _, at := range []struct {
		base                        string
		see, change, upload, listed access.Verb
	}{
		{"/projects/{project}", access.SeeCatalogue, access.ChangeCatalogue, access.UploadResource,
			access.SeeCatalogue},
		{"", access.ChangeSharedCatalogue, access.ChangeSharedCatalogue, access.UploadSharedResource,
			access.UploadSharedResource},
	} {
		of := at.base + "/catalogue"
		page(of, at.see, c.catalogueList)
		page(of+"/{kind}", at.see, c.catalogueList)
		page(of+"/new/{kind}", at.change, c.newEntity)
		page(of+"/{kind}/{name}", at.see, c.entity)
		handle("POST "+of+"/new/{kind}", at.change, c.saveEntity)
		handle("POST "+of+"/{kind}/{name}", at.change, c.saveEntity)
		handle("POST "+of+"/{kind}/{name}/delete", at.change, c.deleteEntity)
		page(of+"/try", at.see, c.tryTemplate)
		page(of+"/import", at.change, c.importPage)
		handle("POST "+of+"/import", at.change, c.doImport)
		handle("GET "+of+"/export", at.see, c.exportCatalogue)
		page(at.base+"/plugin-resources", at.listed, c.pluginResources)
		handle("POST "+at.base+"/plugin-resources/upload", at.upload, c.uploadResource)
		form(at.base+"/plugin-resources/change", at.upload, c.doChangeResource)
		form(at.base+"/plugin-resources/sync", at.upload, c.doSyncResources)
	}
	page("/projects/{project}/provisioners", access.SeeProvisioners, c.provisioners)
	page("/provisioners", access.SeeAllProvisioners, c.provisioners)
	form("/projects/{project}/provisioners/revoke", access.ManageProvisioners, c.doRevokeProvisioner)
	handle("POST /projects/{project}/provisioners/token", access.ManageProvisioners, c.doProvisionerToken)
	form("/projects/{project}/provisioners/token/revoke", access.ManageProvisioners, c.doRevokeProvisionerToken)
	page("/projects/{project}/tenant", access.SeeTenant, c.tenants)
	page("/tenants", access.ManageTenants, c.tenants)
	form("/projects/{project}/tenant", access.ManageTenants, c.doSetTenant)
}

// catalogueURL returns the address of what all projects share, or nothing when the reader may not change it.
func (c *console) catalogueURL(r *http.Request) string {
	if c.catalogue != nil && access.Of(r.Context()).Decide(access.ChangeSharedCatalogue, access.Target{}).Allowed {
		return "/catalogue"
	}
	return ""
}

// ownerOf says whose an entity is.
func ownerOf(project intent.ProjectID, builtIn bool, s catalogueScope) string {
	switch {
	case builtIn:
		return "built in"
	case project == uuid.Nil:
		return "shared"
	case s.Shared:
		return "a project's"
	}
	return "own"
}
