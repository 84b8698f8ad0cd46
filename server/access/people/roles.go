package people

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// Roles lists the roles: those that every server has, then those of people's own.
func (s *Service) Roles(ctx context.Context) ([]access.Role, error) {
	own, err := s.store.OwnRoles(ctx)
	return append(slices.Clone(access.BuiltIn), own...), err
}

// CreateRole makes a role.
func (s *Service) CreateRole(ctx context.Context, r access.Role) error {
	if err := s.needEnabled(); err != nil {
		return err
	}
	if err := checkRole(r); err != nil {
		return err
	}
	audit.Subject(ctx, "role "+r.Name)
	audit.Change(ctx, nil, allows(r))
	return s.store.CreateRole(ctx, r)
}

// UpdateRole changes what a role allows. It may then allow nothing that the sender may not do on the whole server:
// they may have the role themselves.
func (s *Service) UpdateRole(ctx context.Context, r access.Role) error {
	if err := s.needEnabled(); err != nil {
		return err
	}
	if err := checkRole(r); err != nil {
		return err
	}
	audit.Subject(ctx, "role "+r.Name)
	if verb, lacks := access.Of(ctx).Lacks(r, access.Target{}); lacks {
		return fault.New("people.UpdateRole", fault.Forbidden, fmt.Sprintf(
			"the role would allow %s, which you may not do on the whole server yourself", verb)).
			Hint("ask an administrator of the server")
	}
	own, err := s.store.OwnRoles(ctx)
	for _, before := range own {
		if before.Name == r.Name {
			audit.Change(ctx, allows(before), allows(r))
		}
	}
	if err == nil {
		err = s.store.UpdateRole(ctx, r)
	}
	s.changed()
	return err
}

// DeleteRole deletes a role that nobody has.
func (s *Service) DeleteRole(ctx context.Context, name string) error {
	if err := s.needEnabled(); err != nil {
		return err
	}
	if builtIn(name) {
		return fault.New("people.role", fault.Invalid, "every server has the role "+name)
	}
	audit.Subject(ctx, "role "+name)
	err := s.store.DeleteRole(ctx, name)
	s.changed() // tokens may be limited to it
	return err
}

// allows returns what a role allows, for the audit trail.
func allows(r access.Role) map[string]any {
	return map[string]any{"labels": r.Labels, "verbs": r.Verbs}
}

// noteGrant adds who gets or loses a role to the audit trail.
func noteGrant(ctx context.Context, g access.Grant, given bool) {
	audit.Subject(ctx, string(g.Kind)+" "+g.Subject)
	value := map[string]string{"role": g.Role, "scope": g.Scope.String()}
	if given {
		audit.Change(ctx, nil, value)
	} else {
		audit.Change(ctx, value, nil)
	}
}

func builtIn(name string) bool {
	return slices.ContainsFunc(access.BuiltIn, func(r access.Role) bool { return r.Name == name })
}

func checkRole(r access.Role) error {
	bad := func(format string, args ...any) error {
		return fault.New("people.role", fault.Invalid, fmt.Sprintf(format, args...))
	}
	control := strings.ContainsFunc(r.Name+r.Description, unicode.IsControl)
	switch {
	case strings.TrimSpace(r.Name) != r.Name || r.Name == "" || utf8.RuneCountInString(r.Name) > 100 || control:
		return bad("the name of a role is a line of 1 to 100 characters")
	case len(r.Description) > 1000:
		return bad("the description of a role should be at most 1000 bytes long")
	case builtIn(r.Name):
		return bad("every server has the role %s, and it cannot be changed", r.Name)
	}
	for _, l := range r.Labels {
		if !slices.Contains(access.Labels, l) {
			return bad("there is no label %q; the labels are %v", l, access.Labels)
		}
	}
	for _, v := range r.Verbs {
		if _, ok := v.Define(); !ok {
			return bad("there is no verb %q; `ordain access verbs` lists them", v)
		}
	}
	return nil
}

