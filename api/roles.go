package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

func (s *server) roleCalls(c *calls) {
	v2(c, http.MethodGet, "/api/v2/role", "List the names of the roles.", access.SeeRoles, s.listRoleNames)
	done[noBody](c, http.MethodPost, "/api/v2/role", "Make a role of labels and further verbs.",
		access.ManageRoles, s.createRole)
	done[noBody](c, http.MethodDelete, "/api/v2/role", "Delete a role that nobody has.",
		access.ManageRoles, s.deleteRole)
	done[noBody](c, http.MethodPatch, "/api/v2/role", "Change what a role allows.", access.ManageRoles, s.changeRole)
	// It looks itself whether the sender may see users, when it is about somebody else.
	v2(c, http.MethodGet, "/api/v2/role_assignment/{username}", "List the roles of a user in environments.",
		access.SeeSelf, s.listAssignments)
	done[noBody](c, http.MethodPost, "/api/v2/role_assignment/{username}", "Give a user a role in an environment.",
		access.AssignRoles, s.assignRole)
	done[noBody](c, http.MethodDelete, "/api/v2/role_assignment/{username}", "Take a role in an environment from a "+
		"user.", access.AssignRoles, s.unassignRole)
	v2(c, http.MethodGet, "/api/v2/project/{id}/member", "List who has which role in a project.",
		access.SeeMembers, s.listMembers)
	v2(c, http.MethodPost, "/api/v2/project/{id}/member", "Give a user, a group or a token a role in a project.",
		access.ManageMembers, s.addMember)
	done[noBody](c, http.MethodDelete, "/api/v2/project/{id}/member/{binding}", "Take a role in a project away.",
		access.ManageMembers, s.removeMember)
	v2(c, http.MethodGet, "/api/v2/role_binding", "List who has which role where.", access.SeeUsers, s.listBindings)
	v2(c, http.MethodPost, "/api/v2/role_binding", "Give a user, a group or a token a role on the whole server, or in "+
		"a project, an environment, or all environments with a tag.", access.ManageRoles, s.addBinding)
	done[noBody](c, http.MethodDelete, "/api/v2/role_binding/{binding}", "Take a role away.",
		access.ManageRoles, s.removeBinding)
	v2(c, http.MethodGet, "/api/v2/access/roles", "List the roles with what they allow.", access.SeeRoles, s.listRoles)
	v2(c, http.MethodGet, "/api/v2/access/verbs", "List what can be done, with the label of each.",
		access.SeeVerbs, s.listVerbs)
	// It asks for ExplainAccess itself when it is about somebody else.
	v2(c, http.MethodGet, "/api/v2/access/explain", "Say whether a user may do something to an environment, a project "+
		"or the server, and why.", access.SeeSelf, s.explain)
}

type roleName struct {
	Name string `arg:"name,required"`
}

type roleArguments struct {
	roleName
	Description string   `arg:"description"`
	Labels      []string `arg:"labels"`
	Verbs       []string `arg:"verbs"`
}

func (a roleArguments) role() access.Role {
	return access.Role{
		Name: a.Name, Description: a.Description,
		Labels: listed(a.Labels, func(l string) access.Label { return access.Label(l) }),
		Verbs:  listed(a.Verbs, func(v string) access.Verb { return access.Verb(v) }),
	}
}

func (s *server) listRoleNames(ctx context.Context, _ struct{}) ([]string, error) {
	roles, err := s.people.Roles(ctx)
	return listed(roles, func(r access.Role) string { return r.Name }), err
}

func (s *server) createRole(ctx context.Context, a roleArguments) error {
	return as400(s.people.CreateRole(ctx, a.role()), fault.Conflict)
}

func (s *server) changeRole(ctx context.Context, a roleArguments) error {
	return s.people.UpdateRole(ctx, a.role())
}

func (s *server) deleteRole(ctx context.Context, a roleName) error {
	return as400(as400(s.people.DeleteRole(ctx, a.Name), fault.Conflict), fault.NotFound)
}

// assignments are the roles of a user in environments.
type assignments struct {
	Assignments map[string][]string `json:"assignments"`
}

func assignmentsOf(grants []access.Grant, user uuid.UUID) map[string][]string {
	out := map[string][]string{}
	for _, g := range grants {
		if g.User == user && g.Scope.Environment != uuid.Nil {
			env := g.Scope.Environment.String()
			out[env] = append(out[env], g.Role)
		}
	}
	return out
}

