package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/solve"
)

// clusterAdminTryPage solves a layout without making anything. What is tried stands in the address.
type clusterAdminTryPage struct {
	frame
	Nav       catalogueNav
	Action    string
	Templates []choice
	Template  string
	URL       string // of the template
	Size      string
	Sizes     string // what the template allows, in words
	Services  []choice
	Providers []choice
	Hardware  []choice
	Images    []choice
	Trial     *trialShown
}

// trialShown is a layout, or why there is none.
type trialShown struct {
	Template string
	Nodes    []trialNode
	Kinds    []trialKind // of nodes that are alike
	Tasks    int
	Stages   int
	Fields   string // that users are asked for
	Reasons  []string
	Hint     string
}

type trialNode struct {
	Number                    int
	Hostname, Hardware, Image string
	Services                  string
}

type trialKind struct {
	N                         int
	Hardware, Image, Services string
}

// shownTrialNodes is how many nodes of a layout a page lists.
const shownTrialNodes = 200

// trialName is the name of a cluster that is only tried.
const trialName = "try"

// trial tries a wish. An error is not about the wish.
func (c *console) trial(
	ctx context.Context, s catalogueScope, w cluster.Wish, template *catalogue.Template,
) (*trialShown, error) {
	if c.clusters == nil {
		return nil, fault.New("console.try", fault.Unavailable, "this process does not run the cluster service")
	}
	w.Name = trialName
	out := &trialShown{Template: w.Template}
	found, err := c.clusters.Try(ctx, s.Project.ID, w, template)
	var no *solve.Contradiction
	switch {
	case errors.As(err, &no):
		out.Reasons, out.Hint = no.Reasons, no.Hint
		return out, nil
	case fault.Is(err, fault.Invalid):
		text, hint := plainError(err)
		out.Reasons, out.Hint = []string{text}, hint
		return out, nil
	case err != nil:
		return nil, err
	}
	out.Tasks, out.Stages, out.Fields = found.Tasks, found.Stages, strings.Join(found.Fields, ", ")
	at := map[trialKind]int{}
	for _, n := range found.Nodes {
		services := strings.Join(n.Services, ", ")
		out.Nodes = append(out.Nodes, trialNode{n.Number, n.Hostname, n.HardwareType, n.ImageType, services})
		at[trialKind{0, n.HardwareType, n.ImageType, services}]++
	}
	for k, n := range at {
		k.N = n
		out.Kinds = append(out.Kinds, k)
	}
	slices.SortFunc(out.Kinds, func(a, b trialKind) int {
		return cmp.Or(b.N-a.N, strings.Compare(a.Services, b.Services), strings.Compare(a.Hardware, b.Hardware))
	})
	return out, nil
}

// Shown are the nodes that the page lists, and More how many there are beside them.
func (t *trialShown) Shown() []trialNode { return t.Nodes[:min(len(t.Nodes), shownTrialNodes)] }

// More is how many nodes the page does not list.
func (t *trialShown) More() int { return len(t.Nodes) - len(t.Shown()) }

// tryDraft tries a template that is not saved, and puts the outcome into the draft.
func (c *console) tryDraft(r *http.Request, s catalogueScope, text []byte, d *entityDraft) {
	e, err := c.catalogue.Try(r.Context(), s.Project.ID, text)
	var invalid *catalogue.Invalid
	if errors.As(err, &invalid) {
		d.problems = invalid.Problems
		return
	}
	if err != nil {
		d.problem = err
		return
	}
	size, err := sizeOf(r.PostFormValue("try-size"))
	if err == nil {
		d.trial, err = c.trial(r.Context(), s, cluster.Wish{Size: size}, e)
	}
	if err != nil {
		d.problem = err
		return
	}
	d.trial.Template = catalogue.HeadOf(e).Name
}

// sizeOf reads a number of nodes; nothing is as many as the template needs.
func sizeOf(text string) (int, error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > catalogue.MaxSize {
		return 0, fault.New("console.try", fault.Invalid,
			"the size has to be a number of nodes, from 1 to "+strconv.Itoa(catalogue.MaxSize))
	}
	return n, nil
}

