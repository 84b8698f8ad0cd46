package console

import (
	"context"
	"net/http"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/weblink"
)

// overviewPage is the home of an environment.
type overviewPage struct {
	frame
	Sum      summary
	Problems problems
	Chart    chart
	Latest   runTable
}

// summary is an environment in one sentence and one bar.
type summary struct {
	EnvURL   string
	State    state
	Text     string
	Commit   string
	Hash     commitView
	Subject  string
	Author   string
	Pushed   string // who sent the active version and from where, if it is not from a commit
	Version  int
	VerURL   string
	When     *time.Time
	Bar      bar
	Runs     []runRow
	Standing standingView // what is deployed, and why it is not the tip of the branch
	Bound    bool         // to a repository
	Halted   bool
	HaltedBy string // who halted it
	HaltedAt *time.Time
	Gates    gateCard
	counts   map[intent.Status]int
}

// bar is a picture of how many resources are in which state.
type bar struct {
	Segments []segment
	Total    int
}

// segment is one state in a bar, in units of a thousandth of its width.
type segment struct {
	State state
	N     int
	X, W  float64
	URL   string
}

// problems are the resources that are not as intended, worst first.
type problems struct {
	Rows []resourceRow
	More int
	URL  string
}

// noRepository is shown instead of runs where there can be none.
const noRepository = "No commit has been compiled, since the environment is bound to no repository."

type runTable struct {
	Rows   []runRow
	EnvURL string
	Empty  string // is said where there is none
	More   int    // runs that are left out
}

// problemRows is how many such resources the overview shows.
const problemRows = 12

// overviewContent is what everybody sees who looks at the overview of an environment, and its fragments as they are
// sent to those who stay.
type overviewContent struct {
	page     overviewPage // without a frame
	rendered map[string]string
}

func (c *console) overview(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, e.Name, "overview")
	if err != nil {
		return view{}, err
	}
	content, err := c.overviews.Get(r.Context(), e.ID, c.loadOverview)
	if err != nil {
		return view{}, err
	}
	p := content.page
	p.frame = f
	return view{template: "overview", data: p, fragments: p.fragments(), rendered: content.rendered}, nil
}

func (p overviewPage) fragments() []fragment {
	return []fragment{
		{"summary", "summary", p.Sum}, {"problems", "problems", p.Problems},
		{"chart", "chart", p.Chart}, {"latest", "latest", p.Latest},
	}
}

// loadOverview loads what all who look at an overview share.
func (c *console) loadOverview(ctx context.Context, env intent.EnvironmentID) (out overviewContent, err error) {
	e, err := c.store.Environment(ctx, env)
	if err != nil {
		return out, err
	}
	p := &out.page
	if p.Sum, err = c.summary(ctx, e); err != nil {
		return out, err
	}
	if p.Problems, err = c.problems(ctx, e, p.Sum); err != nil {
		return out, err
	}
	p.Latest = runTable{Rows: p.Sum.Runs[:min(5, len(p.Sum.Runs))], EnvURL: envURL(e.ID)}
	if !p.Sum.Bound {
		p.Latest.Empty = noRepository
	}
	p.Chart = chartOf(p.Sum.Runs)
	out.rendered = map[string]string{}
	for _, f := range p.fragments() {
		if out.rendered[f.id], err = c.renderFragment(view{template: "overview"}, f); err != nil {
			return out, err
		}
	}
	return out, nil
}

// summary reads the state of an environment.
func (c *console) summary(ctx context.Context, e intent.Environment) (summary, error) {
	s := summary{Bound: e.Source.URL != "", EnvURL: envURL(e.ID), Halted: e.Halted}
	s.Gates = c.gatesOf(e)
	if e.Halted && e.HaltedAt != nil {
		s.HaltedBy, s.HaltedAt = e.HaltedBy, e.HaltedAt
	}
	counts, err := c.store.ResourceCounts(ctx, e.ID)
	if err != nil {
		return s, err
	}
	s.Bar, s.counts = barOf(s.EnvURL, counts), counts
	// Dry runs have pages of their own.
	page, err := c.store.Compiles(ctx, e.ID, intent.ListQuery{
		Limit: chartRuns, Filters: map[string][]string{"trigger": {"!dryrun"}},
	})
	if err != nil {
		return s, err
	}
	for _, run := range page.Items {
		s.Runs = append(s.Runs, c.runRow(run))
	}
	now, err := c.control.Standing(ctx, e.ID)
	if err != nil {
		return s, err
	}
	s.Standing = c.standingOf(e.ID, now)
	sayWaits(s.Runs, now)
	version, err := c.store.ActiveVersion(ctx, e.ID)
	if err != nil {
		return s, err
	}
	if version != nil {
		s.Version, s.VerURL = version.Number, versionURL(e.ID, version.Number)
		from := version.Provenance
		s.Commit, s.Subject, s.Author, s.When = short(from.Commit), from.Subject, from.Author, version.Released
		s.Hash = commitOf(weblink.OfEnvironment(e), from.Commit)
		if from.Pushed != nil {
			s.Pushed = from.Pushed.Words()
		}
	}
	s.State, s.Text = sentence(s, version, counts)
	if !s.Halted {
		s.State, s.Text = notTheNewest(now, s.State, s.Text)
	}
	return s, nil
}

