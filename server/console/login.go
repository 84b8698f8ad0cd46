package console

import (
	"net/http"
	"net/url"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/people"
)

// personFrame is who is logged in, as the header of a page shows them.
type personFrame struct {
	Name   string
	Page   string // the part of the navigation that is current
	People bool   // they may manage people
}

// personOf returns who is logged in; nil if nobody is, or nobody has to.
func (c *console) personOf(r *http.Request, page string) *personFrame {
	p := access.Of(r.Context())
	if !c.people.Enabled() || !p.Known() {
		return nil
	}
	return &personFrame{Name: p.Name, Page: page, People: p.Decide(access.SeeUsers, access.Target{}).Allowed}
}

// strangerFrame returns the frame of a page for people who are not logged in. It shows nothing of the server.
func (c *console) strangerFrame(title string) frame {
	return frame{Title: title, Assets: c.assets.paths, Version: c.program, Stranger: true}
}

// loginPage asks for a name and a password.
type loginPage struct {
	frame
	Name     string
	Next     string
	Problem  string
	Notice   string
	Provider string // the name of the identity provider; empty: there is none
}

// firstPage makes the first administrator.
type firstPage struct {
	frame
	Secret  string
	Name    string
	Problem string
}

// notices say why somebody has to log in. An address names one of them; it cannot bring words of its own.
var notices = map[string]string{
	"out":  "You are logged out.",
	"made": "The administrator was made. Log in to begin.",
}

// localPath returns an address if it is a path of this console, and else the home page.
func localPath(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host != "" || u.Scheme != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.ContainsAny(address, "\\\t\r\n") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

// loginAddress returns the address at which to log in and come back to a page. Forms come back to the page that they
// were on.
func loginAddress(r *http.Request) string {
	next := r.URL.RequestURI()
	if r.Method != http.MethodGet {
		next = "/"
		if u, err := url.Parse(r.Referer()); err == nil && u.Host == r.Host {
			next = localPath(u.RequestURI())
		}
	}
	if next == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(next)
}

func (c *console) login(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	if access.Of(r.Context()).Known() {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	c.render(w, r, http.StatusOK, view{template: "login", data: loginPage{
		frame: c.strangerFrame("Log in"), Next: next, Notice: notices[r.URL.Query().Get("notice")],
		Provider: c.providerName(),
	}})
}

func (c *console) doLogin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	name, next := strings.TrimSpace(r.PostFormValue("name")), localPath(r.PostFormValue("next"))
	token, err := c.people.Login(
		people.WithOrigin(r), access.ConsoleClient, name, r.PostFormValue("password"), c.people.Cookie(r))
	if err != nil {
		code := http.StatusUnauthorized
		switch fault.KindOf(err) {
		case fault.Unauthorized:
		case fault.TooMany:
			code = http.StatusTooManyRequests
		default:
			c.fail(w, r, err)
			return
		}
		c.render(w, r, code, view{template: "login", data: loginPage{
			frame: c.strangerFrame("Log in"), Name: name, Next: next, Problem: spoken(err),
			Provider: c.providerName(),
		}})
		return
	}
	c.people.SetCookie(w, token)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// spoken returns an error as people read it: what happened, and what to do.
func spoken(err error) string {
	var b strings.Builder
	for part := range strings.SplitSeq(err.Error(), "; ") {
		if b.Len() > 0 {
			b.WriteString(" ")
		}
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + strings.TrimSuffix(part[1:], ".") + ".")
		}
	}
	return b.String()
}

func (c *console) doLogout(w http.ResponseWriter, r *http.Request) {
	if err := c.people.Logout(r.Context()); err != nil {
		audit.Failed(r.Context(), err)
		c.fail(w, r, err)
		return
	}
	c.people.ClearCookie(w)
	if c.leaveProvider(w, r) {
		return
	}
	http.Redirect(w, r, "/login?notice=out", http.StatusSeeOther)
}

// first shows the page that the link for the first administrator leads to. Looking at it does not use the link up.
func (c *console) first(w http.ResponseWriter, r *http.Request) {
	works, err := c.people.FirstLinkWorks(r.Context(), r.PathValue("secret"))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	if !works {
		c.fail(w, r, fault.New("console.first", fault.NotFound, "this link was used, has expired, or never existed").
			Hint("if there is no user yet, a restart of the server prints a new link"))
		return
	}
	c.render(w, r, http.StatusOK, view{template: "first", data: firstPage{
		frame: c.strangerFrame("First administrator"), Secret: r.PathValue("secret"),
	}})
}

func (c *console) doFirst(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	name, password := strings.TrimSpace(r.PostFormValue("name")), r.PostFormValue("password")
	problem := func(text string) {
		c.render(w, r, http.StatusBadRequest, view{template: "first", data: firstPage{
			frame: c.strangerFrame("First administrator"), Secret: r.PathValue("secret"), Name: name, Problem: text,
		}})
	}
	if password != r.PostFormValue("again") {
		problem("The two passwords differ.")
		return
	}
	u, err := c.people.MakeFirst(r.Context(), r.PathValue("secret"), name, password)
	if fault.Is(err, fault.Invalid) {
		problem(spoken(err))
		return
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	// Nobody was logged in, but from now on it is known who did it.
	first := access.Principal{Kind: access.Person, Name: u.Name, User: u.ID}
	ctx, trail := c.audit.Begin(r.WithContext(access.With(r.Context(), first)), "console", access.ManageUsers)
	audit.Subject(ctx, "user "+u.Name)
	audit.Change(ctx, nil, map[string]string{"role": access.Administrator.Name, "scope": access.Scope{}.String()})
	c.audit.End(ctx, trail, nil)
	http.Redirect(w, r, "/login?notice=made", http.StatusSeeOther)
}