func (s *server) listAssignments(ctx context.Context, a oneUser) (assignments, error) {
	me := access.Of(ctx)
	self := me.User != uuid.Nil && me.Name == a.Username
	if !self && !me.Decide(access.SeeUsers, access.Target{}).Allowed { // they may not know which users there are
		return assignments{}, noUser(a.Username)
	}
	u, err := s.people.UserNamed(ctx, a.Username)
	if err != nil {
		return assignments{}, err
	}
	grants, err := s.people.Grants(ctx, u.ID, uuid.Nil)
	return assignments{assignmentsOf(grants, u.ID)}, err
}

type assignment struct {
	oneUser
	Environment uuid.UUID `arg:"environment,required"`
	Role        string    `arg:"role,required"`
}

func (a assignment) environmentID() uuid.UUID { return a.Environment }

func (s *server) assignRole(ctx context.Context, a assignment) error {
	_, err := s.give(ctx, access.Grant{
		Kind: access.OfUser, Subject: a.Username, Role: a.Role, Scope: access.Scope{Environment: a.Environment},
	})
	if fault.Is(err, fault.Conflict) { // it has the role already
		return nil
	}
	return as400(err, fault.NotFound)
}

func (s *server) unassignRole(ctx context.Context, a assignment) error {
	missing := invalid("Role %s (environment=%s) is not assigned to user %s", a.Role, a.Environment, a.Username)
	u, err := s.people.UserNamed(ctx, a.Username)
	if fault.Is(err, fault.NotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	grants, err := s.people.Grants(ctx, u.ID, uuid.Nil)
	if err != nil {
		return err
	}
	for _, g := range grants {
		if g.Role == a.Role && g.Scope.Environment == a.Environment {
			return s.people.Take(ctx, g.ID)
		}
	}
	return missing
}

// binding says who has which role where. At most one of project, environment and tag is set.
type binding struct {
	ID          string    `json:"id"`
	Kind        string    `json:"kind"`
	Subject     string    `json:"subject"`
	Role        string    `json:"role"`
	Project     *string   `json:"project"`
	Environment *string   `json:"environment"`
	Tag         *string   `json:"tag"`
	Created     timestamp `json:"created"`
	CreatedBy   string    `json:"created_by"`
}

func bindingOf(g access.Grant) binding {
	b := binding{
		ID: g.ID.String(), Kind: string(g.Kind), Subject: g.Subject, Role: g.Role, Created: stamp(g.Created),
		CreatedBy: g.By,
	}
	switch {
	case g.Scope.Project != uuid.Nil:
		b.Project = new(g.Scope.Project.String())
	case g.Scope.Environment != uuid.Nil:
		b.Environment = new(g.Scope.Environment.String())
	case g.Scope.Tag != "":
		b.Tag = &g.Scope.Tag
	}
	return b
}

// subject is who gets a role.
type subject struct {
	User  string `arg:"user"`
	Group string `arg:"group"`
	Token string `arg:"token"`
	Role  string `arg:"role,required"`
}

func (a subject) grant() (access.Grant, error) {
	given := 0
	g := access.Grant{Role: a.Role}
	for kind, name := range map[access.SubjectKind]string{
		access.OfUser: a.User, access.OfGroup: a.Group, access.OfToken: a.Token,
	} {
		if name != "" {
			given++
			g.Kind, g.Subject = kind, name
		}
	}
	if given != 1 {
		return g, invalid("say who gets the role: a user, a group or a token")
	}
	return g, nil
}

type newBinding struct {
	subject
	Project     uuid.UUID `arg:"project"`
	Environment uuid.UUID `arg:"environment"`
	Tag         string    `arg:"tag"`
}

type newMember struct {
	oneProject
	subject
}

type oneBinding struct {
	Binding uuid.UUID `arg:"binding,required"`
}

type oneMember struct {
	oneProject
	oneBinding
}

func (s *server) listBindings(ctx context.Context, _ struct{}) ([]binding, error) {
	grants, err := s.people.Grants(ctx, uuid.Nil, uuid.Nil)
	return listed(grants, bindingOf), err
}

func (s *server) addBinding(ctx context.Context, a newBinding) (binding, error) {
	g, err := a.grant()
	if err != nil {
		return binding{}, err
	}
	if g.Scope, err = oneScope(a.Project, a.Environment, a.Tag); err != nil {
		return binding{}, err
	}
	g, err = s.give(ctx, g)
	return bindingOf(g), err
}

// oneScope returns a scope of which at most one part is given.
func oneScope(project, environment uuid.UUID, tag string) (access.Scope, error) {
	if project != uuid.Nil && environment != uuid.Nil || tag != "" && (project != uuid.Nil || environment != uuid.Nil) {
		return access.Scope{}, invalid(
			"a role holds in a project, an environment, or environments with a tag, not in several")
	}
	return access.Scope{Project: project, Environment: environment, Tag: tag}, nil
}

func (s *server) removeBinding(ctx context.Context, a oneBinding) error {
	return s.people.Take(ctx, a.Binding)
}

func (s *server) listMembers(ctx context.Context, a oneProject) ([]binding, error) {
	grants, err := s.people.Grants(ctx, uuid.Nil, a.ID)
	return listed(grants, bindingOf), err
}

func (s *server) addMember(ctx context.Context, a newMember) (binding, error) {
	g, err := a.grant()
	if err != nil {
		return binding{}, err
	}
	g.Scope.Project = a.ID
	g, err = s.give(ctx, g)
	return bindingOf(g), err
}

func (s *server) removeMember(ctx context.Context, a oneMember) error {
	grants, err := s.people.Grants(ctx, uuid.Nil, a.ID)
	if err != nil {
		return err
	}
	for _, g := range grants {
		if g.ID == a.Binding {
			return s.people.Take(ctx, g.ID)
		}
	}
	return fault.New("api", fault.NotFound, "the project has no such member")
}

// give gives a role in a scope that the sender may see.
func (s *server) give(ctx context.Context, g access.Grant) (access.Grant, error) {
	target, err := s.target(ctx, g.Scope.Project, g.Scope.Environment)
	if err != nil {
		return g, err
	}
	return s.people.Give(ctx, g, target)
}

// target returns what a verb is done to: an environment, a project, or the server if both ids are nil. What the sender
// may not see does not exist.
func (s *server) target(ctx context.Context, project, environment uuid.UUID) (access.Target, error) {
	var target access.Target
	var err error
	unseen := noProject()
	switch {
	case environment != uuid.Nil:
		unseen = noEnvironment()
		e, notFound := s.store.Environment(ctx, environment)
		target, err = access.TargetOf(e), notFound
	case project != uuid.Nil:
		target.Project = project
		_, err = s.store.Project(ctx, project)
	}
	if fault.Is(err, fault.NotFound) || err == nil && !access.Of(ctx).Sees(target) {
		return target, unseen
	}
	return target, err
}

// roleDefinition is a role with what it allows.
type roleDefinition struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Labels      []string `json:"labels"`
	Verbs       []string `json:"verbs"`
	BuiltIn     bool     `json:"built_in"`
}

