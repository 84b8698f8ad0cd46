package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// clusterAdminEntityPage shows an entity of the catalogue: as a form, as JSON, and its versions.
type clusterAdminEntityPage struct {
	frame
	Nav            catalogueNav
	Kind           catalogue.Kind
	Noun, Name     string
	Label          string
	Fresh          bool // there is none yet
	Origin         string
	Version        int
	Made           *time.Time
	By             string
	Tabs           []navLink
	Tab            string // form, json, history
	May            bool   // the reader may change it here
	CopyURL        string // makes one of the project in its place
	ListURL        string
	Action         string
	From           string // what a new one is a copy of
	Sections       []*entitySection
	JSON           string
	JSONErrors     bool
	Problems       []shownProblem
	Problem, Hint  string         // about the whole
	Lost           string         // secrets that have to be typed again
	Conflict       *conflictShown // somebody else saved meanwhile
	Trial          *trialShown
	CanTry         bool
	Deletable      bool
	Versions       []entityVersion
	Diff           diffShown
	Uses           []navLink // what would break without it
	Live           []string  // clusters that are made from it
	DeleteAction   string
	FormTab        string
	Kept           bool // what was typed is shown, and not what is saved
	ProviderFields bool
}

type entityVersion struct {
	Version int
	Deleted bool
	Made    time.Time
	By      string
}

// diffShown compares two versions.
type diffShown struct {
	From, To int
	Choices  []int
	Changes  *linediff.Diff
	Path     string
}

// conflictShown says what somebody else saved while a form was open.
type conflictShown struct {
	Version int
	Made    time.Time
	By      string
	Mine    int
	Changes *linediff.Diff
}

// entityDraft is what somebody typed and did not save yet.
type entityDraft struct {
	tab      string // form or json
	t        tree
	typed    map[string]string
	json     string
	problems []catalogue.Problem
	problem  error
	lost     []string
	conflict *conflictShown
	trial    *trialShown
	version  int
	more     int
}

const emptyRows = 3

func (c *console) entity(r *http.Request) (view, error) {
	s, kind, item, err := c.entityOf(r)
	if err != nil {
		return view{}, err
	}
	return c.entityView(r, s, kind, &item, "", nil)
}

// entityOf returns what the path of a request names.
func (c *console) entityOf(r *http.Request) (s catalogueScope, kind catalogue.Kind, item admin.Item, err error) {
	if s, err = c.catalogueScope(r); err != nil {
		return s, kind, item, err
	}
	if kind, err = kindOf(r); err != nil {
		return s, kind, item, err
	}
	item, err = c.catalogue.Get(r.Context(), s.Project.ID, kind, r.PathValue("name"))
	return s, kind, item, err
}

// newEntity shows the form of a new entity, which may begin as a copy of another one.
func (c *console) newEntity(r *http.Request) (view, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return view{}, err
	}
	kind, err := kindOf(r)
	if err != nil {
		return view{}, err
	}
	return c.entityView(r, s, kind, nil, r.URL.Query().Get("from"), nil)
}

// startOf returns the JSON that a new entity begins with: that of a copy, without secrets, which are not copied.
func (c *console) startOf(ctx context.Context, s catalogueScope, kind catalogue.Kind, from string) (tree, error) {
	if from == "" {
		return tree{}, nil
	}
	item, err := c.catalogue.Get(ctx, s.Project.ID, kind, from)
	if err != nil {
		return nil, err
	}
	t := treeOf(item.Content)
	delete(t, "version")
	for name, value := range t.object("provisioner") {
		if isHidden(value) {
			delete(t.object("provisioner"), name)
		}
	}
	if s.mine(item) {
		t.set(item.Name+"-copy", "name")
	}
	return t, nil
}

