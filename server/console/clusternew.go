package console

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
)

// clusterTemplatesPage offers the templates for a new cluster.
type clusterTemplatesPage struct {
	frame
	Rows  []templateRow
	Pager pager
}

type templateRow struct {
	Name        string
	Label       string
	Description string
	URL         string
	Sizes       string
	Services    string
	Provider    string
	Lease       string
	Problem     string // why it cannot be used
}

// clusterFormPage is a form that is planned, and then committed.
type clusterFormPage struct {
	frame
	Heading string
	Intro   string
	Form    clusterForm
}

func (c *console) clusterNew(r *http.Request) (view, error) {
	e, cat, err := c.catalogueOf(r)
	if err != nil {
		return view{}, err
	}
	name := r.URL.Query().Get("template")
	if name == "" {
		return c.clusterTemplates(r, e, cat)
	}
	p, _, err := c.newClusterForm(r, e, cat, name, nil)
	if err != nil {
		return view{}, err
	}
	return view{template: "clusters-form", data: p}, nil
}

// catalogueOf returns what the environment of a request may make clusters of.
func (c *console) catalogueOf(r *http.Request) (intent.Environment, *catalogue.Catalogue, error) {
	e, err := c.environment(r)
	if err != nil {
		return e, nil, err
	}
	if err := c.needClusters(); err != nil {
		return e, nil, err
	}
	cat, err := c.catalogue.Catalogue(r.Context(), e.ProjectID)
	return e, cat, err
}

func (c *console) clusterTemplates(r *http.Request, e intent.Environment, cat *catalogue.Catalogue) (view, error) {
	f, err := c.frame(r, "New cluster", "clusters", crumb{Text: "Clusters", URL: clustersURL(e.ID)},
		crumb{Text: "New cluster"})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	p := clusterTemplatesPage{frame: f}
	part, pages := paged(r, "page", slices.Sorted(maps.Keys(cat.Templates)), perPage)
	p.Pager = pages
	for _, name := range part {
		p.Rows = append(p.Rows, templateRowOf(e, cat, name))
	}
	return view{template: "clusters-templates", data: p}, nil
}

func templateRowOf(e intent.Environment, cat *catalogue.Catalogue, name string) templateRow {
	row := templateRow{Name: name, URL: newClusterURL(e.ID) + "?" + url.Values{"template": {name}}.Encode()}
	t, err := cat.Resolve(name)
	if err != nil {
		row.Problem = err.Error()
		return row
	}
	row.Label, row.Description, row.Provider = t.Label, t.Description, t.Defaults.Provider
	row.Sizes, row.Services = sizesOf(t), joinSome(t.Defaults.Services)
	if l := t.Administration.Lease; l.Initial > 0 {
		row.Lease = "for " + length(time.Duration(l.Initial)) + " at first"
	}
	return row
}

func sizesOf(t *catalogue.Template) string {
	size := t.Constraints.Size
	switch low := max(1, size.Min); {
	case size.Max == 0:
		return plural(low, "node") + " or more"
	case size.Max == low:
		return plural(low, "node")
	default:
		return count(low) + " to " + plural(size.Max, "node")
	}
}

