package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
)

// Changes that buttons ask for. Everything else is asked for by the form with all fields.
const (
	doFull    = "full"
	doStart   = "start"
	doStop    = "stop"
	doRestart = "restart"
	doReplace = "replace"
	doRemove  = "remove"
	doExtend  = "extend"
)

// clusterChange is a change that a form asks for.
type clusterChange struct {
	amendment cluster.Amendment
	fields    map[string]catalogue.Field
	wrong     wrongs
}

func (c *console) clusterChangePage(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	p, _, err := c.changeForm(r, e, nil)
	if err != nil {
		return view{}, err
	}
	p.Form.place(wrongs{})
	return view{template: "clusters-form", data: p}, nil
}

// changeForm makes the form for a change of the cluster in the path, and reads what was typed into it; nil: nothing
// yet.
func (c *console) changeForm(
	r *http.Request, e intent.Environment, values url.Values,
) (p clusterFormPage, read *clusterChange, err error) {
	if err := c.needClusters(); err != nil {
		return p, nil, err
	}
	name := r.PathValue("cluster")
	d, err := c.clusters.Current(r.Context(), e, name)
	if err != nil {
		return p, nil, err
	}
	at := clusterURL(e.ID, name)
	p.frame, err = c.frame(r, "Change "+name, "clusters", crumb{Text: "Clusters", URL: clustersURL(e.ID)},
		crumb{Text: name, URL: at}, crumb{Text: "Change"})
	if err != nil {
		return p, nil, err
	}
	p.frame.Live = false
	p.Form = clusterForm{Action: at + "/change", Word: "Commit this change"}
	if mayOn(r, access.ChangeCluster, e) {
		p.Form.Commit = at + "/commit"
	}
	read = &clusterChange{wrong: wrongs{}}
	do := typed(values, "do", doFull)
	if do != doFull && do != "" {
		err := c.shortChange(&p, read, d, do, values)
		return p, read, err
	}
	p.Heading = "Change " + name
	p.Intro = "Made from the template " + d.Manifest.Template + ". What stands here now is what is on the branch."
	p.Form.Hidden = []choice{{Value: "do", Text: doFull}}
	read.fields, _, err = d.Catalogue.UserFields(d.Manifest.Template, d.ProviderName())
	if err != nil {
		return p, nil, err
	}
	p.Form.Groups = changeInputs(d, read.fields, values)
	p.Form.Services = servicesOf(d.Catalogue, d.Template, d.Manifest.Services, values)
	if values != nil {
		read.full(d.Manifest, values)
	}
	return p, read, nil
}

func changeInputs(d *cluster.Definition, fields map[string]catalogue.Field, values url.Values) []inputGroup {
	m := d.Manifest
	size := d.Template.Constraints.Size
	sync := clusterInput{
		Name:  "sync",
		Label: "Take the newest versions of template, services and provider",
		Kind:  "checkbox",
		On:    values.Get("sync") == "true",
		Help:  "Else it keeps those that it was made from.",
	}
	groups := []inputGroup{{Inputs: []clusterInput{
		{
			Name:     "size",
			Label:    "Nodes",
			Kind:     "number",
			Value:    typed(values, "size", strconv.Itoa(m.Size)),
			Required: true,
			Min:      max(1, size.Min),
			Max:      size.Max,
			Help:     sizesOf(d.Template) + ".",
		},
		{Name: "description", Label: "Description", Kind: "text", Value: typed(values, "description", m.Description)},
	}}}
	if inputs := providerInputs(fields, m.Fields, values, true); len(inputs) > 0 {
		groups = append(
			groups,
			inputGroup{Title: "What the provider " + d.ProviderName() + " asks for", Inputs: inputs},
		)
	}
	return append(groups, inputGroup{Title: "Configuration", Inputs: []clusterInput{
		{Name: "config", Label: "Configuration as JSON", Kind: "lines", Wide: true,
			Value: typed(
				values,
				"config",
				prettyJSON(m.Config),
			), Placeholder: "{}", Help: configHelp(d.Template)}, sync,
	}})
}

// full reads the form with all fields: what differs from the file is the change.
func (n *clusterChange) full(m *manifest.Manifest, values url.Values) {
	a := &n.amendment
	if size := readSize(typed(values, "size", ""), n.wrong); size != m.Size {
		a.Size = &size
	}
	if text := typed(values, "description", ""); text != m.Description {
		a.Description = &text
	}
	chosen := values["service"]
	if len(chosen) == 0 {
		n.wrong.add("services", "choose at least one service")
	}
	for _, s := range chosen {
		if !slices.Contains(m.Services, s) && !slices.Contains(a.AddServices, s) {
			a.AddServices = append(a.AddServices, s)
		}
	}
	for _, s := range m.Services {
		if !slices.Contains(chosen, s) {
			a.RemoveServices = append(a.RemoveServices, s)
		}
	}
	config := readConfig(typed(values, "config", ""), n.wrong)
	if config == nil {
		config = map[string]any{}
	}
	if !sameValue(config, m.Config) {
		a.Config = config
	}
	a.Sync = values.Get("sync") == "true"
	a.Fields = readFields(n.fields, values, n.wrong)
	for name, f := range n.fields {
		if f.Secret() {
			continue
		}
		was, had := m.Fields[name]
		now, given := a.Fields[name]
		switch {
		case given && had && sameValue(was, now):
			delete(a.Fields, name)
		case !given && had && len(f.Default) > 0: // it is back at the default
			if !sameValue(was, f.Default) {
				a.Fields[name] = f.Default
			}
		case !given && had:
			n.wrong.add(fieldPrefix+name, "the cluster has a value for this, which can be another one and not none")
		}
	}
}

