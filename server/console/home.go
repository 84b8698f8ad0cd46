package console

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/source"
)

// homePage lists the environments.
type homePage struct {
	frame
	List     environmentList
	Projects []string
	Pages    []projectLink // of the projects that the reader may look at
	Names    []string      // of the environments
	Form     newEnvironment
	Problem  *settingsProblem // why the form was refused
	Unread   bool             // the problem is that the repository cannot be read
}

type projectLink struct{ Name, URL string }

type environmentList struct{ Rows []template.HTML }

type environmentRow struct {
	Name, Project, URL string
	Repo, Branch       string
	State              state
	Sentence           string
	Bar                bar
	LastRun            *runRow
}

// newEnvironment holds the fields of the form but the secrets.
type newEnvironment struct {
	Project, Name, Repository, Branch, Subdir, GitUser string
	Follow, Settings, Signers, Tags                    string
	Halted                                             bool
	Anyway                                             bool // even if the repository cannot be read
}

// More reports whether the part of the form that is folded at first was filled in.
func (f newEnvironment) More() bool { return f.Settings != "" || f.Signers != "" || f.Tags != "" }

// settings returns the settings that the form sets.
func (f newEnvironment) settings() (map[string]any, error) {
	out := map[string]any{}
	for line := range strings.Lines(f.Settings) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		switch {
		case line == "":
			continue
		case !ok:
			return nil, fault.New("console.createEnvironment", fault.Invalid,
				fmt.Sprintf("the line %.80q is not a setting", line)).Hint("write NAME=VALUE")
		}
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	for name, value := range map[string]string{"follow": f.Follow, "git_allowed_signers": f.Signers} {
		if value != "" {
			out[name] = value
		}
	}
	return out, nil
}

func (c *console) home(r *http.Request) (view, error) { return c.homeView(r, newEnvironment{}, nil) }

// ProblemAt returns the problem of one field of the form.
func (p homePage) ProblemAt(field string) *settingsProblem { return p.Problem.At(field) }

func (c *console) homeView(r *http.Request, form newEnvironment, problem *settingsProblem) (view, error) {
	f, err := c.frame(r, "Environments", "home")
	if err != nil {
		return view{}, err
	}
	f.Stream = "/" // the answer to a refused form is at an address without a stream
	p := homePage{frame: f, Form: form, Problem: problem}
	p.Unread = problem != nil && sourceField(problem.Form)
	shown, err := c.homes.Get(r.Context(), everybody{}, c.loadHome)
	if err != nil {
		return view{}, err
	}
	for _, e := range inHomeOrder(r.Context(), access.Visible(r.Context(), shown.environments)) {
		if card, ok := shown.cards[e.ID]; ok {
			p.List.Rows, p.Names = append(p.List.Rows, card), append(p.Names, e.Name)
		}
	}
	for _, project := range access.VisibleProjects(r.Context(), shown.projects, shown.environments) {
		p.Projects = append(p.Projects, project.Name)
		if access.Of(r.Context()).Decide(access.SeeProject, access.Target{Project: project.ID}).Allowed {
			p.Pages = append(p.Pages, projectLink{project.Name, projectURL(project.ID)})
		}
	}
	return view{template: "home", data: p, fragments: []fragment{{"environments", "environments", p.List}}}, nil
}

// homeContent is what the home pages of all people have in common: every environment and every project. Each person
// sees a part of it.
type homeContent struct {
	environments []intent.Environment
	cards        map[intent.EnvironmentID]template.HTML // rendered, which costs more than all else on the page
	projects     []intent.Project
}