// entityView shows an entity; item is nil for a new one, and draft for what is saved.
func (c *console) entityView(
	r *http.Request, s catalogueScope, kind catalogue.Kind, item *admin.Item, from string, draft *entityDraft,
) (view, error) {
	p := clusterAdminEntityPage{
		Kind: kind, Noun: kind.Noun(), Fresh: item == nil, From: from, ListURL: s.kindURL(kind),
		May:     s.may(r, access.ChangeCatalogue, access.ChangeSharedCatalogue),
		FormTab: "form", CanTry: kind == catalogue.Templates,
	}
	var t tree
	var err error
	if p.Fresh {
		p.Action = s.URL() + "/new/" + string(kind)
		if t, err = c.startOf(r.Context(), s, kind, from); err != nil {
			return view{}, err
		}
	} else {
		p.describe(*item, s)
		t = treeOf(item.Content)
	}
	title := p.Name
	if p.Fresh {
		title = "New " + p.Noun
	}
	if p.frame, p.Nav, err = c.adminFrame(r, s, title, "catalogue",
		crumb{Text: titleOf(kind), URL: s.kindURL(kind)}, crumb{Text: title}); err != nil {
		return view{}, err
	}
	all, err := c.catalogue.Catalogue(r.Context(), s.Project.ID)
	if err != nil {
		return view{}, err
	}
	p.tabs(r, kind, draft)
	p.JSON = shownJSON(t)
	f := entityForm{t: t, all: all, fresh: p.Fresh, more: emptyRows}
	if draft != nil {
		p.Kept = true
		f.t, f.typed = draft.t, draft.typed
		f.more += draft.more
	}
	if p.Tab == "form" {
		p.Sections = f.build(kind)
	}
	if draft != nil {
		p.take(draft, &f)
	}
	if p.Tab == "history" && item != nil {
		if err := c.history(r, s, *item, &p, all); err != nil {
			return view{}, err
		}
	}
	return view{template: "cluster_admin_entity", data: p}, nil
}

func shownJSON(t tree) string {
	delete(t, "version")
	if len(t) == 0 {
		return "{\n  \"name\": \"\"\n}"
	}
	return string(encoded(map[string]any(t), "  "))
}

// describe fills in what is known of an entity that exists.
func (p *clusterAdminEntityPage) describe(item admin.Item, s catalogueScope) {
	p.Name, p.Version, p.By = item.Name, item.Version, item.MadeBy
	p.Origin = ownerOf(item.Project, item.BuiltIn, s)
	p.Label = treeOf(item.Content).text("label")
	if !item.Made.IsZero() {
		p.Made = &item.Made
	}
	p.Action = s.entityURL(item.Kind, item.Name)
	p.DeleteAction = p.Action + "/delete"
	if !s.mine(item) {
		if p.May {
			p.CopyURL = s.URL() + "/new/" + string(item.Kind) + "?from=" + url.QueryEscape(item.Name)
		}
		p.May = false
	}
	p.Deletable = p.May
}

func (p *clusterAdminEntityPage) tabs(r *http.Request, kind catalogue.Kind, draft *entityDraft) {
	p.Tab = r.URL.Query().Get("tab")
	if draft != nil {
		p.Tab = draft.tab
	}
	if p.Tab == "form" && !hasForm(kind) || p.Tab != "form" && p.Tab != "json" && p.Tab != "history" {
		p.Tab = "form"
	}
	if !hasForm(kind) && p.Tab == "form" {
		p.Tab = "json"
	}
	path := p.Action
	query := func(tab string) string {
		values := url.Values{"tab": {tab}}
		if p.From != "" {
			values.Set("from", p.From)
		}
		return path + "?" + values.Encode()
	}
	if hasForm(kind) {
		p.Tabs = append(p.Tabs, navLink{"Form", query("form"), p.Tab == "form"})
	}
	p.Tabs = append(p.Tabs, navLink{"JSON", query("json"), p.Tab == "json"})
	if !p.Fresh {
		p.Tabs = append(p.Tabs, navLink{"History and use", query("history"), p.Tab == "history"})
	}
}

// take shows what somebody typed, and what is wrong with it.
func (p *clusterAdminEntityPage) take(d *entityDraft, f *entityForm) {
	if d.tab == "json" {
		p.JSON = d.json
		for _, one := range d.problems {
			p.Problems = append(p.Problems, shownProblem{Field: one.Field, Text: one.Text})
		}
		p.JSONErrors = len(p.Problems) > 0
	} else {
		p.Problems = f.place(d.problems)
	}
	if d.problem != nil {
		p.Problem, p.Hint = plainError(d.problem)
	}
	if len(d.lost) > 0 {
		p.Lost = strings.Join(d.lost, ", ")
	}
	p.Conflict, p.Trial = d.conflict, d.trial
	if d.version != 0 {
		p.Version = d.version
	}
}

// plainError returns what an error says to people, and what it advises.
func plainError(err error) (text, hint string) {
	var f *fault.Error
	if errors.As(err, &f) {
		shown := *f
		shown.Advice = ""
		return shown.Error(), f.Advice
	}
	return err.Error(), ""
}