// newClusterForm makes the form for a cluster of a template, and reads what was typed into it; nil: nothing yet.
func (c *console) newClusterForm(
	r *http.Request, e intent.Environment, cat *catalogue.Catalogue, name string, values url.Values,
) (p clusterFormPage, read *newCluster, err error) {
	p.frame, err = c.frame(r, "New cluster", "clusters", crumb{Text: "Clusters", URL: clustersURL(e.ID)},
		crumb{Text: "New cluster", URL: newClusterURL(e.ID)}, crumb{Text: name})
	if err != nil {
		return p, nil, err
	}
	p.frame.Live = false
	if cat.Templates[name] == nil {
		return p, nil, fault.New("console.cluster", fault.NotFound, "there is no such template").
			Hint("choose one of the templates that there are")
	}
	t, err := cat.Resolve(name)
	if err != nil {
		return p, nil, fault.Wrap("console.cluster", fault.Invalid, err).Say("this template cannot be used").
			Hint("choose another one, or tell an administrator")
	}
	provider := typed(values, "provider", t.Defaults.Provider)
	fields, _, err := cat.UserFields(name, provider)
	wrong := wrongs{}
	if err != nil {
		wrong.add("provider", err.Error())
		fields = nil
	}
	p.Heading, p.Intro = "New cluster: "+name, t.Description
	p.Form = clusterForm{Action: newClusterURL(e.ID), Word: "Create", Hidden: []choice{
		{Value: "template", Text: name}, {Value: "fields-of", Text: provider},
	}}
	if mayOn(r, access.ChangeCluster, e) {
		p.Form.Commit = clustersURL(e.ID)
	}
	p.Form.Groups = newClusterInputs(cat, t, fields, provider, values)
	p.Form.Services = servicesOf(cat, t, t.Defaults.Services, values)
	if values == nil {
		p.Form.place(wrong)
		return p, nil, nil
	}
	read = &newCluster{wrong: wrong, fields: fields, wish: cluster.Wish{Template: name}}
	read.typed(values)
	return p, read, nil
}

// newCluster is what a person typed into the form.
type newCluster struct {
	wish   cluster.Wish
	fields map[string]catalogue.Field
	wrong  wrongs
}

func (n *newCluster) typed(values url.Values) {
	text := func(name string) string { return typed(values, name, "") }
	w := &n.wish
	w.Name, w.Description, w.DNSSuffix = text("name"), text("description"), text("dns")
	w.Provider, w.HardwareType, w.ImageType = text("provider"), text("hardwaretype"), text("imagetype")
	if err := manifest.CheckName(w.Name); err != nil {
		n.wrong.add("name", err.Error())
	}
	if w.DNSSuffix != "" {
		if problem := catalogue.CheckDNSSuffix(w.DNSSuffix); problem != "" {
			n.wrong.add("dns", problem)
		}
	}
	w.Size = readSize(text("size"), n.wrong)
	w.Services = values["service"]
	if len(w.Services) == 0 {
		n.wrong.add("services", "choose at least one service")
	}
	w.Config = readConfig(text("config"), n.wrong)
	w.Lease = readLength("lease", text("lease"), n.wrong)
	w.Fields = readFields(n.fields, values, n.wrong)
}