// loadHome reads a few environments at a time.
func (c *console) loadHome(ctx context.Context, _ everybody) (h homeContent, err error) {
	if h.environments, err = c.store.Environments(ctx); err != nil {
		return h, err
	}
	cards, ranks := make([]template.HTML, len(h.environments)), map[intent.EnvironmentID]int{}
	var ranking sync.Mutex
	group, grouped := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, e := range h.environments {
		group.Go(func() (err error) {
			var look state
			cards[i], look, err = c.environmentCard(grouped, e)
			ranking.Lock()
			ranks[e.ID] = pressing(look)
			ranking.Unlock()
			if fault.Is(err, fault.NotFound) {
				return nil // it was deleted meanwhile
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return h, err
	}
	h.cards = map[intent.EnvironmentID]template.HTML{}
	for i, e := range h.environments {
		if cards[i] != "" {
			h.cards[e.ID] = cards[i]
		}
	}
	slices.SortStableFunc(h.environments,
		func(a, b intent.Environment) int { return cmp.Compare(ranks[a.ID], ranks[b.ID]) })
	h.projects, err = c.store.Projects(ctx)
	return h, err
}

func (c *console) environmentCard(ctx context.Context, e intent.Environment) (template.HTML, state, error) {
	s, err := c.summary(ctx, e)
	if err != nil {
		return "", state{}, err
	}
	row := environmentRow{
		Name: e.Name, Project: e.ProjectName, URL: envURL(e.ID), Repo: e.Source.URL, Branch: e.Source.Branch,
		State: s.State, Sentence: s.Text, Bar: s.Bar,
	}
	if len(s.Runs) > 0 {
		row.LastRun = &s.Runs[0]
	}
	html, err := c.renderFragment(view{template: "home"}, fragment{"", "environment", row})
	return template.HTML(html), s.State, err // the template has escaped it
}

// createEnvironment serves the form of the home page.
func (c *console) createEnvironment(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	get := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	form := newEnvironment{
		Project: get("project"), Name: get("name"), Repository: get("repository"),
		Branch: get("branch"), Subdir: get("subdir"), GitUser: get("git-username"),
		Follow: get("follow"), Settings: get("settings"), Signers: get("signers"), Tags: get("tags"),
		Halted: get("halted") == "yes", Anyway: get("anyway") == "yes",
	}
	ctx, trail := c.audit.Begin(r, "console", access.CreateEnvironment) // that of the route only lists them
	id, err := c.makeEnvironment(r.WithContext(ctx), form)
	c.audit.End(ctx, trail, err)
	if err == nil {
		http.Redirect(w, r, envURL(id)+"?done=created", http.StatusSeeOther)
		return
	}
	_, problem := c.formProblem(r, err)
	v, viewErr := c.homeView(r, form, problem)
	if viewErr != nil {
		c.fail(w, r, viewErr)
		return
	}
	c.render(w, r, http.StatusUnprocessableEntity, v)
}

// mayCreateIn checks that the sender may make environments in a project; a zero id is a new project. Whether a project
// exists that the sender may not see makes no difference.
func mayCreateIn(ctx context.Context, project intent.Project) error {
	refused := fault.New("console.createEnvironment", fault.Forbidden, "you may not make environments in this project").
		Hint("ask an administrator for the role maintainer in it; only administrators of the server make new projects")
	if project.ID == uuid.Nil {
		if access.Of(ctx).Decide(access.CreateProject, access.Target{}).Allowed {
			return nil
		}
		return refused
	}
	if access.Of(ctx).Decide(access.CreateEnvironment, access.Target{Project: project.ID}).Allowed {
		return nil
	}
	return refused
}

// makeEnvironment makes an environment, and its project when that is new. If the environment has a repository, it asks
// for the first compile, too.
func (c *console) makeEnvironment(r *http.Request, form newEnvironment) (uuid.UUID, error) {
	ctx := r.Context()
	projects, err := c.store.Projects(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	project := intent.Project{Name: form.Project}
	for _, p := range projects {
		if p.Name == form.Project {
			project = p
		}
	}
	if project.ID != uuid.Nil && access.Of(ctx).Sees(access.Target{Project: project.ID}) {
		audit.OnProject(ctx, project)
	}
	if err := mayCreateIn(ctx, project); err != nil {
		return uuid.Nil, err
	}
	secrets := map[string]string{}
	for field, name := range map[string]string{
		"webhook-secret": source.SecretWebhook, "git-username": source.SecretGitUser,
		"git-password": source.SecretGitPassword,
	} {
		if value := r.PostFormValue(field); value != "" {
			secrets[name] = value
		}
	}
	settings, err := form.settings()
	if err != nil {
		return uuid.Nil, err
	}
	n := control.NewEnvironment{
		Environment: intent.Environment{
			ProjectID: project.ID, Name: form.Name, Halted: form.Halted, Tags: strings.Fields(form.Tags),
			Source:   intent.Source{URL: form.Repository, Branch: form.Branch, Subdir: form.Subdir},
			Settings: settings,
		},
		Secrets: secrets,
	}
	check := c.control.CheckSource
	if form.Anyway {
		check = c.control.CheckNewEnvironment
	}
	if err := check(ctx, n); err != nil {
		return uuid.Nil, err // before a project is made for it
	}
	if project.ID == uuid.Nil {
		if project, err = c.control.CreateProject(ctx, project); err != nil {
			return uuid.Nil, err
		}
		n.Environment.ProjectID = project.ID
	}
	e, err := c.control.CreateEnvironment(asConsole(r), n)
	if err != nil {
		return uuid.Nil, err
	}
	// One that follows another compiles what is promoted to it.
	if e.Source.URL != "" && e.Follows() == "" && !e.Halted {
		_, _, err = c.control.RequestCompile(ctx, e.ID, control.CompileRequest{
			Update: true, Trigger: intent.Trigger{Type: "console", Message: "First compile of the new environment"},
		})
	}
	return e.ID, err
}

// runRow is a run as lists show it.
type runRow struct {
	URL              string
	State            state
	Trigger, Message string
	Commit           string
	Subject, Author  string
	Requested        time.Time
	Started          *time.Time
	Took             time.Duration
	Live             bool
	Version          int
	VersionURL       string
	Merged           bool   // a later run answered the request
	Waits            string // for what it waits, if that is known
}

func (c *console) runRow(run intent.Compile) runRow {
	row := runRow{
		URL: runURL(run.Environment, run.ID), State: runState(run), Trigger: triggerWord(run.Trigger.Type),
		Message: run.Trigger.Message, Requested: run.Requested, Started: run.Started,
		Live: run.Started != nil && run.Completed == nil, Merged: run.Substitute != nil,
	}
	if run.Revision != nil {
		row.Commit, row.Subject, row.Author = run.Revision.Short(), run.Revision.Subject, run.Revision.Author
	}
	switch {
	case run.Completed != nil && run.Started != nil:
		row.Took = run.Completed.Sub(*run.Started)
	case run.Started != nil:
		row.Took = c.now().Sub(*run.Started)
	}
	if run.Version != nil {
		row.Version, row.VersionURL = *run.Version, versionURL(run.Environment, *run.Version)
	}
	return row
}

// Headline returns the name of a run: the subject of its commit, else what asked for it.
func (r runRow) Headline() string {
	switch {
	case r.Subject != "":
		return r.Subject
	case r.Message != "":
		return r.Message
	}
	return "Sync asked for by " + r.Trigger
}

// triggerWord says who or what asked for a compile.
func triggerWord(kind string) string {
	switch kind {
	case "webhook":
		return "push (webhook)"
	case "poll":
		return "push (found by polling)"
	case "watch":
		return "push (seen on disk)"
	case "api":
		return "the API"
	case "cli":
		return "the command line"
	case "console":
		return "the console"
	case "param":
		return "a parameter or fact that changed"
	case intent.TriggerCluster:
		return "a cluster that changed"
	case "dryrun":
		return "a dry run"
	case intent.TriggerModule:
		return "a module that changed"
	case intent.TriggerSource:
		return "a look at the repository"
	case intent.TriggerPromotion:
		return "a promotion"
	case "rollback":
		return "a rollback"
	case "accept":
		return "somebody who accepted a commit"
	case "unblock":
		return "somebody who unblocked a commit"
	case "schedule":
		return "the schedule"
	case "":
		return "someone"
	}
	return kind
}