// history fills in the versions of an entity, two of them compared, and what uses it.
func (c *console) history(
	r *http.Request, s catalogueScope, item admin.Item, p *clusterAdminEntityPage, all *catalogue.Catalogue,
) error {
	ctx := r.Context()
	if item.BuiltIn {
		return nil
	}
	versions, err := c.catalogue.Versions(ctx, item.Project, item.Kind, item.Name)
	if err != nil {
		return err
	}
	known := map[int]bool{}
	for _, v := range versions {
		p.Versions = append(p.Versions, entityVersion{v.Version, v.Deleted, v.Made, v.MadeBy})
		if !v.Deleted {
			known[v.Version] = true
			p.Diff.Choices = append(p.Diff.Choices, v.Version)
		}
	}
	p.Diff.Path = p.Action
	if len(p.Diff.Choices) > 1 {
		p.Diff.To, p.Diff.From = p.Diff.Choices[0], p.Diff.Choices[1]
		query := r.URL.Query()
		if from, err := strconv.Atoi(query.Get("from")); err == nil && known[from] {
			p.Diff.From = from
		}
		if to, err := strconv.Atoi(query.Get("to")); err == nil && known[to] {
			p.Diff.To = to
		}
		if p.Diff.Changes, err = c.compareVersions(ctx, item, p.Diff.From, p.Diff.To); err != nil {
			return err
		}
	}
	if !p.Deletable {
		return nil
	}
	after := all.Without(item.Kind, item.Name)
	if !s.Shared { // then the shared one of its name counts again
		shared, err := c.catalogue.Catalogue(ctx, intent.ProjectID{})
		if err != nil {
			return err
		}
		if e := shared.Get(item.Kind, item.Name); e != nil {
			after = after.With(e)
		}
	}
	for ref, found := range catalogue.Breaks(all, after) {
		p.Uses = append(p.Uses, navLink{Text: ref.Kind.Noun() + " " + ref.Name + " (" + found[0].Field + ")",
			URL: s.entityURL(ref.Kind, ref.Name)})
	}
	sortLinks(p.Uses)
	project := &s.Project.ID
	if s.Shared {
		project = nil
	}
	p.Live, err = c.store.ClustersUsing(ctx, project, string(item.Kind), item.Name, 0)
	return err
}

func (c *console) compareVersions(ctx context.Context, item admin.Item, from, to int) (*linediff.Diff, error) {
	text := func(version int) (string, error) {
		v, err := c.catalogue.GetVersion(ctx, item.Project, item.Kind, item.Name, version)
		if err != nil {
			return "", err
		}
		return shownJSON(treeOf(v.Content)) + "\n", nil
	}
	a, err := text(from)
	if err != nil {
		return nil, err
	}
	b, err := text(to)
	if err != nil {
		return nil, err
	}
	return linediff.Compare(a, b), nil
}

// saveEntity serves the forms of an entity: it saves, or shows the form again with other fields, with a layout, or with
// what is wrong.
func (c *console) saveEntity(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 2*catalogue.MaxText)
	if err := r.ParseForm(); err != nil {
		c.fail(w, r, fault.Wrap("console.catalogue", fault.Invalid, err).Say("the form cannot be read"))
		return
	}
	next, code, v, err := c.submitEntity(r)
	switch {
	case err != nil:
		audit.Failed(r.Context(), err)
		c.fail(w, r, err)
	case next != "":
		http.Redirect(w, r, next, http.StatusSeeOther)
	default:
		c.render(w, r, code, v)
	}
}

func (c *console) submitEntity(r *http.Request) (next string, code int, v view, err error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return "", 0, v, err
	}
	kind, err := kindOf(r)
	if err != nil {
		return "", 0, v, err
	}
	var item *admin.Item
	from := field(r, "from")
	if name := r.PathValue("name"); name != "" {
		found, err := c.catalogue.Get(r.Context(), s.Project.ID, kind, name)
		if err != nil {
			return "", 0, v, err
		}
		item = &found
	}
	d, text, err := c.readDraft(r, s, kind, item, from)
	if err != nil {
		return "", 0, v, err
	}
	code = http.StatusOK
	switch do := r.PostFormValue("do"); {
	case do == "refresh":
	case do == "more":
		d.more = 2 * emptyRows
	case do == "try" && len(d.problems) == 0:
		c.tryDraft(r, s, text, d)
	case len(d.problems) == 0:
		saved, err := c.put(r, s, kind, item, text)
		if err == nil {
			return s.entityURL(kind, saved.Name) + "?tab=" + d.tab + "&done=entitysaved", 0, v, nil
		}
		audit.Failed(r.Context(), err)
		if code, err = c.refused(r, item, d, err); err != nil {
			return "", 0, v, err
		}
	}
	if len(d.problems) > 0 && code == http.StatusOK && !isRefresh(r) {
		code = http.StatusUnprocessableEntity
	}
	if isRefresh(r) {
		d.problems = nil
	}
	v, err = c.entityView(r, s, kind, item, from, d)
	return "", code, v, err
}