// sameValue reports whether values are the same as JSON. No value is the same as an empty object.
func sameValue(a, b any) bool {
	var got [2]any
	for i, v := range []any{a, b} {
		text, err := json.Marshal(v)
		if err == nil {
			got[i], err = manifest.Value(text)
		}
		if err != nil {
			return false
		}
		if object, is := got[i].(map[string]any); is && len(object) == 0 {
			got[i] = nil
		}
	}
	return reflect.DeepEqual(got[0], got[1])
}

// shortChange makes the form of a change that a button asks for: it shows the plan, and asks nothing more.
func (c *console) shortChange(
	p *clusterFormPage, read *clusterChange, d *cluster.Definition, do string, values url.Values,
) error {
	p.Form.Hidden = []choice{{Value: "do", Text: do}}
	a, name := &read.amendment, d.Manifest.Name
	services := values["service"]
	switch do {
	case doStart, doStop, doRestart:
		if len(services) == 0 {
			return fault.New("console.cluster", fault.Invalid, "no service was chosen").
				Hint("go back, and choose the services to " + do)
		}
		for _, s := range services {
			p.Form.Hidden = append(p.Form.Hidden, choice{Value: "service", Text: s})
		}
		*map[string]*[]string{doStart: &a.Start, doStop: &a.Stop, doRestart: &a.Restart}[do] = services
		p.Heading = strings.ToUpper(do[:1]) + do[1:] + " " + joinSome(services) + " of " + name
		p.Intro = map[string]string{
			doStart:   "Services that they need are started as well.",
			doStop:    "Services that need them are stopped as well.",
			doRestart: "Services that need them are restarted as well.",
		}[do]
	case doReplace, doRemove:
		number, err := strconv.Atoi(values.Get("node"))
		if err != nil {
			return fault.New("console.cluster", fault.Invalid, "no node was chosen")
		}
		p.Form.Hidden = append(p.Form.Hidden, choice{Value: "node", Text: strconv.Itoa(number)})
		if do == doReplace {
			a.Replace = []int{number}
			p.Heading = fmt.Sprintf("Replace node %d of %s", number, name)
			p.Intro = "Its machine is deleted, and another one with a new number is made."
		} else {
			a.Remove = []int{number}
			p.Heading = fmt.Sprintf("Remove node %d of %s", number, name)
			p.Intro = "Its machine is deleted, and the cluster is one node smaller."
		}
	case doExtend:
		p.Heading = "Extend the lease of " + name
		lease := d.Template.Administration.Lease
		help := "Such as 12h or 2d."
		if lease.Step > 0 {
			help += " At most " + length(time.Duration(lease.Step)) + " at a time."
		}
		if lease.Max > 0 {
			help += " A cluster lives for " + length(time.Duration(lease.Max)) + " in all at most."
		}
		p.Form.Groups = []inputGroup{
			{Inputs: []clusterInput{{Name: doExtend, Label: "Extend by", Kind: "text", Required: true,
				Value: typed(values, doExtend, ""), Help: help}}},
		}
		a.Extend = readLength(doExtend, typed(values, doExtend, ""), read.wrong)
		if a.Extend == 0 && len(read.wrong) == 0 {
			read.wrong.add(doExtend, "say by how long")
		}
	default:
		return fault.New("console.cluster", fault.Invalid, "this page does not know what was asked for")
	}
	return nil
}

func (c *console) doPlanChange(w http.ResponseWriter, r *http.Request, e intent.Environment) error {
	return c.changeAnswer(w, r, e, false)
}

func (c *console) doCommitChange(w http.ResponseWriter, r *http.Request, e intent.Environment) error {
	return c.changeAnswer(w, r, e, true)
}

// changeAnswer plans a change. With commit, it commits it if that is what was shown before.
func (c *console) changeAnswer(w http.ResponseWriter, r *http.Request, e intent.Environment, commit bool) error {
	p, read, err := c.changeForm(r, e, r.PostForm)
	if err != nil {
		return err
	}
	name := r.PathValue("cluster")
	if commit {
		secretsAgain(read.fields, r.PostForm, read.wrong)
	}
	var proposal *cluster.Proposal
	code := http.StatusBadRequest
	if len(read.wrong) == 0 {
		if proposal, err = c.clusters.ProposeAmendment(r.Context(), e, name, read.amendment); err != nil {
			code = c.refuse(r, &p.Form, read.wrong, err)
			read.leaseHere()
		}
	}
	if len(read.wrong) == 0 && commit && r.PostFormValue("mark") == markOf(proposal, true) {
		_, written, err := c.clusters.Amend(r.Context(), e, name, read.amendment)
		if err == nil {
			return c.clusterWritten(w, r, e, name, "The change of "+name+" is on its way", written)
		}
		code = c.refuse(r, &p.Form, read.wrong, err)
		read.leaseHere()
	}
	return c.planned(w, r, p, proposal, read.wrong, code, commit, true)
}