func (s *server) listRoles(ctx context.Context, _ struct{}) ([]roleDefinition, error) {
	roles, err := s.people.Roles(ctx)
	return listed(roles, func(r access.Role) roleDefinition {
		return roleDefinition{
			Name: r.Name, Description: r.Description, BuiltIn: r.BuiltIn,
			Labels: listed(r.Labels, func(l access.Label) string { return string(l) }),
			Verbs:  listed(r.Verbs, func(v access.Verb) string { return string(v) }),
		}
	}), err
}

// verbDefinition is something that can be done.
type verbDefinition struct {
	Verb    string `json:"verb"`
	Label   string `json:"label"`
	Reach   string `json:"reach"`
	Summary string `json:"summary"`
}

func (s *server) listVerbs(context.Context, struct{}) ([]verbDefinition, error) {
	return listed(access.Verbs, func(d access.Definition) verbDefinition {
		return verbDefinition{
			Verb: string(d.Verb), Label: string(d.Label), Reach: string(d.Reach), Summary: d.Summary,
		}
	}), nil
}

type question struct {
	User        string    `arg:"user"`
	Verb        string    `arg:"verb,required"`
	Environment uuid.UUID `arg:"environment"`
	Project     uuid.UUID `arg:"project"`
}

// explanation says whether somebody may do something. What is not visible to them does not exist for them.
type explanation struct {
	User    string `json:"user"`
	Verb    string `json:"verb"`
	Label   string `json:"label"`
	Allowed bool   `json:"allowed"`
	Visible bool   `json:"visible"`
	Reason  string `json:"reason"`
}

func (s *server) explain(ctx context.Context, a question) (explanation, error) {
	definition, ok := access.Verb(a.Verb).Define()
	if !ok {
		return explanation{}, invalid("there is no verb %q; GET /api/v2/access/verbs lists them", a.Verb)
	}
	who := access.Of(ctx)
	if a.User != "" && (who.User == uuid.Nil || a.User != who.Name) {
		err := access.Check(ctx, access.ExplainAccess, access.Target{}, nil)
		if err == nil {
			who, err = s.people.Principal(ctx, a.User)
		}
		if err != nil {
			return explanation{}, err
		}
	}
	target, err := s.target(ctx, a.Project, a.Environment)
	if err != nil {
		return explanation{}, err
	}
	d := who.Decide(definition.Verb, target)
	return explanation{
		User: who.Name, Verb: a.Verb, Label: string(definition.Label), Allowed: d.Allowed, Visible: d.Visible,
		Reason: d.Reason,
	}, nil
}