// isRefresh reports whether a form only asks for other fields.
func isRefresh(r *http.Request) bool {
	do := r.PostFormValue("do")
	return do == "refresh" || do == "more"
}

// readDraft returns what was typed: for the page if it has to be shown again, and as JSON.
func (c *console) readDraft(
	r *http.Request, s catalogueScope, kind catalogue.Kind, item *admin.Item, from string,
) (d *entityDraft, text []byte, err error) {
	all, err := c.catalogue.Catalogue(r.Context(), s.Project.ID)
	if err != nil {
		return nil, nil, err
	}
	d = &entityDraft{tab: "form", t: tree{}}
	d.version, _ = strconv.Atoi(r.PostFormValue("version"))
	if r.PostFormValue("as") == "json" {
		d.tab = "json"
		text = []byte(r.PostFormValue("json"))
		d.json = string(text)
		if kind == catalogue.Providers {
			lost := false
			if d.json, lost = withoutSecrets(d.json, all); lost {
				d.lost = []string{"the secrets in the JSON"}
			}
		}
		return d, text, nil
	}
	if !hasForm(kind) {
		return nil, nil, fault.New("console.catalogue", fault.Invalid, "plug-in types are edited as JSON")
	}
	var base tree
	if item != nil {
		base = treeOf(item.Content)
	} else if base, err = c.startOf(r.Context(), s, kind, from); err != nil {
		return nil, nil, err
	}
	delete(base, "version")
	e := entityEdit{t: base, all: all, v: r.PostForm, fresh: item == nil, typed: map[string]string{}}
	e.apply(kind)
	d.t, d.typed, d.problems, d.lost = e.t, e.typed, e.problems, e.lost
	return d, e.t.encode(), nil
}

// put saves what was typed.
func (c *console) put(
	r *http.Request, s catalogueScope, kind catalogue.Kind, item *admin.Item, text []byte,
) (admin.Item, error) {
	if item == nil {
		return c.catalogue.Create(r.Context(), s.Project.ID, kind, text)
	}
	version, err := strconv.Atoi(r.PostFormValue("version"))
	if err != nil {
		return admin.Item{}, fault.New("console.catalogue", fault.Invalid,
			"the form does not say which version it changes")
	}
	return c.catalogue.ReplaceVersion(r.Context(), s.Project.ID, kind, item.Name, version, text)
}

// refused puts an error of saving into the draft, and returns the status of the answer. Errors that nobody can mend in
// the form are returned.
func (c *console) refused(r *http.Request, item *admin.Item, d *entityDraft, err error) (int, error) {
	var invalid *catalogue.Invalid
	switch {
	case errors.As(err, &invalid):
		d.problems = invalid.Problems
		return http.StatusUnprocessableEntity, nil
	case fault.Is(err, fault.Conflict):
		if item != nil && item.Version != d.version && d.version != 0 {
			lines, compareErr := c.compareVersions(r.Context(), *item, d.version, item.Version)
			if compareErr != nil && !fault.Is(compareErr, fault.NotFound) {
				return 0, compareErr
			}
			d.conflict = &conflictShown{item.Version, item.Made, item.MadeBy, d.version, lines}
			d.version = item.Version // to save again is to save over it
			return http.StatusConflict, nil
		}
		d.problem = err
		return http.StatusConflict, nil
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.Exhausted):
		d.problem = err
		return http.StatusUnprocessableEntity, nil
	}
	return 0, err
}

// deleteEntity deletes an entity, or says on its page what uses it.
func (c *console) deleteEntity(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	s, kind, item, err := c.entityOf(r)
	if err == nil && r.PostFormValue("confirm") != item.Name {
		err = fault.New("console.confirm", fault.Invalid, "the typed name is not the name of the "+kind.Noun()).
			Hint("type " + item.Name + " to confirm; nothing was done")
	}
	if err == nil {
		err = c.catalogue.Delete(r.Context(), s.Project.ID, kind, item.Name)
	}
	if err == nil {
		http.Redirect(w, r, s.kindURL(kind)+"?done=entitydeleted", http.StatusSeeOther)
		return
	}
	audit.Failed(r.Context(), err)
	if fault.Is(err, fault.Conflict) {
		if v, viewErr := c.entityView(r, s, kind, &item, "", &entityDraft{
			tab: "history", t: treeOf(item.Content), problem: err,
		}); viewErr == nil {
			c.render(w, r, http.StatusConflict, v)
			return
		}
	}
	c.fail(w, r, err)
}
