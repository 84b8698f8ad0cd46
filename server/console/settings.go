package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/edge"
	"ordain.dev/ordain/server/source"
)

// settingsPage shows the settings of an environment and changes them.
type settingsPage struct {
	frame
	Source    sourceForm
	Secrets   []secretForm
	Project   projectForm
	Variables []string // the names of the variables that are set
	Options   settingList
	Open      string           // the part that is open; empty: those that something was found in
	Problem   *settingsProblem // why a form of the page was refused
	Saved     string           // the id of the form that was just saved
	Others    []envLink        // environments whose settings can be copied
	Protected bool
	HookURLs  []attribute
	Quotas    []quotaRow // of the project, for those who may see its members
	SetQuota  bool       // the reader may change them
}

// quotaRow is one thing of which a project may use only so much.
type quotaRow struct {
	Name, Unit string
	Use, Limit string // for people; no limit is empty
	Value      string // as the form accepts it again
	Full       bool
}

type sourceForm struct {
	Name, Repository, Branch, Subdir, Description string
}

type secretForm struct {
	Name, Title, Help string
	Password          bool
	Lines             bool   // it has several lines
	Set               string // where it is set; empty when it is not
}

// projectForm is what the environments of a project share.
type projectForm struct {
	URL              string // of the page of the project; empty: the reader may not see that
	Name, KnownHosts string
	Visible          bool // the reader may see which secrets the project has, and its host keys
}

var secretForms = []secretForm{
	{
		Name: source.SecretWebhook, Title: "Webhook secret", Password: true,
		Help: "What the forge signs its webhooks with.",
	},
	{Name: source.SecretGitUser, Title: "Git user name", Help: "For a private repository over HTTPS."},
	{
		Name: source.SecretGitPassword, Title: "Git password or token", Password: true,
		Help: "It is stored encrypted and never shown.",
	},
	{
		Name: source.SecretSSHKey, Title: "SSH key", Lines: true,
		Help: "For a repository over SSH: the private key, as ssh-keygen wrote it.",
	},
	{
		Name: source.SecretSSHPassphrase, Title: "Passphrase of the SSH key", Password: true,
		Help: "If the key is encrypted with one.",
	},
	{
		Name: source.SecretForgeToken, Title: "Forge token", Password: true,
		Help: "With it, the server reads pull requests, and reports at the forge how commits compile and deploy.",
	},
	{
		Name: source.SecretGitProxy, Title: "Proxy with a password", Password: true,
		Help: "http://user:password@host:port. For a proxy without a password, use the setting git_proxy.",
	},
}

// hookPaths are the addresses for webhooks, by the name of the forge.
var hookPaths = []attribute{
	{Name: "GitHub", Value: "/hooks/github"}, {Name: "GitLab", Value: "/hooks/gitlab"},
	{Name: "Gitea", Value: "/hooks/gitea"}, {Name: "Forgejo", Value: "/hooks/forgejo"},
	{Name: "Gogs", Value: "/hooks/gogs"}, {Name: "Bitbucket Cloud", Value: "/hooks/bitbucket"},
	{Name: "Bitbucket Server", Value: "/hooks/bitbucket-server"}, {Name: "Azure DevOps", Value: "/hooks/azure"},
	{Name: "Signed by yourself", Value: "/hooks/generic"}, {Name: "Standard Webhooks", Value: "/hooks/standard"},
}

func (c *console) settings(r *http.Request) (view, error) { return c.settingsView(r, nil) }

func (c *console) settingsView(r *http.Request, problem *settingsProblem) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Settings", "settings", crumb{Text: "Settings"})
	if err != nil {
		return view{}, err
	}
	f.Live = false // a form must not change while somebody fills it in
	p := settingsPage{frame: f, Protected: e.Bool("protected_environment"), Problem: problem}
	if p.Saved = flashed(r).Part; p.Saved != "" {
		p.Done = "" // it is said beside the form
	}
	for _, other := range f.Envs {
		if !other.Current {
			p.Others = append(p.Others, other)
		}
	}
	names, err := c.control.SecretNames(r.Context(), e.ID)
	if err != nil {
		return view{}, err
	}
	for _, name := range names {
		if variable, is := strings.CutPrefix(name, source.VariablePrefix); is {
			p.Variables = append(p.Variables, variable)
		}
	}
	if p.Quotas, err = c.quotas(r, e.ProjectID); err != nil {
		return view{}, err
	}
	p.SetQuota = access.Of(r.Context()).Decide(access.SetQuota, access.Target{}).Allowed
	if p.Project, p.Secrets, err = c.shared(r, e, names); err != nil {
		return view{}, err
	}
	p.Source = sourceForm{
		Name: e.Name, Repository: e.Source.URL, Branch: e.Source.Branch, Subdir: e.Source.Subdir,
		Description: e.Description,
	}
	scheme := "http://"
	if edge.IsSecure(r) {
		scheme = "https://"
	}
	unsigned := attribute{Name: "Without a signature", Value: "/api/v1/notify/" + e.ID.String()}
	for _, hook := range append(slices.Clone(hookPaths), unsigned) {
		p.HookURLs = append(p.HookURLs, attribute{Name: hook.Name, Value: scheme + r.Host + hook.Value})
	}
	if p.Options, err = c.settingList(r, e, problem); err != nil {
		return view{}, err
	}
	p.Open = openSettings(r, problem)
	p.Options.openGroups(p.Open)
	problem.restore(&p)
	return view{template: "settings", data: p}, nil
}

