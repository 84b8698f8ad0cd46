package console

import (
	"net/http"
	"net/url"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/source"
)

// settingsProblem says why a form of the page of settings was refused. The page shows it beside that form, which keeps
// what was typed, secrets excepted.
type settingsProblem struct {
	Form       string // the id of the form
	Text, Hint string
	Values     url.Values
}

// At returns the problem of one form; nil when it has none.
func (p *settingsProblem) At(form string) *settingsProblem {
	if p == nil || p.Form != form {
		return nil
	}
	return p
}

// ProblemAt returns the problem of one form of the page.
func (p settingsPage) ProblemAt(form string) *settingsProblem { return p.Problem.At(form) }

// settingsPost serves a form of the page of settings. form returns the id of the form that was sent.
func (c *console) settingsPost(form func(*http.Request) string, do action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.post(func(r *http.Request, e intent.Environment) (string, error) {
			next, err := do(r, e)
			if err != nil && refusal(err) {
				audit.Failed(r.Context(), err)
				c.refuseSettings(w, r, form(r), err)
				return "", errAnswered
			}
			return next, err
		})(w, r)
	}
}

// refusal reports whether an error is about what was asked, so that the form can be mended.
func refusal(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Forbidden, fault.Conflict, fault.NotFound:
		return true
	}
	return false
}

// refuseSettings shows the page of settings again, with what is wrong beside the form.
func (c *console) refuseSettings(w http.ResponseWriter, r *http.Request, form string, err error) {
	code, _, why, do := c.meaning(r, err)
	problem := &settingsProblem{Form: form, Hint: do, Values: r.PostForm}
	problem.Text = strings.TrimPrefix(why, "setting "+strings.TrimPrefix(form, "setting-")+": ")
	v, err := c.settingsView(r, problem)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.render(w, r, code, v)
}

// restore puts what was typed into the fields of the refused form.
func (p *settingsProblem) restore(page *settingsPage) {
	if p == nil {
		return
	}
	get := p.Values.Get
	switch p.Form {
	case "source":
		page.Source = sourceForm{
			Name: get("name"), Repository: get("repository"), Branch: get("branch"), Subdir: get("subdir"),
			Description: get("description"),
		}
	case "hosts":
		page.Project.KnownHosts = get("lines")
	case "quotas":
		for i := range page.Quotas {
			page.Quotas[i].Value = get(page.Quotas[i].Name)
		}
	}
}

func formNamed(id string) func(*http.Request) string { return func(*http.Request) string { return id } }

func settingFormNamed(r *http.Request) string { return "setting-" + r.PostFormValue("name") }

func secretFormNamed(r *http.Request) string {
	if variable := strings.TrimSpace(r.PostFormValue("variable")); variable != "" {
		return secretPart(source.VariablePrefix + variable)
	}
	return secretPart(r.PostFormValue("name"))
}

// secretPart returns the id of the form that sets a secret; one form sets all variables.
func secretPart(name string) string {
	if strings.HasPrefix(name, source.VariablePrefix) {
		return "variables"
	}
	return "form-" + name
}
