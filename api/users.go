package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/people"
)

func (s *server) userCalls(c *calls) {
	v2(c, http.MethodPost, "/api/v2/login", "Log in with a password; the token goes into the header Authorization.",
		access.LogIn, s.login)
	v2(c, http.MethodPost, "/api/v2/login/renew", "Replace the token of a login by a new one, until the same time.",
		access.ManageSelf, s.renewLogin)
	done[noBody](c, http.MethodPost, "/api/v2/logout", "End the login that sends this.", access.ManageSelf, s.logout)
	v2(c, http.MethodGet, "/api/v2/current_user", "Show who is logged in; 404 when nobody has to log in.",
		access.SeeSelf, s.currentUser)
	v2(c, http.MethodGet, "/api/v2/session", "List one's own logins that have not ended.",
		access.SeeSelf, s.listSessions)
	done[noBody](c, http.MethodDelete, "/api/v2/session/{id}", "End one of one's own logins.",
		access.ManageSelf, s.endSession)
	v2(c, http.MethodGet, "/api/v2/user", "List the users with their roles in environments.",
		access.SeeUsers, s.listUsers)
	v2(c, http.MethodPost, "/api/v2/user", "Add a user, with a password of 12 to 128 characters.",
		access.ManageUsers, s.addUser)
	done[noBody](c, http.MethodDelete, "/api/v2/user/{username}", "Delete a user, who is logged out at once.",
		access.ManageUsers, s.deleteUser)
	done[noBody](
		c,
		http.MethodPatch,
		"/api/v2/user/{username}",
		"Disable a user, who is logged out at once, or enable "+
			"one again.",
		access.ManageUsers,
		s.disableUser,
	)
	// It looks itself whether the sender may manage users, when it is about somebody else.
	done[noBody](c, http.MethodPatch, "/api/v2/user/{username}/password", "Change a password: one's own, with the "+
		"present one, or as an administrator that of somebody else. Other logins of the user end.",
		access.ChangePassword, s.setPassword)
	done[noBody](c, http.MethodPatch, "/api/v2/is_admin", "Make a user an administrator of the whole server, or not.",
		access.ManageUsers, s.setAdministrator)
}

// user is a user as the API shows it.
type user struct {
	Username   string `json:"username"`
	AuthMethod string `json:"auth_method"`
	IsAdmin    bool   `json:"is_admin"`
}

func userOf(u access.User) user {
	return user{Username: u.Name, AuthMethod: u.Method, IsAdmin: u.Administrator}
}

type userWithRoles struct {
	user
	Roles     map[string][]string `json:"roles"` // by environment
	Disabled  bool                `json:"disabled"`
	Created   timestamp           `json:"created"`
	LastLogin *timestamp          `json:"last_login"`
}

type loginAnswer struct {
	Token     string `json:"token"`
	User      user   `json:"user"`
	ExpiresIn int    `json:"expires_in"` // seconds
}

// setHeaders gives clients the token where Inmanta's look for it.
func (l loginAnswer) setHeaders(h http.Header) { h.Set("Authorization", "Bearer "+l.Token) }

func loginAnswerOf(t people.Token) loginAnswer {
	return loginAnswer{Token: t.Text, User: userOf(t.User), ExpiresIn: int(time.Until(t.Expires).Seconds())}
}

type credentials struct {
	Username string `arg:"username,required"`
	Password string `arg:"password,required"`
}

type oneUser struct {
	Username string `arg:"username,required"`
}

type newPassword struct {
	oneUser
	Password string `arg:"password,required"`
	Current  string `arg:"current_password"`
}

type disabling struct {
	oneUser
	Disabled bool `arg:"disabled,required"`
}

type administrating struct {
	oneUser
	IsAdmin bool `arg:"is_admin,required"`
}

// plain401 answers a wrong password as clients know it, without a prefix.
func plain401(err error) error {
	if fault.Is(err, fault.Unauthorized) {
		return &bare{code: http.StatusUnauthorized, message: err.Error()}
	}
	return err
}

func (s *server) login(ctx context.Context, a credentials) (loginAnswer, error) {
	token, err := s.people.Login(ctx, access.APIClient, a.Username, a.Password, "")
	if err != nil {
		return loginAnswer{}, plain401(err)
	}
	return loginAnswerOf(token), nil
}