// settingText writes a value as the form accepts it again: a dict as JSON.
func settingText(value any) string {
	if dict, ok := value.(map[string]any); ok {
		if text, err := json.Marshal(dict); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(value)
}

func (c *console) doSetting(r *http.Request, e intent.Environment) (string, error) {
	name := r.PostFormValue("name")
	next := envURL(e.ID) + "/settings?done=saved#setting-" + url.PathEscape(name)
	if r.PostForm.Has("reset") {
		return next, c.control.DeleteSetting(r.Context(), e.ID, name)
	}
	return next, c.control.SetSetting(r.Context(), e.ID, name, r.PostFormValue("value"))
}

func (c *console) doSource(r *http.Request, e intent.Environment) (string, error) {
	get := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	e.Name, e.Description = get("name"), get("description")
	e.Source = intent.Source{URL: get("repository"), Branch: get("branch"), Subdir: get("subdir")}
	_, err := c.control.UpdateEnvironment(r.Context(), e)
	return envURL(e.ID) + "/settings?done=saved#source", err
}

func (c *console) doSecret(r *http.Request, e intent.Environment) (string, error) {
	value := r.PostFormValue("value")
	if r.PostForm.Has("remove") {
		value = ""
	}
	name := r.PostFormValue("name")
	if variable := strings.TrimSpace(r.PostFormValue("variable")); variable != "" {
		name = source.VariablePrefix + variable
	}
	next := envURL(e.ID) + "/settings?done=saved#" + secretPart(name)
	if r.PostFormValue("for") == "project" {
		err := access.Check(r.Context(), access.SetProjectSecret, access.TargetOf(e), noEnvironment(e.ID.String()))
		if err != nil {
			return "", err
		}
		return next, c.control.SetProjectSecret(r.Context(), e.ProjectID, name, value)
	}
	return next, c.control.SetSecret(r.Context(), e.ID, name, value)
}

// quotas returns what a project may use and uses, for those who may see that.
func (c *console) quotas(r *http.Request, project intent.ProjectID) (rows []quotaRow, err error) {
	if !access.Of(r.Context()).Decide(access.SeeMembers, access.Target{Project: project}).Allowed {
		return nil, nil
	}
	limits, use, err := c.control.ProjectQuota(r.Context(), project)
	for _, kind := range intent.QuotaKinds {
		row := quotaRow{Name: string(kind), Unit: kind.Meaning(), Use: kind.Text(use[kind])}
		if most, limited := limits[kind]; limited {
			row.Limit, row.Value, row.Full = kind.Text(most), intent.FormatAmount(most), use[kind] >= most
		}
		rows = append(rows, row)
	}
	return rows, err
}

// doQuota sets what the project of an environment may use.
func (c *console) doQuota(r *http.Request, e intent.Environment) (string, error) {
	return envURL(e.ID) + "/settings?done=saved#quotas", c.setQuota(r, e.ProjectID)
}

// setQuota reads a form of quotas and sets them. An empty field is no limit.
func (c *console) setQuota(r *http.Request, project intent.ProjectID) error {
	limits := intent.Quota{}
	for _, kind := range intent.QuotaKinds {
		most, err := intent.ParseAmount(strings.TrimSpace(r.PostFormValue(string(kind))))
		if err != nil {
			return fault.Wrap("console.quota", fault.Invalid, err).Say("the quota of " + string(kind) + " is wrong")
		}
		if most != nil {
			limits[kind] = *most
		}
	}
	return c.control.SetQuota(r.Context(), project, limits)
}

// doKnownHosts sets the keys of the SSH servers that a project knows.
func (c *console) doKnownHosts(r *http.Request, e intent.Environment) (string, error) {
	err := c.control.SetKnownHosts(r.Context(), e.ProjectID, r.PostFormValue("lines"))
	return envURL(e.ID) + "/settings?done=saved#hosts", err
}

// shared returns the form of what the environments of a project share, and the forms of secrets, which say where each
// is set. own are the names of the secrets of the environment itself. Those who have a role in one environment only do
// not learn what its project has.
func (c *console) shared(r *http.Request, e intent.Environment, own []string) (projectForm, []secretForm, error) {
	form := projectForm{Name: e.ProjectName}
	if access.Of(r.Context()).Decide(access.SeeProject, access.Target{Project: e.ProjectID}).Allowed {
		form.URL = projectURL(e.ProjectID)
	}
	form.Visible = access.Of(r.Context()).
		Decide(access.SeeProjectSecrets, access.Target{Project: e.ProjectID}).Allowed
	var names []string
	if form.Visible {
		var err error
		if names, err = c.control.ProjectSecretNames(r.Context(), e.ProjectID); err != nil {
			return form, nil, err
		}
		if form.KnownHosts, err = c.store.KnownHosts(r.Context(), e.ProjectID); err != nil {
			return form, nil, err
		}
	}
	forms := slices.Clone(secretForms)
	for i := range forms {
		switch f := &forms[i]; {
		case slices.Contains(own, f.Name):
			f.Set = "Set for this environment."
		case slices.Contains(names, f.Name):
			f.Set = "Set for the project."
		}
	}
	return form, forms, nil
}

func (c *console) doClear(r *http.Request, e intent.Environment) (string, error) {
	if err := confirmed(r, e); err != nil {
		return "", err
	}
	return envURL(e.ID) + "?done=cleared", c.control.ClearEnvironment(r.Context(), e.ID)
}

func (c *console) doDelete(r *http.Request, e intent.Environment) (string, error) {
	if err := confirmed(r, e); err != nil {
		return "", err
	}
	return "/?done=deleted", c.control.DeleteEnvironment(r.Context(), e.ID)
}