// servicesOf lists the services that a template allows.
func servicesOf(cat *catalogue.Catalogue, t *catalogue.Template, chosen []string, values url.Values) *ticks {
	if values != nil {
		chosen = values["service"]
	}
	out := &ticks{}
	all := slices.Clone(t.Compatibility.Services)
	for _, s := range t.Defaults.Services {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	for _, name := range all {
		row := tick{Name: name, On: slices.Contains(chosen, name)}
		if s := cat.Services[name]; s != nil {
			row.Help = firstLine(s.Description)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func newClusterInputs(
	cat *catalogue.Catalogue,
	t *catalogue.Template,
	fields map[string]catalogue.Field,
	provider string,
	values url.Values,
) []inputGroup {
	size := t.Constraints.Size
	low := max(1, size.Min)
	lease := t.Administration.Lease
	leaseHelp, leaseDefault := "Empty: it has no end. Such as 12h or 2d.", ""
	if lease.Initial > 0 {
		leaseDefault = length(time.Duration(lease.Initial))
		leaseHelp = "At most " + leaseDefault + " at first. It can be extended later"
		if lease.Max > 0 {
			leaseHelp += ", to " + length(time.Duration(lease.Max)) + " in all"
		}
		leaseHelp += "."
	}
	suffix := t.Defaults.DNSSuffix
	if suffix == "" {
		suffix = "local"
	}
	groups := []inputGroup{{Inputs: []clusterInput{
		{Name: "name", Label: "Name", Kind: "text", Value: typed(values, "name", ""), Required: true,
			Help: "Letters, digits, dots and dashes. It names the file, and begins the names of the machines."},
		{Name: "size", Label: "Nodes", Kind: "number", Value: typed(values, "size", count(low)), Required: true,
			Min: low, Max: size.Max, Help: sizesOf(t) + "."},
		{Name: "lease", Label: "Lease", Kind: "text", Value: typed(values, "lease", leaseDefault), Help: leaseHelp},
		{Name: "description", Label: "Description", Kind: "text", Value: typed(values, "description", "")},
	}}, {Title: "Where, and on what", Inputs: []clusterInput{
		{Name: "provider", Label: "Provider", Kind: "select", Options: providersOf(cat, t, provider)},
		{Name: "hardwaretype", Label: "Hardware of new nodes", Kind: "select",
			Options: typesOf(cat.HardwareTypes, t.Compatibility.HardwareTypes, t.Defaults.HardwareType,
				typed(values, "hardwaretype", ""))},
		{Name: "imagetype", Label: "Image of new nodes", Kind: "select",
			Options: typesOf(
				cat.ImageTypes,
				t.Compatibility.ImageTypes,
				t.Defaults.ImageType,
				typed(values, "imagetype", ""),
			)},
		{Name: "dns", Label: "DNS suffix", Kind: "text", Value: typed(values, "dns", ""), Placeholder: suffix,
			Help: "Ends the names of the machines."},
	}}}
	if inputs := providerInputs(fields, nil, values, false); len(inputs) > 0 {
		groups = append(groups, inputGroup{Title: "What the provider " + provider + " asks for", Inputs: inputs})
	}
	return append(
		groups,
		inputGroup{Title: "Configuration", Folded: typed(values, "config", "") == "", Inputs: []clusterInput{
			{
				Name:        "config",
				Label:       "Configuration as JSON",
				Kind:        "lines",
				Wide:        true,
				Value:       typed(values, "config", ""),
				Placeholder: "{}",
				Help:        configHelp(t),
			},
		}},
	)
}

// configHelp names the keys that a template configures.
func configHelp(t *catalogue.Template) string {
	if keys := slices.Sorted(maps.Keys(t.Defaults.Config)); len(keys) > 0 {
		return "Keys that stand here replace those of the template, which has: " + joinSome(keys) + "."
	}
	return "An object. The template configures nothing itself."
}

func providersOf(cat *catalogue.Catalogue, t *catalogue.Template, picked string) []choice {
	var out []choice
	for _, name := range slices.Sorted(maps.Keys(cat.Providers)) {
		text := name
		if name == t.Defaults.Provider {
			text += " (of the template)"
		}
		out = append(out, choice{name, text, name == picked})
	}
	return out
}

// typesOf lists the hardware types or image types that a template allows.
func typesOf[V any](all map[string]V, allowed []string, def, picked string) []choice {
	text := "as the template says"
	if def != "" {
		text += ": " + def + " where it fits"
	}
	out := []choice{{"", text, picked == ""}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(allowed) == 0 || slices.Contains(allowed, name) {
			out = append(out, choice{name, name, name == picked})
		}
	}
	return out
}

// formHandler serves a form that plans or commits: it reads the form, and hands failures to the page of failures.
func (c *console) formHandler(
	do func(w http.ResponseWriter, r *http.Request, e intent.Environment) error,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		e, err := c.environment(r)
		if err == nil {
			err = c.needClusters()
		}
		if err == nil {
			if parseErr := r.ParseForm(); parseErr != nil {
				err = fault.Wrap("console.cluster", fault.Invalid, parseErr).Say("the form cannot be read")
			}
		}
		if err == nil {
			err = do(w, r, e)
		}
		if err != nil {
			audit.Failed(r.Context(), err)
			c.fail(w, r, err)
		}
	}
}

func (c *console) doPlanNewCluster(w http.ResponseWriter, r *http.Request, e intent.Environment) error {
	return c.newClusterAnswer(w, r, e, nil)
}

func (c *console) doCreateCluster(w http.ResponseWriter, r *http.Request, e intent.Environment) error {
	return c.newClusterAnswer(w, r, e, func(ctx context.Context, wish cluster.Wish) (cluster.Written, error) {
		_, written, err := c.clusters.Create(ctx, e, wish)
		return written, err
	})
}

// newClusterAnswer plans what a form asks for. With commit, it commits it if that is what was shown before.
func (c *console) newClusterAnswer(
	w http.ResponseWriter, r *http.Request, e intent.Environment,
	commit func(context.Context, cluster.Wish) (cluster.Written, error),
) error {
	_, cat, err := c.catalogueOf(r)
	if err != nil {
		return err
	}
	p, read, err := c.newClusterForm(r, e, cat, r.PostFormValue("template"), r.PostForm)
	if err != nil {
		return err
	}
	if read.wish.Provider != r.PostFormValue("fields-of") && len(read.fields) > 0 {
		p.Form.Notes = append(p.Form.Notes, "The provider "+read.wish.Provider+
			" asks for other fields. Fill them in, and show the plan again.")
		p.Form.place(read.wrong)
		c.render(w, r, http.StatusOK, view{template: "clusters-form", data: p})
		return nil
	}
	if commit != nil {
		secretsAgain(read.fields, r.PostForm, read.wrong)
	}
	var proposal *cluster.Proposal
	code := http.StatusBadRequest
	if len(read.wrong) == 0 {
		if proposal, err = c.clusters.Propose(r.Context(), e, read.wish); err != nil {
			code = c.refuse(r, &p.Form, read.wrong, err)
		}
	}
	if len(read.wrong) == 0 && commit != nil && r.PostFormValue("mark") == markOf(proposal, false) {
		written, err := commit(r.Context(), read.wish)
		if err == nil {
			return c.clusterWritten(w, r, e, read.wish.Name, "The cluster "+read.wish.Name+" is on its way", written)
		}
		code = c.refuse(r, &p.Form, read.wrong, err)
	}
	return c.planned(w, r, p, proposal, read.wrong, code, commit != nil, false)
}

// planned shows a form with its plan, or with what is wrong. late says that it was to be committed.
func (c *console) planned(
	w http.ResponseWriter, r *http.Request, p clusterFormPage, proposal *cluster.Proposal, wrong wrongs, code int,
	late, withLease bool,
) error {
	if len(wrong) > 0 {
		p.Form.place(wrong)
		audit.Failed(r.Context(), fault.New("console.cluster", fault.Invalid, "the form was refused"))
		c.render(w, r, code, view{template: "clusters-form", data: p})
		return nil
	}
	if late {
		p.Form.Notes = append(
			p.Form.Notes,
			"Nothing was committed: this is not the plan that was shown before, since the "+
				"form or the repository changed. Look at it again.",
		)
	}
	var err error
	if p.Form.Plan, err = planOf(proposal); err != nil {
		return err
	}
	p.Form.Mark = markOf(proposal, withLease)
	p.Form.place(wrong)
	c.render(w, r, http.StatusOK, view{template: "clusters-form", data: p})
	return nil
}

// secretsAgain asks for secrets that were typed when the plan was shown, and are missing now: a page keeps none.
func secretsAgain(fields map[string]catalogue.Field, values url.Values, w wrongs) {
	for _, key := range values["typed"] {
		name, is := strings.CutPrefix(key, fieldPrefix)
		if is && fields[name].Secret() && values.Get(key) == "" {
			w.add(key, "type it again: secrets are not kept in the page")
		}
	}
}

// clusterWrittenPage says what was committed.
type clusterWrittenPage struct {
	frame
	Heading     string
	Commit      string
	Branch      string
	PullRequest string
	URL         string // of the cluster
	List        string
	Runs        string
}

func (c *console) clusterWritten(
	w http.ResponseWriter, r *http.Request, e intent.Environment, name, heading string, written cluster.Written,
) error {
	f, err := c.frame(r, heading, "clusters", crumb{Text: "Clusters", URL: clustersURL(e.ID)},
		crumb{Text: name, URL: clusterURL(e.ID, name)}, crumb{Text: "Committed"})
	if err != nil {
		return err
	}
	f.Live = false
	c.render(w, r, http.StatusOK, view{template: "clusters-written", data: clusterWrittenPage{
		frame: f, Heading: heading, Commit: written.Commit, Branch: written.Branch, PullRequest: written.PullRequest,
		URL: clusterURL(e.ID, name), List: clustersURL(e.ID), Runs: envURL(e.ID) + "/runs",
	}})
	return nil
}

// prettyJSON writes a value as JSON with indents; empty for nothing.
func prettyJSON(v map[string]any) string {
	if len(v) == 0 {
		return ""
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}
