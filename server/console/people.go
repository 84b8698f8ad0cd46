package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/people"
)

// peoplePage shows who may log in and who may do what, and changes it.
type peoplePage struct {
	frame
	Off    bool // nobody has to log in
	Users  []userRow
	Groups []subjectRow // groups and tokens that have roles
	Roles  []roleRow
	Places []placeOption
	Labels []access.Label
	Verbs  []access.Definition
}

type userRow struct {
	Name      string
	Method    string // how they log in, in words
	Password  bool   // with a password of this server
	Disabled  bool
	Self      bool
	LastLogin *time.Time
	Grants    []grantRow
}

// subjectRow is a group or a token with its roles.
type subjectRow struct {
	Kind, Name string
	Grants     []grantRow
}

type grantRow struct {
	ID    uuid.UUID
	Role  string
	Where string
}

type roleRow struct {
	Name, Description string
	Allows            []string
	BuiltIn           bool
}

// placeOption is a scope that a form offers.
type placeOption struct{ Value, Text string }

// accountPage is for somebody's own password and logins.
type accountPage struct {
	frame
	Off      bool
	Name     string
	Password bool // they have one that the server keeps a hash of
	Bindings []string
	Sessions []sessionRow
	Tokens   []tokenRow
	Roles    []string // that a token can be given
	Places   []placeOption
}

type sessionRow struct {
	ID      uuid.UUID
	Client  string
	Address string
	Agent   string
	Created time.Time
	Seen    time.Time
	Current bool
}

// places names scopes.
type places struct {
	projects     map[uuid.UUID]string
	environments map[uuid.UUID]string
	options      []placeOption
}

func (c *console) places(ctx context.Context) (places, error) {
	p := places{
		projects: map[uuid.UUID]string{}, environments: map[uuid.UUID]string{},
		options: []placeOption{{"server", "the whole server"}},
	}
	projects, err := c.store.Projects(ctx)
	if err != nil {
		return p, err
	}
	environments, err := c.store.Environments(ctx)
	for _, project := range projects {
		p.projects[project.ID] = project.Name
		p.options = append(p.options, placeOption{"project " + project.ID.String(), "project " + project.Name})
		for _, e := range environments {
			if e.ProjectID == project.ID {
				p.environments[e.ID] = project.Name + "/" + e.Name
				p.options = append(p.options,
					placeOption{"environment " + e.ID.String(), "environment " + project.Name + "/" + e.Name})
			}
		}
	}
	return p, err
}

// where names a scope.
func (p places) where(s access.Scope) string {
	switch {
	case s.Project != uuid.Nil:
		return "in the project " + cmp.Or(p.projects[s.Project], s.Project.String())
	case s.Environment != uuid.Nil:
		return "in the environment " + cmp.Or(p.environments[s.Environment], s.Environment.String())
	case s.Tag != "":
		return "in environments with the tag " + s.Tag
	}
	return "on the whole server"
}

func (c *console) peopleList(r *http.Request) (view, error) {
	ctx := r.Context()
	f, err := c.frame(r, "People", "people", crumb{Text: "People"})
	if err != nil {
		return view{}, err
	}
	f.Live = false // a form must not change while somebody fills it in
	p := peoplePage{frame: f, Off: !c.people.Enabled(), Labels: access.Labels, Verbs: access.Verbs}
	users, err := c.people.Users(ctx)
	if err != nil {
		return view{}, err
	}
	grants, err := c.people.Grants(ctx, uuid.Nil, uuid.Nil)
	if err != nil {
		return view{}, err
	}
	roles, err := c.people.Roles(ctx)
	if err != nil {
		return view{}, err
	}
	known, err := c.places(ctx)
	if err != nil {
		return view{}, err
	}
	p.Places = known.options
	for _, u := range users {
		row := userRow{
			Name: u.Name, Method: "a password", Password: u.Method == access.ByPassword, Disabled: u.Disabled,
			Self: u.ID == access.Of(ctx).User, LastLogin: u.LastLogin,
		}
		if !row.Password {
			row.Method = "an identity provider"
		}
		for _, g := range grants {
			if g.User == u.ID {
				row.Grants = append(row.Grants, grantRow{g.ID, g.Role, known.where(g.Scope)})
			}
		}
		p.Users = append(p.Users, row)
	}
	for _, g := range grants {
		if g.Kind == access.OfUser {
			continue
		}
		kind := string(g.Kind)
		i := slices.IndexFunc(p.Groups, func(s subjectRow) bool { return s.Kind == kind && s.Name == g.Subject })
		if i < 0 {
			i, p.Groups = len(p.Groups), append(p.Groups, subjectRow{Kind: kind, Name: g.Subject})
		}
		p.Groups[i].Grants = append(p.Groups[i].Grants, grantRow{g.ID, g.Role, known.where(g.Scope)})
	}
	for _, role := range roles {
		row := roleRow{Name: role.Name, Description: role.Description, BuiltIn: role.BuiltIn}
		for _, l := range role.Labels {
			row.Allows = append(row.Allows, string(l))
		}
		for _, v := range role.Verbs {
			row.Allows = append(row.Allows, string(v))
		}
		p.Roles = append(p.Roles, row)
	}
	return view{template: "people", data: p}, nil
}