// sentence says in one sentence how an environment is. The most pressing thing decides.
func sentence(s summary, version *intent.Version, counts map[intent.Status]int) (state, string) {
	total := s.Bar.Total
	bad := counts[intent.StatusFailed] + counts[intent.StatusUnavailable]
	moving := counts[intent.StatusDeploying] + counts[intent.StatusAvailable]
	off := total - counts[intent.StatusDeployed]
	switch {
	case s.Halted && version == nil:
		return halted, "Halted. Nothing is compiled or deployed until it is resumed."
	case version == nil && len(s.Runs) > 0 && s.Runs[0].State == failed:
		return failed, "The last compile failed, so nothing is deployed yet."
	case version == nil && len(s.Runs) > 0 && s.Runs[0].Live:
		return running, "The first compile is running."
	case version == nil && len(s.Runs) > 0 && s.Runs[0].State == waiting:
		return waiting, "A compile is waiting to start."
	case version == nil:
		return state{"none", "nothing yet"}, "Nothing is deployed yet."
	case s.Halted:
		return halted, "Halted with " + of(counts[intent.StatusDeployed], total) + " as intended."
	case total == 0:
		return intended, "The released model has no resources."
	case off == 0 && total == 1:
		return intended, "The one resource is as intended."
	case off == 0:
		return intended, "All " + plural(total, "resource") + " as intended."
	case bad > 0:
		if off > bad {
			return failed, plural(bad, "resource") + " failed; " + of(off, total) + " are not as intended."
		}
		return failed, plural(bad, "resource") + " of " + count(total) + " failed; all others are as intended."
	case moving == off:
		return deploying, "Deploying: " + of(counts[intent.StatusDeployed], total) + " as intended so far."
	}
	return differs, of(off, total) + " are not as intended."
}

func of(n, total int) string { return count(n) + " of " + plural(total, "resource") }

// barOf draws the states side by side, the worst first. Each state that has a resource is wide enough to be seen.
func barOf(base string, counts map[intent.Status]int) bar {
	var b bar
	shares := map[state]*segment{}
	for _, status := range allStatuses {
		n := counts[status]
		if n == 0 {
			continue
		}
		b.Total += n
		look := stateOf(status)
		if shares[look] == nil {
			b.Segments = append(b.Segments, segment{State: look, URL: base + "/resources?status=" + string(status)})
			shares[look] = &segment{}
		}
		shares[look].N += n
	}
	const width, least = 1000.0, 12.0
	free := width - least*float64(len(b.Segments))
	x := 0.0
	for i := range b.Segments {
		s := &b.Segments[i]
		s.N = shares[s.State].N
		s.X, s.W = x, least+free*float64(s.N)/float64(b.Total)
		x += s.W
	}
	return b
}

// problems lists resources that are not as intended, worst first. A state that no resource has is not looked for, since
// that takes longest, and nothing is counted again.
func (c *console) problems(ctx context.Context, e intent.Environment, sum summary) (problems, error) {
	p := problems{URL: envURL(e.ID) + "/resources?status=!deployed"}
	off := sum.Bar.Total
	for _, s := range sum.Bar.Segments {
		if s.State == intended {
			off -= s.N
		}
	}
	if off == 0 {
		return p, nil
	}
	for _, status := range worstFirst {
		room := problemRows - len(p.Rows)
		if room == 0 {
			break
		}
		if sum.counts[status] == 0 {
			continue
		}
		page, err := c.store.Resources(ctx, e.ID, intent.ListQuery{
			Limit: room, Sort: "resource_id", Filters: map[string][]string{"status": {string(status)}},
			Total: sum.counts[status],
		})
		if err != nil {
			return p, err
		}
		for _, row := range page.Items {
			p.Rows = append(p.Rows, rowOf(e.ID, row))
		}
	}
	p.More = max(0, off-len(p.Rows))
	return p, c.addWaits(ctx, e.ID, p.Rows)
}

// chart draws how long the last runs took, the newest on the right.
type chart struct {
	Bars  []chartBar
	Max   string // empty: no run has ended
	Width int
}

type chartBar struct {
	X, Y, H int
	State   state
	URL     string
	Label   string
}

// The height of a chart, the width of one of its bars with the gap after it, and how many runs it shows.
const chartHeight, chartStep, chartRuns = 48, 14, 24

func chartOf(rows []runRow) chart {
	var longest time.Duration
	var done []runRow
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Started != nil && !rows[i].Merged {
			done = append(done, rows[i])
			if !rows[i].Live {
				longest = max(longest, rows[i].Took)
			}
		}
	}
	ch := chart{Width: len(done) * chartStep}
	if longest > 0 {
		ch.Max = duration(longest)
	}
	for i, row := range done {
		h := 4
		if longest > 0 {
			h = min(chartHeight, max(4, int(float64(chartHeight)*float64(row.Took)/float64(longest))))
		}
		ch.Bars = append(ch.Bars, chartBar{
			X: i * chartStep, Y: chartHeight - h, H: h, State: row.State, URL: row.URL,
			Label: row.State.Word + " in " + duration(row.Took) + ": " + row.Headline(),
		})
	}
	return ch
}