// Give gives somebody a role in a scope. target is the scope as a target. The sender must be allowed to do there
// whatever the role allows, so that nobody gives more than they have.
func (s *Service) Give(ctx context.Context, g access.Grant, target access.Target) (access.Grant, error) {
	if err := s.needEnabled(); err != nil {
		return g, err
	}
	roles, err := s.Roles(ctx)
	if err != nil {
		return g, err
	}
	i := slices.IndexFunc(roles, func(r access.Role) bool { return r.Name == g.Role })
	if i < 0 {
		return g, fault.New("people.Give", fault.NotFound, "Role "+g.Role+" doesn't exist.")
	}
	sender := access.Of(ctx)
	if verb, lacks := sender.Lacks(roles[i], target); lacks {
		return g, fault.New("people.Give", fault.Forbidden, fmt.Sprintf(
			"the role %s allows %s there, which you may not do yourself", g.Role, verb)).
			Hint("ask an administrator of the server")
	}
	switch {
	case g.Kind == access.OfUser:
		u, err := s.user(ctx, g.Subject)
		if err != nil {
			return g, err
		}
		g.User, g.Subject = u.ID, u.Name
	case g.Kind != access.OfGroup && g.Kind != access.OfToken:
		return g, fault.New("people.Give", fault.Invalid, "a role is given to a user, a group or a token")
	case strings.TrimSpace(g.Subject) == "" || len(g.Subject) > 300:
		return g, fault.New("people.Give", fault.Invalid, "say who gets the role")
	}
	if len(g.Scope.Tag) > 100 {
		return g, fault.New("people.Give", fault.Invalid, "a tag should be at most 100 bytes long")
	}
	g.ID, g.By, g.Created = uuid.New(), sender.Name, s.now()
	noteGrant(ctx, g, true)
	err = s.store.AddGrant(ctx, g, !roles[i].BuiltIn)
	s.changed()
	return g, err
}

// Take takes a role away.
func (s *Service) Take(ctx context.Context, id uuid.UUID) error {
	if err := s.needEnabled(); err != nil {
		return err
	}
	g, err := s.store.Grant(ctx, id)
	if err != nil {
		return err
	}
	noteGrant(ctx, g, false)
	if err := s.mayTake(ctx, g); err != nil {
		return err
	}
	err = s.store.DeleteGrant(ctx, id)
	s.changed()
	return err
}

// mayTake lets the sender take only roles that they could also give on the server: a manager of roles does not remove
// administrators. Within a project or an environment, its administrators decide.
func (s *Service) mayTake(ctx context.Context, g access.Grant) error {
	sender := access.Of(ctx)
	if !sender.Known() || g.Scope.Project != uuid.Nil || g.Scope.Environment != uuid.Nil {
		return nil
	}
	roles, err := s.Roles(ctx)
	if err != nil {
		return err
	}
	for _, r := range roles {
		if verb, lacks := sender.Lacks(r, access.Target{}); lacks && r.Name == g.Role {
			return fault.New("people.Take", fault.Forbidden, fmt.Sprintf(
				"the role %s allows %s there, which you may not do yourself", g.Role, verb)).
				Hint("ask an administrator of the server")
		}
	}
	return nil
}

// Grants lists who has which role where: of one user, in one project, or all if both are uuid.Nil.
func (s *Service) Grants(ctx context.Context, user, project uuid.UUID) ([]access.Grant, error) {
	return s.store.Grants(ctx, user, project)
}

// UserNamed returns the user with a name.
func (s *Service) UserNamed(ctx context.Context, name string) (access.User, error) {
	return s.user(ctx, name)
}

// SetAdministrator makes a user an administrator of the whole server, or an administrator no more.
func (s *Service) SetAdministrator(ctx context.Context, name string, administrator bool) error {
	if err := s.needEnabled(); err != nil {
		return err
	}
	u, err := s.user(ctx, name)
	if err != nil || u.Administrator == administrator {
		return err
	}
	if administrator {
		_, err := s.Give(ctx, access.Grant{
			Kind: access.OfUser, Subject: u.Name, Role: access.Administrator.Name,
		}, access.Target{})
		return err
	}
	grants, err := s.Grants(ctx, u.ID, uuid.Nil)
	for _, g := range grants {
		if err == nil && g.Role == access.Administrator.Name && g.Scope == (access.Scope{}) {
			err = s.Take(ctx, g.ID)
		}
	}
	return err
}