func (s *server) renewLogin(ctx context.Context, _ struct{}) (loginAnswer, error) {
	token, err := s.people.Renew(ctx)
	if err != nil {
		return loginAnswer{}, err
	}
	return loginAnswerOf(token), nil
}

func (s *server) logout(ctx context.Context, _ struct{}) error { return s.people.Logout(ctx) }

type currentUser struct {
	Username string `json:"username"`
}

func (s *server) currentUser(ctx context.Context, _ struct{}) (currentUser, error) {
	p := access.Of(ctx)
	if p.User == uuid.Nil {
		return currentUser{}, fault.New("api", fault.NotFound,
			"no current user found, probably an API token is used or authentication is off")
	}
	return currentUser{p.Name}, nil
}

// session is a login that has not ended.
type session struct {
	ID      string    `json:"id"`
	Client  string    `json:"client"`
	Address string    `json:"address"`
	Agent   string    `json:"agent"`
	Created timestamp `json:"created"`
	Seen    timestamp `json:"seen"`
	Expires timestamp `json:"expires"`
	Current bool      `json:"current"`
}

func (s *server) listSessions(ctx context.Context, _ struct{}) ([]session, error) {
	me := access.Of(ctx)
	sessions, err := s.people.Sessions(ctx, me.User)
	return listed(sessions, func(v access.Session) session {
		return session{
			ID: v.ID.String(), Client: v.Client, Address: v.Address, Agent: v.Agent, Created: stamp(v.Created),
			Seen: stamp(v.Seen), Expires: stamp(v.Expires), Current: v.ID.String() == me.Credential,
		}
	}), err
}

type oneSession struct {
	ID uuid.UUID `arg:"id,required"`
}

func (s *server) endSession(ctx context.Context, a oneSession) error {
	return s.people.EndSession(ctx, access.Of(ctx).User, a.ID)
}

func (s *server) listUsers(ctx context.Context, _ struct{}) ([]userWithRoles, error) {
	users, err := s.people.Users(ctx)
	if err != nil {
		return nil, err
	}
	grants, err := s.people.Grants(ctx, uuid.Nil, uuid.Nil)
	return listed(users, func(u access.User) userWithRoles {
		out := userWithRoles{
			user: userOf(u), Roles: assignmentsOf(grants, u.ID), Disabled: u.Disabled, Created: stamp(u.Created),
		}
		if u.LastLogin != nil {
			out.LastLogin = new(stamp(*u.LastLogin))
		}
		return out
	}), err
}

func (s *server) addUser(ctx context.Context, a credentials) (user, error) {
	u, err := s.people.AddUser(ctx, a.Username, a.Password)
	return userOf(u), err
}

func (s *server) deleteUser(ctx context.Context, a oneUser) error {
	return s.people.DeleteUser(ctx, a.Username)
}

func (s *server) disableUser(ctx context.Context, a disabling) error {
	return s.people.DisableUser(ctx, a.Username, a.Disabled)
}

func (s *server) setPassword(ctx context.Context, a newPassword) error {
	me := access.Of(ctx)
	if me.User != uuid.Nil && me.Name == a.Username {
		if a.Current == "" {
			return invalid("changing your own password requires the current password")
		}
		return plain401(s.people.ChangeOwnPassword(ctx, a.Current, a.Password))
	}
	if !me.Decide(access.ManageUsers, access.Target{}).Allowed { // they may not know which users there are
		return noUser(a.Username)
	}
	audit.Verb(ctx, access.ManageUsers)
	return s.people.SetPassword(ctx, a.Username, a.Password)
}

func noUser(name string) error {
	return fault.New("api", fault.NotFound, "User with name "+name+" does not exist.")
}

func (s *server) setAdministrator(ctx context.Context, a administrating) error {
	err := s.people.SetAdministrator(ctx, a.Username, a.IsAdmin)
	return as400(err, fault.NotFound)
}

// as400 turns a fault of one kind into one that clients of the reference expect as 400.
func as400(err error, kind fault.Kind) error {
	if fault.Is(err, kind) {
		return fault.New("api", fault.Invalid, err.Error())
	}
	return err
}
