package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/control"
)

// clonePage is the form that makes an environment from another one.
type clonePage struct {
	frame
	Form     cloneForm
	Projects []choice
	Settings []settingForm // that are copied
	Secrets  bool          // the reader may copy the secrets
	Problem  *settingsProblem
	Unread   bool // the problem is that the repository cannot be read
}

// cloneForm holds the fields of the form.
type cloneForm struct {
	Name, Project, Repository, Branch, Subdir, Description string
	Halted, Secrets, Roles, Anyway                         bool
}

func (c *console) clonePage(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	return c.cloneView(r, e, cloneForm{
		Name: e.Name + "-copy", Project: e.ProjectID.String(), Repository: e.Source.URL, Branch: e.Source.Branch,
		Subdir: e.Source.Subdir, Description: e.Description,
	}, nil)
}

func (c *console) cloneView(
	r *http.Request, e intent.Environment, form cloneForm, problem *settingsProblem,
) (view, error) {
	f, err := c.frame(r, "Clone "+e.Name, "settings", crumb{Text: "Settings", URL: envURL(e.ID) + "/settings"},
		crumb{Text: "Clone"})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	p := clonePage{frame: f, Form: form, Problem: problem}
	p.Secrets = access.Of(r.Context()).
		Decide(access.SetProjectSecret, access.Target{Project: e.ProjectID}).Allowed
	projects, err := c.store.Projects(r.Context())
	if err != nil {
		return view{}, err
	}
	for _, project := range projects {
		if access.Of(r.Context()).Decide(access.CreateEnvironment, access.Target{Project: project.ID}).Allowed {
			id := project.ID.String()
			p.Projects = append(p.Projects, choice{id, project.Name, id == form.Project})
		}
	}
	for _, def := range intent.Settings() {
		if s := settingFormOf(def, e); s.Changed && s.By == "" {
			p.Settings = append(p.Settings, s)
		}
	}
	p.Unread = problem != nil && sourceField(problem.Form)
	return view{template: "clone", data: p}, nil
}

// ProblemAt returns the problem of one field.
func (p clonePage) ProblemAt(field string) *settingsProblem { return p.Problem.At(field) }

func sourceField(name string) bool {
	switch control.SourceField(name) {
	case control.FieldRepository, control.FieldBranch, control.FieldSubdir:
		return true
	}
	return false
}

// doClone serves the form.
func (c *console) doClone(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	e, err := c.environment(r)
	if err == nil {
		if parseErr := r.ParseForm(); parseErr != nil {
			err = fault.Wrap("console.clone", fault.Invalid, parseErr).Say("the form cannot be read")
		}
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	yes := func(name string) bool { return r.PostFormValue(name) == "yes" }
	form := cloneForm{
		Name: field(r, "name"), Project: field(r, "project"), Repository: field(r, "repository"),
		Branch: field(r, "branch"), Subdir: field(r, "subdir"), Description: field(r, "description"),
		Halted: yes("halted"), Secrets: yes("secrets"), Roles: yes("roles"), Anyway: yes("anyway"),
	}
	made, err := c.clone(r, e, form)
	if err == nil {
		http.Redirect(w, r, envURL(made.ID)+"/settings?done=cloned", http.StatusSeeOther)
		return
	}
	audit.Failed(r.Context(), err)
	if !refusal(err) && !isSourceProblem(err) {
		c.fail(w, r, err)
		return
	}
	code, problem := c.formProblem(r, err)
	v, err := c.cloneView(r, e, form, problem)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.render(w, r, code, v)
}

func (c *console) clone(r *http.Request, e intent.Environment, form cloneForm) (intent.Environment, error) {
	how := control.Clone{
		Name: form.Name, Description: &form.Description, Halted: form.Halted, WithSecrets: form.Secrets,
		Source: &intent.Source{URL: form.Repository, Branch: form.Branch, Subdir: form.Subdir},
	}
	var err error
	if how.Project, err = uuid.Parse(form.Project); err != nil {
		return intent.Environment{}, fault.New("console.clone", fault.Invalid, "choose a project")
	}
	if form.Roles {
		how.Roles = func(ctx context.Context, clone intent.Environment) ([]string, error) {
			given, err := c.people.CopyGrants(ctx, access.TargetOf(e), access.TargetOf(clone))
			return people.RolesOf(given), err
		}
	}
	ctx := asConsole(r)
	if !form.Anyway {
		n, err := c.control.CheckClone(ctx, e.ID, how)
		if err == nil {
			err = c.control.CheckSource(ctx, n)
		}
		if err != nil {
			return intent.Environment{}, err
		}
	}
	return c.control.CloneEnvironment(ctx, e.ID, how)
}

// copyPage shows what copying the settings of another environment would change.
type copyPage struct {
	frame
	From     string // its id
	FromName string
	Rows     []copyRow
}

type copyRow struct {
	Name, Title, Before, After, Problem string
}

func (c *console) copySettingsPage(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Copy settings", "settings", crumb{Text: "Settings", URL: envURL(e.ID) + "/settings"},
		crumb{Text: "Copy"})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	from, err := uuid.Parse(r.URL.Query().Get("from"))
	if err != nil {
		return view{}, noEnvironment(r.URL.Query().Get("from"))
	}
	changes, err := c.control.CompareSettings(r.Context(), e.ID, from)
	if err != nil {
		return view{}, err
	}
	p := copyPage{frame: f, From: from.String()}
	for _, other := range f.Envs {
		if other.ID == from {
			p.FromName = other.Name
		}
	}
	for _, s := range changes {
		words := func(value any) string {
			if text := settingValue(s.Setting, value); strings.TrimSpace(text) != "" {
				return text
			}
			return "empty"
		}
		p.Rows = append(p.Rows, copyRow{
			s.Setting.Name, s.Setting.Title, words(s.Before), words(s.After), s.Problem,
		})
	}
	return view{template: "copysettings", data: p}, nil
}

// doCopySettings copies the settings that were chosen.
func (c *console) doCopySettings(r *http.Request, e intent.Environment) (string, error) {
	next := envURL(e.ID) + "/settings?done="
	from, err := uuid.Parse(r.PostFormValue("from"))
	if err != nil {
		return "", noEnvironment(r.PostFormValue("from"))
	}
	names := r.PostForm["setting"]
	if len(names) == 0 {
		return next + "nothingcopied", nil
	}
	copied, err := c.control.CopySettings(r.Context(), e.ID, from, names)
	if err == nil && len(copied) == 0 {
		return next + "nothingcopied", nil
	}
	return next + "copied", err
}
