package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// A search looks in everything that its reader may see: in an environment, or in all of them.
//
//	text ─▶ hits of each kind ─▶ one that the text names, or one at all ─▶ redirect to its page
//	                          └▶ several, or none ─▶ a page with a group for each kind

// searchPage lists what a search found.
type searchPage struct {
	frame
	Text   string
	Groups []searchGroup
	Wider  string // the address of the same search in all environments; empty: it is
	Cut    bool   // the text was too long
}

// searchGroup is what a search found of one kind.
type searchGroup struct {
	ID, Title string
	Hits      []hit
	More      string // the address of a list of all; empty: these are all, or no such list exists
	Over      bool   // there are more than are shown
}

// hit is one thing that was found.
type hit struct {
	URL, Text, Note string
	Mono            bool
	Commit          string
	State           *state
	At              *time.Time
	Environment     string // its name; empty in the search of one environment
	exact           bool
}

const (
	shownHits     = 20
	maxSearchText = 200 // characters
	searchTime    = 10 * time.Second
)

// search redirects to the page of what a text names, or shows what was found.
func (c *console) search(w http.ResponseWriter, r *http.Request) {
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	if id, err := uuid.Parse(r.URL.Query().Get("env")); err == nil {
		r.SetPathValue("env", id.String()) // the frame is that of the environment
	}
	p, target, err := c.find(r, text)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	if target != "" {
		http.Redirect(w, r, target, http.StatusSeeOther)
		return
	}
	c.render(w, r, http.StatusOK, view{template: "search", data: p})
}

// find returns the page of a search, or the address of the one thing that it found.
func (c *console) find(r *http.Request, text string) (p searchPage, target string, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), searchTime)
	defer cancel()
	all, err := c.store.Environments(ctx)
	if err != nil {
		return p, "", err
	}
	all = access.Visible(ctx, all)
	within := r.PathValue("env")
	if within != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(e intent.Environment) bool { return e.ID.String() != within })
		if len(all) == 0 {
			return p, "", noEnvironment(within)
		}
	}
	if text == "" && within != "" {
		return p, envURL(all[0].ID) + "/resources", nil
	}
	p.Text = text
	if runes := []rune(text); len(runes) > maxSearchText {
		p.Text, p.Cut = string(runes[:maxSearchText]), true
	}
	if p.Groups, err = c.searchIn(ctx, all, p.Text, within != ""); err != nil {
		return p, "", err
	}
	if target := onlyHit(p.Groups); target != "" {
		return p, target, nil
	}
	if p.frame, err = c.frame(r, "Search", "search", crumb{Text: "Search"}); err != nil {
		return p, "", err
	}
	p.Live = false
	if within != "" {
		p.Wider = "/search?" + url.Values{"q": {p.Text}}.Encode()
	}
	return p, "", nil
}

// onlyHit returns the address of the one thing that a text names, or of the one thing in which it occurs.
func onlyHit(groups []searchGroup) string {
	var exact, any []string
	for _, g := range groups {
		for _, h := range g.Hits {
			any = append(any, h.URL)
			if h.exact {
				exact = append(exact, h.URL)
			}
		}
	}
	switch {
	case len(exact) == 1:
		return exact[0]
	case len(any) == 1 && len(exact) == 0:
		return any[0]
	}
	return ""
}

// searchKinds are the groups of a search, with the verb that a reader needs.
var searchKinds = []struct {
	in        store.FoundIn
	id, title string
	verb      access.Verb
}{
	{store.FoundRun, "runs", "Commits and runs", access.SeeCompiles},
	{store.FoundVersion, "versions", "Versions", access.SeeVersions},
	{store.FoundResource, "resources", "Resources", access.SeeResources},
	{store.FoundWords, "words", "What people said", access.SeeGates},
	{store.FoundPull, "pulls", "Pull requests", access.SeePulls},
	{store.FoundCluster, "clusters", "Clusters", access.SeeClusters},
}

