package console

import (
	"net/http"
	"net/url"
	"strings"
)

// The page of settings is long, so its parts are folded, and a link opens one of them:
//
//	?group=secrets            that part is open
//	?find=poll, ?changed=yes  the groups of options with what was found are open
//	a form that was refused, or was just saved: its part is open
//	none of these             the first part is open
//
// Each part is a details element, so that browsers open those that an address leads into, and people open others.

// settingsPart is a part of the page, as the list of contents has it.
type settingsPart struct {
	ID, Text, URL string
	Current       bool
}

// openSettings returns the part of the page that is open, besides what a search found.
func openSettings(r *http.Request, problem *settingsProblem) string {
	form := flashed(r).Part
	if problem != nil {
		form = problem.Form
	}
	query := r.URL.Query()
	switch {
	case strings.HasPrefix(form, "form-"):
		return "secrets"
	case form == "clear" || form == "delete":
		return "danger"
	case strings.HasPrefix(form, "setting-"):
		return "" // its group knows
	case form != "":
		return form
	case query.Get("group") != "":
		return query.Get("group")
	case query.Get("find") != "" || query.Has("changed"):
		return ""
	}
	return "source"
}

// Opens reports whether a part of the page is open.
func (p settingsPage) Opens(part string) bool { return p.Open == part }

// openGroups opens the groups of options that a search found something in, whose option was refused or saved, or that
// were asked for.
func (l *settingList) openGroups(open string) {
	for i := range l.Groups {
		g := &l.Groups[i]
		g.Open = g.ID == open || l.Find != "" || l.Only
		for _, s := range g.Settings {
			g.Open = g.Open || s.Saved || s.Problem != ""
			if s.Changed {
				g.Changed++
			}
		}
	}
}

// Contents returns the parts of the page.
func (p settingsPage) Contents() (out []settingsPart) {
	add := func(id, text string, shown, open bool) {
		if shown {
			address := p.Env.URL + "/settings?" + url.Values{"group": {id}}.Encode() + "#" + id
			out = append(out, settingsPart{ID: id, Text: text, URL: address, Current: open})
		}
	}
	one := func(id, text string, shown bool) { add(id, text, shown, p.Opens(id)) }
	one("source", "Where the model is committed", true)
	for _, g := range p.Options.Groups {
		add(g.ID, g.Title, true, g.Open)
	}
	one("secrets", "Secrets", true)
	one("hosts", "SSH servers", p.Project.Visible)
	one("variables", "Variables", true)
	one("hooks", "Webhooks", true)
	one("quotas", "Quotas", len(p.Quotas) > 0)
	one("copies", "Copies", true)
	one("danger", "Danger zone", true)
	return out
}