func (c *console) tryTemplate(r *http.Request) (view, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return view{}, err
	}
	f, nav, err := c.adminFrame(r, s, "Try a template", "try", crumb{Text: "Catalogue", URL: s.URL()},
		crumb{Text: "Try a template"})
	if err != nil {
		return view{}, err
	}
	all, err := c.catalogue.Catalogue(r.Context(), s.Project.ID)
	if err != nil {
		return view{}, err
	}
	query := r.URL.Query()
	p := clusterAdminTryPage{
		frame: f, Nav: nav, Action: s.URL() + "/try", Template: query.Get("template"), Size: query.Get("size"),
	}
	p.Templates = picks(sortedNames(all.Templates), p.Template, "choose one")
	if p.Template == "" {
		return view{template: "cluster_admin_try", data: p}, nil
	}
	p.URL = s.entityURL(catalogue.Templates, p.Template)
	resolved, err := all.Resolve(p.Template)
	if err != nil {
		p.Trial = &trialShown{Template: p.Template, Reasons: []string{err.Error()}}
		return view{template: "cluster_admin_try", data: p}, nil
	}
	p.offer(all, resolved, query)
	size, err := sizeOf(p.Size)
	if err != nil {
		text, _ := plainError(err)
		p.Trial = &trialShown{Template: p.Template, Reasons: []string{text}}
		return view{template: "cluster_admin_try", data: p}, nil
	}
	p.Trial, err = c.trial(r.Context(), s, cluster.Wish{
		Template: p.Template, Size: size, Services: query["service"], Provider: query.Get("provider"),
		HardwareType: query.Get("hardwaretype"), ImageType: query.Get("imagetype"),
	}, nil)
	return view{template: "cluster_admin_try", data: p}, err
}

// offer fills in what a template lets people choose.
func (p *clusterAdminTryPage) offer(all *catalogue.Catalogue, t *catalogue.Template, query url.Values) {
	sizes := t.Constraints.Size
	p.Sizes = "at least " + strconv.Itoa(max(1, sizes.Min))
	if sizes.Max > 0 {
		p.Sizes += ", at most " + strconv.Itoa(sizes.Max)
	}
	chosen := query["service"]
	if len(chosen) == 0 {
		chosen = t.Defaults.Services
	}
	for _, name := range t.Compatibility.Services {
		p.Services = append(p.Services, choice{name, name, slices.Contains(chosen, name)})
	}
	for _, name := range chosen {
		if !slices.Contains(t.Compatibility.Services, name) {
			p.Services = append(p.Services, choice{name, name + " (not compatible)", true})
		}
	}
	p.Providers = picks(sortedNames(all.Providers), query.Get("provider"), "default: "+t.Defaults.Provider)
	either := func(allowed []string, known []string, value, standard string) []choice {
		if len(allowed) == 0 {
			allowed = known
		}
		none := "as the services need"
		if standard != "" {
			none = "default: " + standard
		}
		return picks(allowed, value, none)
	}
	p.Hardware = either(t.Compatibility.HardwareTypes, sortedNames(all.HardwareTypes), query.Get("hardwaretype"),
		t.Defaults.HardwareType)
	p.Images = either(t.Compatibility.ImageTypes, sortedNames(all.ImageTypes), query.Get("imagetype"),
		t.Defaults.ImageType)
}

// picks makes the options of a select, with one for none.
func picks(names []string, value, none string) []choice {
	out := []choice{{Value: "", Text: none, Selected: value == ""}}
	for _, name := range names {
		out = append(out, choice{name, name, name == value})
	}
	if value != "" && !slices.Contains(names, value) {
		out = append(out, choice{value, value + " (does not exist)", true})
	}
	return out
}

// sortLinks sorts links by their text.
func sortLinks(links []navLink) {
	slices.SortFunc(links, func(a, b navLink) int { return strings.Compare(a.Text, b.Text) })
}