// searchIn returns the groups that are not empty.
func (c *console) searchIn(
	ctx context.Context, all []intent.Environment, text string, one bool,
) ([]searchGroup, error) {
	if text == "" {
		return nil, nil
	}
	found := make([][]store.Found, len(searchKinds))
	work, workContext := errgroup.WithContext(ctx)
	work.SetLimit(3)
	for i, kind := range searchKinds {
		q := store.Search{In: kind.in, Text: text, Limit: shownHits + 1}
		for _, e := range all {
			if access.Of(ctx).Decide(kind.verb, access.TargetOf(e)).Allowed {
				q.Environments = append(q.Environments, e.ID)
			}
		}
		if kind.in == store.FoundResource {
			if id, _, err := intent.ParseResourceVersionID(text); err == nil {
				q.Text = id.String()
			}
		}
		work.Go(func() (err error) {
			found[i], err = c.store.Search(workContext, q)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, fault.New("console.search", fault.Unavailable, "the search took too long").
				Hint("search for a longer text, or in one environment")
		}
		return nil, err
	}
	names := map[uuid.UUID]string{}
	for _, e := range all {
		names[e.ID] = e.Name
	}
	var groups []searchGroup
	if one {
		groups = append(groups, pagesNamed(all[0].ID, text))
	} else {
		groups = append(groups, environmentsNamed(all, text))
	}
	versions := found[1]
	for i, kind := range searchKinds {
		g := searchGroup{ID: kind.id, Title: kind.title, Over: len(found[i]) > shownHits}
		seen := map[string]bool{} // of a commit that was compiled several times, the newest run is shown
		for _, f := range found[i][:min(len(found[i]), shownHits)] {
			if kind.in == store.FoundRun && f.Commit != "" {
				key := f.Environment.String() + f.Commit
				if seen[key] {
					continue
				}
				seen[key] = true
				// Where a version came of the commit, its page is the one that the commit names.
				f.Exact = f.Exact && !slices.ContainsFunc(versions, func(v store.Found) bool {
					return v.Exact && v.Environment == f.Environment && v.Commit == f.Commit
				})
			}
			h := hitOf(kind.in, f)
			if !one {
				h.Environment = names[f.Environment]
			}
			g.Hits = append(g.Hits, h)
		}
		if one && g.Over {
			g.More = moreOf(kind.in, all[0].ID, text)
		}
		groups = append(groups, g)
	}
	return slices.DeleteFunc(groups, func(g searchGroup) bool { return len(g.Hits) == 0 }), nil
}

// moreOf returns the address of the list that shows all that a search found, if there is one.
func moreOf(in store.FoundIn, env intent.EnvironmentID, text string) string {
	if in == store.FoundResource {
		return envURL(env) + "/resources?" + url.Values{"value": {text}}.Encode()
	}
	return ""
}

// environmentsNamed finds environments by name, project, tag or id.
func environmentsNamed(all []intent.Environment, text string) searchGroup {
	g := searchGroup{ID: "environments", Title: "Environments"}
	lower := strings.ToLower(text)
	for _, e := range all {
		name := strings.ToLower(e.Name)
		if !strings.Contains(name, lower) && !strings.Contains(strings.ToLower(e.ProjectName), lower) &&
			!strings.Contains(strings.ToLower(strings.Join(e.Tags, "\n")), lower) && e.ID.String() != lower {
			continue
		}
		if len(g.Hits) == shownHits {
			g.Over, g.More = true, "/"
			break
		}
		h := hit{
			URL: envURL(e.ID), Text: e.Name, Note: "of the project " + e.ProjectName,
			exact: name == lower || e.ID.String() == lower,
		}
		if e.Halted {
			h.State = &halted
		}
		g.Hits = append(g.Hits, h)
	}
	return g
}

// pagesNamed finds pages of an environment by the words in its menu.
func pagesNamed(env intent.EnvironmentID, text string) searchGroup {
	g := searchGroup{ID: "pages", Title: "Pages"}
	for _, group := range environmentMenu {
		for _, item := range group.Items {
			if strings.Contains(strings.ToLower(item.Text), strings.ToLower(text)) {
				g.Hits = append(g.Hits, hit{
					URL: envURL(env) + item.Path, Text: item.Text, exact: strings.EqualFold(item.Text, text),
				})
			}
		}
	}
	return g
}
