package console

import (
	"net/http"
	"net/url"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/people"
)

// leavingPage sends people on to the provider, to log out there, too. It is a page of its own, since browsers let no
// form lead to another site.
type leavingPage struct {
	frame
	Provider string
	Address  string
}

// providerName returns the name of the identity provider; empty: people cannot log in at one.
func (c *console) providerName() string {
	if c.provider == nil {
		return ""
	}
	return c.provider.Name()
}

func (c *console) beginProvider(w http.ResponseWriter, r *http.Request) {
	if c.provider == nil {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	address, err := c.provider.Begin(w, localPath(r.URL.Query().Get("next")))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	http.Redirect(w, r, address, http.StatusSeeOther)
}

func (c *console) finishProvider(w http.ResponseWriter, r *http.Request) {
	if c.provider == nil {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	who, next, err := c.provider.Finish(w, r)
	var user access.User
	origin := people.WithOrigin(r)
	if err == nil {
		user, err = c.people.Identify(origin, who.ID, who.Name, who.Groups)
	}
	var token people.Token
	if err == nil {
		token, err = c.people.StartSession(origin, user, access.ConsoleClient, c.people.Cookie(r))
	}
	if err != nil {
		c.render(w, r, http.StatusUnauthorized, view{template: "login", data: loginPage{
			frame: c.strangerFrame("Log in"), Next: "/", Problem: spoken(err), Provider: c.providerName(),
		}})
		return
	}
	c.people.SetCookie(w, token)
	http.Redirect(w, r, localPath(next), http.StatusSeeOther)
}

// leaveProvider goes on to the provider's logout, if somebody logged in there and it offers one. It reports whether it
// has answered.
func (c *console) leaveProvider(w http.ResponseWriter, r *http.Request) bool {
	if c.provider == nil {
		return false
	}
	u, err := c.people.UserNamed(r.Context(), access.Of(r.Context()).Name)
	if err != nil || u.Method != access.ByOIDC {
		return false
	}
	address := c.provider.LogoutAddress("/login?notice=out")
	if _, err := url.Parse(address); address == "" || err != nil {
		return false
	}
	c.render(w, r, http.StatusOK, view{template: "leaving", data: leavingPage{
		frame: c.strangerFrame("Logging out"), Provider: c.provider.Name(), Address: address,
	}})
	return true
}