// form serves a form that is not about an environment.
func (c *console) form(do func(*http.Request) (next string, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		err := r.ParseForm()
		if err != nil {
			c.fail(w, r, fault.Wrap("console.form", fault.Invalid, err).Say("the form cannot be read"))
			return
		}
		next, err := do(r.WithContext(people.WithOrigin(r)))
		if err != nil {
			audit.Failed(r.Context(), err)
			c.fail(w, r, err)
			return
		}
		http.Redirect(w, r, next, http.StatusSeeOther)
	}
}

func field(r *http.Request, name string) string { return strings.TrimSpace(r.PostFormValue(name)) }

func (c *console) doAddUser(r *http.Request) (string, error) {
	_, err := c.people.AddUser(r.Context(), field(r, "name"), r.PostFormValue("password"))
	return "/people?done=useradded", err
}

func (c *console) doDeleteUser(r *http.Request) (string, error) {
	return "/people?done=userdeleted", c.people.DeleteUser(r.Context(), field(r, "name"))
}

func (c *console) doDisableUser(r *http.Request) (string, error) {
	disable := r.PostFormValue("disable") == "yes"
	done := "userenabled"
	if disable {
		done = "userdisabled"
	}
	return "/people?done=" + done, c.people.DisableUser(r.Context(), field(r, "name"), disable)
}

func (c *console) doSetPassword(r *http.Request) (string, error) {
	return "/people?done=password", c.people.SetPassword(r.Context(), field(r, "name"), r.PostFormValue("password"))
}

func (c *console) doGive(r *http.Request) (string, error) {
	g := access.Grant{Kind: access.SubjectKind(field(r, "kind")), Subject: field(r, "name"), Role: field(r, "role")}
	var target access.Target
	var err error
	if g.Scope.Tag = field(r, "tag"); g.Scope.Tag == "" {
		if g.Scope, target, err = c.place(r.Context(), field(r, "place")); err != nil {
			return "", err
		}
	}
	_, err = c.people.Give(r.Context(), g, target)
	return "/people?done=given", err
}

func (c *console) doTake(r *http.Request) (string, error) {
	id, err := uuid.Parse(field(r, "id"))
	if err != nil {
		return "", fault.New("console.take", fault.NotFound, "there is no such role of anybody")
	}
	return "/people?done=taken", c.people.Take(r.Context(), id)
}

func (c *console) doCreateRole(r *http.Request) (string, error) {
	role := access.Role{Name: field(r, "name"), Description: field(r, "description")}
	for _, l := range r.PostForm["label"] {
		role.Labels = append(role.Labels, access.Label(l))
	}
	for _, v := range r.PostForm["verb"] {
		role.Verbs = append(role.Verbs, access.Verb(v))
	}
	return "/people?done=rolemade", c.people.CreateRole(r.Context(), role)
}

func (c *console) doDeleteRole(r *http.Request) (string, error) {
	return "/people?done=roledeleted", c.people.DeleteRole(r.Context(), field(r, "name"))
}

func (c *console) account(r *http.Request) (view, error) {
	ctx := r.Context()
	f, err := c.frame(r, "Your account", "account", crumb{Text: "Your account"})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	me := access.Of(ctx)
	p := accountPage{frame: f, Off: !c.people.Enabled(), Name: me.Name}
	if me.User == uuid.Nil {
		return view{template: "account", data: p}, nil
	}
	u, err := c.people.UserNamed(ctx, me.Name)
	if err != nil {
		return view{}, err
	}
	p.Password = u.Method == access.ByPassword
	known, err := c.places(ctx)
	if err != nil {
		return view{}, err
	}
	for _, b := range me.Bindings {
		text := b.Role.Name + " " + known.where(b.Scope)
		if b.Through != "" {
			text += ", through " + b.Through
		}
		p.Bindings = append(p.Bindings, text)
	}
	if err := c.tokensOf(ctx, &p, known); err != nil {
		return view{}, err
	}
	sessions, err := c.people.Sessions(ctx, me.User)
	if err != nil {
		return view{}, err
	}
	for _, s := range sessions {
		row := sessionRow{
			ID: s.ID, Client: "console", Address: s.Address, Agent: cmp.Or(s.Agent, "unknown"), Created: s.Created,
			Seen: s.Seen, Current: s.ID.String() == me.Credential,
		}
		if s.Client == access.APIClient {
			row.Client = "API or command line"
		}
		p.Sessions = append(p.Sessions, row)
	}
	return view{template: "account", data: p}, nil
}

func (c *console) doOwnPassword(r *http.Request) (string, error) {
	if r.PostFormValue("password") != r.PostFormValue("again") {
		return "", fault.New("console.password", fault.Invalid, "the two new passwords differ")
	}
	err := c.people.ChangeOwnPassword(r.Context(), r.PostFormValue("current"), r.PostFormValue("password"))
	return "/account?done=password", err
}

func (c *console) doEndSession(r *http.Request) (string, error) {
	id, err := uuid.Parse(field(r, "id"))
	if err != nil {
		return "", fault.New("console.session", fault.NotFound, "there is no such login")
	}
	return "/account?done=ended", c.people.EndSession(r.Context(), access.Of(r.Context()).User, id)
}