// leaseHere puts what is wrong with the lease beside the only field about it.
func (n *clusterChange) leaseHere() {
	if text, is := n.wrong["lease"]; is {
		n.wrong[doExtend] = append(n.wrong[doExtend], text...)
		delete(n.wrong, "lease")
	}
}

// clusterEndPage shows what would be done when a cluster is deleted or rolled back, and asks for it.
type clusterEndPage struct {
	frame
	Heading string
	Intro   string
	Plan    *planView
	Action  string // empty: the reader may not
	Word    string
	Confirm string // name to type; empty: nothing
	Typed   string
	Wrong   string
	Mark    string
	Note    string
	Back    string
}

// endPage makes the page of a deletion or of a rollback.
func (c *console) endPage(
	r *http.Request, title string, v access.Verb,
	propose func(context.Context, intent.Environment, string) (*cluster.Proposal, error),
) (p clusterEndPage, e intent.Environment, err error) {
	if e, err = c.environment(r); err == nil {
		err = c.needClusters()
	}
	if err != nil {
		return p, e, err
	}
	name := r.PathValue("cluster")
	at := clusterURL(e.ID, name)
	if p.frame, err = c.frame(r, title+" "+name, "clusters", crumb{Text: "Clusters", URL: clustersURL(e.ID)},
		crumb{Text: name, URL: at}, crumb{Text: title}); err != nil {
		return p, e, err
	}
	p.frame.Live = false
	p.Heading, p.Word, p.Back = title+" "+name, title, at
	proposal, err := propose(r.Context(), e, name)
	if err != nil {
		return p, e, err
	}
	if mayOn(r, v, e) {
		p.Action = at + "/rollback"
		if v == access.DeleteCluster {
			p.Action = at + "/delete"
		}
	}
	p.Mark = markOf(proposal, true)
	p.Plan, err = planOf(proposal)
	return p, e, err
}

func (c *console) deletePage(r *http.Request) (clusterEndPage, intent.Environment, error) {
	p, e, err := c.endPage(r, "Delete", access.DeleteCluster, c.clusters.ProposeDeletion)
	p.Confirm = r.PathValue("cluster")
	p.Intro = "Its file is deleted from Git, in your name. When that is deployed, its machines are deleted with all " +
		"that is on them. That cannot be taken back."
	return p, e, err
}

func (c *console) clusterDeletePage(r *http.Request) (view, error) {
	p, _, err := c.deletePage(r)
	return view{template: "clusters-end", data: p}, err
}

func (c *console) doDeleteCluster(w http.ResponseWriter, r *http.Request, e intent.Environment) error {
	p, _, err := c.deletePage(r)
	if err != nil {
		return err
	}
	name := r.PathValue("cluster")
	switch {
	case r.PostFormValue("confirm") != name:
		p.Typed, p.Wrong = r.PostFormValue("confirm"), "this is not the name of the cluster; nothing was done"
	case r.PostFormValue("mark") != p.Mark:
		p.Note = "Nothing was committed: the cluster changed meanwhile. Look at the plan again."
	default:
		written, err := c.clusters.Delete(r.Context(), e, name)
		if err != nil {
			return err
		}
		return c.clusterWritten(w, r, e, name, "The end of "+name+" is on its way", written)
	}
	c.render(w, r, http.StatusBadRequest, view{template: "clusters-end", data: p})
	return nil
}

func (c *console) rollBackPage(r *http.Request) (clusterEndPage, error) {
	p, _, err := c.endPage(r, "Roll back", access.ChangeCluster, c.clusters.ProposeRollBack)
	p.Intro = "The file becomes what the cluster was made from in full last. What was made since then is taken away."
	return p, err
}

func (c *console) clusterRollBackPage(r *http.Request) (view, error) {
	p, err := c.rollBackPage(r)
	return view{template: "clusters-end", data: p}, err
}

func (c *console) doRollBackCluster(w http.ResponseWriter, r *http.Request, e intent.Environment) error {
	p, err := c.rollBackPage(r)
	if err != nil {
		return err
	}
	if r.PostFormValue("mark") != p.Mark {
		p.Note = "Nothing was committed: the cluster changed meanwhile. Look at the plan again."
		c.render(w, r, http.StatusConflict, view{template: "clusters-end", data: p})
		return nil
	}
	name := r.PathValue("cluster")
	_, written, err := c.clusters.RollBack(r.Context(), e, name)
	if err != nil {
		return err
	}
	return c.clusterWritten(w, r, e, name, "The way back of "+name+" has begun", written)
}
