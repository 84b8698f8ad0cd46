package console

import (
	"net/http"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// pullPage shows one pull request as a review: what checks say, what it would touch in numbers, who has to approve, and
// what it would change, attribute by attribute.
//
//	record ─┬▶ the index of its dry run ─▶ numbers, and the page of differences that is shown
//	        └▶ policies (server/forge)  ─▶ checks
type pullPage struct {
	frame
	Head      pullHead
	Checks    checkList
	Approvals approvalCard
	Clusters  clusterPlans
	Diff      diffList
	Gone      goneList
}

type pullHead struct {
	pullRow
	Base     string
	Links    []link
	Problem  string
	Errors   []string // of its model
	CanRun   bool     // its preview can be computed again
	PageURL  string
	Sentence string
	Numbers  []pullNumberRow
}

// link leads somewhere else. A link that leaves the console is Outside.
type link struct {
	Text, URL string
	Outside   bool
}

// pullNumberRow is one number of what a pull request would touch.
type pullNumberRow struct {
	Text string
	N    int
	Note string
}

// clusterPlans says what would be done to clusters.
type clusterPlans struct{ Plans []string }

func (c *console) pull(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	n, err := pullNumber(r)
	if err != nil {
		return view{}, err
	}
	one, err := c.store.PullRequest(r.Context(), e.ID, n)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Pull request "+strconv.Itoa(n), "pulls",
		crumb{Text: "Pull requests", URL: envURL(e.ID) + "/pulls"}, crumb{Text: strconv.Itoa(n)})
	if err != nil {
		return view{}, err
	}
	stage := one.PreviewState()
	p := pullPage{frame: f, Approvals: approvalCardOf(one), Head: pullHead{
		pullRow: pullRowOf(one), Base: one.Base, Problem: one.Problem, PageURL: pullURL(e.ID, n),
		CanRun: one.State == intent.PullIsOpen && one.MayRun() && stage != intent.PreviewRunning,
		Links:  forgeLinks(one),
	}}
	found := reviewed{env: e, pull: one}
	if d := one.Preview; d != nil && one.PreviewOf == one.Head {
		p.Head.Problem = d.Reason
		p.Head.Links = append(p.Head.Links, link{Text: "The dry run", URL: dryRunURL(e.ID, d.ID)})
		if d.Compile != nil {
			p.Head.Links = append(p.Head.Links, link{Text: "The compile report", URL: runURL(e.ID, *d.Compile)})
		}
		if p.Diff, found.index, err = c.dryRunDifferences(r, e, *d, pullURL(e.ID, n)); err != nil {
			return view{}, err
		}
		p.Head.Sentence = blastSentence(found.index, *d)
	}
	touched := noResources
	if found.index != nil {
		touched = found.index.Touched()
	}
	if found.Review, err = c.control.PullReview(r.Context(), e, one, touched); err != nil {
		return view{}, err
	}
	if found.active, err = c.store.ActiveVersion(r.Context(), e.ID); err != nil {
		return view{}, err
	}
	p.Head.Errors, p.Clusters.Plans = found.Errors, found.Clusters
	p.Head.Numbers = found.numbers()
	p.Checks = found.checks(c.now())
	p.Gone = goneListOf(e.ID, found.Gone)
	return view{template: "pull", data: p, fragments: []fragment{
		{"pull-head", "pull-head", p.Head}, {"pull-checks", "pull-checks", p.Checks},
		{"pull-approvals", "pull-approvals", p.Approvals}, {"pull-clusters", "pull-clusters", p.Clusters},
		{"diff", "diff", p.Diff}, {"gone", "gone", p.Gone},
	}}, nil
}

func noResources(func(intent.ResourceID) bool) {}

// forgeLinks are the pages of a pull request at its forge: the request, its files, and its newest commit.
func forgeLinks(p intent.PullRequest) (out []link) {
	page := strings.TrimRight(p.URL, "/")
	if !strings.HasPrefix(page, "https://") && !strings.HasPrefix(page, "http://") {
		return nil
	}
	out = append(out, link{"At the forge", p.URL, true})
	number := "/" + strconv.Itoa(p.Number)
	for _, kind := range []struct{ path, files, commit string }{
		{"/-/merge_requests", "/diffs", "/diffs?commit_id="}, // GitLab
		{"/pull", "/files", "/commits/"},                     // GitHub
		{"/pulls", "/files", "/commits/"},                    // Gitea, Forgejo
	} {
		if strings.HasSuffix(page, kind.path+number) {
			out = append(out, link{"Changed files", page + kind.files, true})
			if p.Head != "" {
				out = append(out, link{"Commit " + p.Short(), page + kind.commit + p.Head, true})
			}
			break
		}
	}
	return out
}
