package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

// tokenRow is a personal token on the page of its owner.
type tokenRow struct {
	ID       uuid.UUID
	Name     string
	May      string
	Expires  time.Time
	Expired  bool
	LastUsed *time.Time
}

// tokenPage shows a new token, this once.
type tokenPage struct {
	frame
	Name  string
	Token string
}

// tokensOf adds the sender's own tokens to their page, and what a new one can be given: of places, those that they may
// see.
func (c *console) tokensOf(ctx context.Context, p *accountPage, known places) error {
	all, err := c.tokens.Personal(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		p.Tokens = append(p.Tokens, tokenRow{
			ID: t.ID, Name: t.Name, May: strings.Join(t.Roles, ", ") + " " + known.where(t.Scope), Expires: t.Expires,
			Expired: !t.Expires.After(c.now()), LastUsed: t.LastUsed,
		})
	}
	roles, err := c.people.Roles(ctx)
	for _, r := range roles {
		p.Roles = append(p.Roles, r.Name)
	}
	if err != nil {
		return err
	}
	me := access.Of(ctx)
	for _, o := range known.options {
		_, target, err := c.place(ctx, o.Value)
		if err != nil {
			return err
		}
		if me.Sees(target) {
			p.Places = append(p.Places, o)
		}
	}
	return nil
}

// place reads the value of a placeOption.
func (c *console) place(ctx context.Context, value string) (scope access.Scope, target access.Target, err error) {
	kind, id, _ := strings.Cut(value, " ")
	place, bad := uuid.Parse(id)
	switch {
	case kind == "server":
		return scope, target, nil
	case kind == "project" && bad == nil:
		return access.Scope{Project: place}, access.Target{Project: place}, nil
	case kind == "environment" && bad == nil:
		e, err := c.store.Environment(ctx, place)
		return access.Scope{Environment: place}, access.TargetOf(e), err
	}
	return scope, target, fault.New("console.place", fault.Invalid, "say where the role holds")
}

func (c *console) doCreateToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	ctx := r.Context()
	days, err := strconv.Atoi(field(r, "days"))
	if err != nil || days < 1 || days > 36500 {
		c.fail(w, r, fault.New("console.token", fault.Invalid, "say in how many days the token expires"))
		return
	}
	scope, target, err := c.place(ctx, field(r, "place"))
	if err == nil && !access.Of(ctx).Sees(target) {
		err = fault.New("console.token", fault.NotFound, "there is no such place")
	}
	var t access.PersonalToken
	var text string
	if err == nil {
		t, text, err = c.tokens.CreatePersonal(ctx, access.PersonalToken{
			Name: field(r, "name"), Roles: []string{field(r, "role")}, Scope: scope,
		}, time.Duration(days)*24*time.Hour)
	}
	var f frame
	if err == nil {
		f, err = c.frame(r, "Your new token", "account", crumb{Text: "Your account", URL: "/account"})
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	f.Live = false
	c.render(w, r, http.StatusOK, view{template: "token", data: tokenPage{frame: f, Name: t.Name, Token: text}})
}

func (c *console) doRevokeToken(r *http.Request) (string, error) {
	id, err := uuid.Parse(field(r, "id"))
	if err != nil {
		return "", fault.New("console.token", fault.NotFound, "you have no such token")
	}
	return "/account?done=revoked", c.tokens.RevokePersonal(r.Context(), id)
}
