package console

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// projectPage shows a project: what it may use and uses, who may do what in it, and its environments.
type projectPage struct {
	frame
	ID       uuid.UUID
	Name     string
	Rows     []projectEnvironment
	Members  bool // the reader may see the members and quotas
	Manage   bool // the reader may change who is a member
	SetQuota bool // the reader may change the quotas
	Quotas   []quotaRow
	People   []memberRow
	Roles    []string  // that can be given
	Off      bool      // nobody has to log in
	Clusters []navLink // what clusters can be made of, who makes them, and how many there may be
}

// projectEnvironment is an environment that the reader may see.
type projectEnvironment struct {
	Name, URL, Repo, Branch string
	State                   state
}

// memberRow is a role that somebody has in the whole project.
type memberRow struct {
	ID               uuid.UUID
	Kind, Name, Role string
	By               string
}

type projectKey struct{}

// project returns the project in the path of a request, as it was when the request was admitted.
func (c *console) projectOf(r *http.Request) (intent.Project, error) {
	p, ok := r.Context().Value(projectKey{}).(intent.Project)
	if !ok {
		return p, noProject(r.PathValue("project"))
	}
	return p, nil
}

func noProject(name string) error {
	return fault.New("console", fault.NotFound, "there is no project "+name)
}

// admitProject checks that the sender may do a verb to the project that the path names. One that they may not see does
// not exist for them.
func (c *console) admitProject(r *http.Request, v access.Verb, name string) (*http.Request, error) {
	if !access.Of(r.Context()).Known() {
		return r, access.Check(r.Context(), v, access.Target{}, nil)
	}
	id, err := uuid.Parse(name)
	if err != nil {
		return r, noProject(name)
	}
	p, err := c.store.Project(r.Context(), id)
	if fault.Is(err, fault.NotFound) {
		return r, noProject(name)
	}
	if err != nil {
		return r, err
	}
	err = access.Check(r.Context(), v, access.Target{Project: id}, noProject(name))
	return r.WithContext(context.WithValue(r.Context(), projectKey{}, p)), err
}

func projectURL(id intent.ProjectID) string { return "/projects/" + id.String() }

func (c *console) projectPage(r *http.Request) (view, error) {
	project, err := c.projectOf(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, project.Name, "project", crumb{Text: project.Name})
	if err != nil {
		return view{}, err
	}
	f.Live = false // a form must not change while somebody fills it in
	p := projectPage{frame: f, ID: project.ID, Name: project.Name, Off: !c.people.Enabled()}
	all, err := c.allEnvironments(r.Context())
	if err != nil {
		return view{}, err
	}
	for _, e := range access.Visible(r.Context(), all) {
		if e.ProjectID != project.ID {
			continue
		}
		s, err := c.summary(r.Context(), e)
		if fault.Is(err, fault.NotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return view{}, err
		}
		p.Rows = append(p.Rows, projectEnvironment{e.Name, envURL(e.ID), e.Source.URL, e.Source.Branch, s.State})
	}
	if c.catalogue != nil {
		_, nav, err := c.adminFrame(r, catalogueScope{Project: project, base: projectURL(project.ID)}, "", "")
		if err != nil {
			return view{}, err
		}
		p.Clusters = nav.Links
	}
	me := access.Of(r.Context())
	p.Members = me.Decide(access.SeeMembers, access.Target{Project: project.ID}).Allowed
	p.Manage = me.Decide(access.ManageMembers, access.Target{Project: project.ID}).Allowed
	p.SetQuota = me.Decide(access.SetQuota, access.Target{}).Allowed
	if !p.Members {
		return view{template: "project", data: p}, nil
	}
	if p.Quotas, err = c.quotas(r, project.ID); err != nil {
		return view{}, err
	}
	grants, err := c.people.Grants(r.Context(), uuid.Nil, project.ID)
	if err != nil {
		return view{}, err
	}
	for _, g := range grants {
		p.People = append(p.People, memberRow{g.ID, string(g.Kind), g.Subject, g.Role, g.By})
	}
	roles, err := c.people.Roles(r.Context())
	for _, role := range roles {
		p.Roles = append(p.Roles, role.Name)
	}
	return view{template: "project", data: p}, err
}

// doProjectQuota sets what a project may use. An empty field is no limit.
func (c *console) doProjectQuota(r *http.Request) (string, error) {
	project, err := c.projectOf(r)
	if err != nil {
		return "", err
	}
	return projectURL(project.ID) + "?done=saved#quotas", c.setQuota(r, project.ID)
}

func (c *console) doGiveMember(r *http.Request) (string, error) {
	project, err := c.projectOf(r)
	if err != nil {
		return "", err
	}
	_, err = c.people.Give(r.Context(), access.Grant{
		Kind: access.SubjectKind(field(r, "kind")), Subject: field(r, "name"), Role: field(r, "role"),
		Scope: access.Scope{Project: project.ID},
	}, access.Target{Project: project.ID})
	return projectURL(project.ID) + "?done=given", err
}

// doTakeMember takes a role in this project away, and no role elsewhere.
func (c *console) doTakeMember(r *http.Request) (string, error) {
	project, err := c.projectOf(r)
	if err != nil {
		return "", err
	}
	grants, err := c.people.Grants(r.Context(), uuid.Nil, project.ID)
	if err != nil {
		return "", err
	}
	id := field(r, "id")
	if !slices.ContainsFunc(grants, func(g access.Grant) bool { return g.ID.String() == strings.ToLower(id) }) {
		return "", fault.New("console.take", fault.NotFound, "the project has no such member")
	}
	return projectURL(project.ID) + "?done=taken", c.people.Take(r.Context(), uuid.MustParse(id))
}
