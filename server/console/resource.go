package console

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
)

// resourcePage shows why a resource is as it is.
type resourcePage struct {
	frame
	Head     resourceHead
	Desired  desired
	Needs    edges
	Provides edges
	Attempts attempts
	Drift    driftTable
	History  history
	Facts    factTable
}

type resourceHead struct {
	ID, Type, Agent, Value, Attribute string
	EnvURL, GraphURL                  string
	State                             state
	Sentence                          string
	Wait                              *resourceWait // takes the place of the sentence; may be nil
	Why                               []string      // why it is not deployed, the most pressing reason first
	LastRun, LastSuccess              *time.Time
	Version                           int
	VersionURL                        string
	Tries                             int
	Retry, ParkedAt                   *time.Time
	Parked, Contested                 bool
	AgentPaused                       bool
	Orphan                            bool
}

// desired is the intent beside what was found.
type desired struct {
	Rows  []desiredRow // those that differ; all of them if none does
	Same  []desiredRow // the others, folded
	Found *time.Time   // when the found values were read
	// Origins is set when it is known what set the values.
	Origins bool
	Missing bool // nothing was found: the resource does not exist yet
}

// desiredTable is a part of the rows, with what the table needs to know of all of them.
type desiredTable struct {
	Rows             []desiredRow
	Found            *time.Time
	Origins, Missing bool
}

// Table returns the rows that are shown at once, and Folded the others.
func (d desired) Table() desiredTable { return desiredTable{d.Rows, d.Found, d.Origins, d.Missing} }

// Folded returns the rows that are folded away.
func (d desired) Folded() desiredTable { return desiredTable{d.Same, d.Found, d.Origins, d.Missing} }

// fold puts the rows that differ first and folds the others away, if there are both.
func (d *desired) fold() {
	var differ, same []desiredRow
	for _, row := range d.Rows {
		if row.Differs {
			differ = append(differ, row)
		} else {
			same = append(same, row)
		}
	}
	if len(differ) > 0 {
		d.Rows, d.Same = differ, same
	}
}

type desiredRow struct {
	attribute
	Origin  *origin
	Found   string
	Differs bool
}

type edges struct {
	ID, Title, Empty string
	Rows             []edgeRow
}

type edgeRow struct {
	Text, URL string
	State     *state
}

type attempts struct {
	Rows   []attempt
	LogURL string // of everything that was written about the resource
}

type attempt struct {
	ID      string
	State   state
	Kind    string
	Change  string
	Version int
	Started time.Time
	Took    time.Duration
	Live    bool
	Changes changes
	Lines   []logRow
	Open    bool
}

// changes are the values of attributes on two sides, with the headings of the sides.
type changes struct {
	Was, Will string
	Rows      []changeRow
}

// changesOf lists changes by the name of the attribute.
func changesOf(was, will string, attributes map[string]intent.AttributeChange) changes {
	out := changes{Was: was, Will: will}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		change := attributes[name]
		row := changeRow{Name: name, Current: valueText(change.Current), Desired: valueText(change.Desired)}
		row.Long = isLong(row.Current) || isLong(row.Desired)
		out.Rows = append(out.Rows, row)
	}
	return out
}

type changeRow struct {
	Name, Current, Desired string
	Long                   bool
	Who                    string // the address of who decided it
	Whole                  string // the address of the whole values, when they are cut here
	// Lines are the lines that differ, in the values or in the contents whose hashes they are; nil: the values say all.
	Lines *linediff.Diff
}

type logRow struct {
	Time  time.Time
	Level string
	Text  string
	Trace string // the lines below the first one; folded
}

type history struct{ Rows []historyRow }

type historyRow struct {
	Date       time.Time
	Version    int
	VersionURL string
	Attributes []attribute
	Changes    changes // since the intent before; none for the oldest
}

// shownAttempts and shownHistory are how many attempts and earlier intents a page shows.
const shownAttempts, shownHistory = 20, 20

// shownMessage is how much of one log line a page shows.
const shownMessage = 16 << 10

func (c *console) resource(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	id, err := intent.ParseResourceID(r.URL.Query().Get("id"))
	if err != nil {
		return view{}, fault.Wrap("console.resource", fault.NotFound, err)
	}
	ctx := r.Context()
	d, err := c.store.Resource(ctx, e.ID, id)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, id.Value+" · "+id.Type, "resources",
		crumb{Text: "Resources", URL: envURL(e.ID) + "/resources"}, crumb{Text: id.String(), Mono: true})
	if err != nil {
		return view{}, err
	}
	actions, err := c.store.Actions(ctx, e.ID, id, "", shownAttempts)
	if err != nil {
		return view{}, err
	}
	past, err := c.store.ResourceHistory(ctx, e.ID, id, intent.ListQuery{Limit: shownHistory})
	if err != nil {
		return view{}, err
	}
	agent, err := c.agentNamed(ctx, e.ID, id.Agent)
	if err != nil {
		return view{}, err
	}
	p := resourcePage{frame: f}
	p.Head = resourceHead{
		ID: id.String(), Type: id.Type, Agent: id.Agent, Value: id.Value, Attribute: id.Attribute, EnvURL: envURL(e.ID),
		GraphURL: envURL(e.ID) + "/graph?" + url.Values{"root": {id.String()}}.Encode(),
		State:    stateOf(d.State.Status()), LastRun: d.State.LastRunAt, LastSuccess: d.State.LastSuccess,
		Version: d.Resource.Version, VersionURL: versionURL(e.ID, d.Resource.Version), Tries: d.State.Attempts,
		Retry: d.State.RetryAt, ParkedAt: d.State.ParkedAt, Orphan: d.State.Orphaned > 0,
		Parked: d.State.Parked != intent.NotParked && d.State.Orphaned == 0, AgentPaused: agent.Paused,
		Contested: d.State.Parked == intent.ParkedContested,
	}
	p.Head.Sentence = c.explain(d, actions, agent)
	why, err := c.control.Why(r.Context(), e.ID, id)
	if err != nil {
		return view{}, err
	}
	p.Head.Why = whyMore(why)
	if d.Resource.Purged && d.State.Status() == intent.StatusSkipped && intent.GuardOf(e).Protected.Match(id) {
		p.Head.Sentence = "The model wants it to be gone, but the setting protected_resources protects it: it is not " +
			"purged."
	} else if p.Head.Wait, err = c.waitInSentence(ctx, e.ID, d, agent); err != nil {
		return view{}, err
	}
	drift, err := c.store.Drift(ctx, e.ID, intent.ListQuery{
		Limit: shownDrift, Filters: map[string][]string{"resource": {id.String()}},
	})
	if err != nil {
		return view{}, err
	}
	p.Drift = driftTable{ID: "driftlist", Of: true, Rows: driftRows(e.ID, drift.Items)}
	if err := c.addDriftLines(r, e, p.Drift.Rows, drift.Items); err != nil {
		return view{}, err
	}
	p.Desired = desiredOf(d, actions)
	if err := c.addOrigins(ctx, e, d.Resource, &p.Desired); err != nil {
		return view{}, err
	}
	p.Desired.fold()
	p.Needs = edges{ID: "requires", Title: "Requires", Empty: "It waits for nothing."}
	for _, id := range slices.SortedFunc(maps.Keys(d.RequiresStatus), compareIDs) {
		s := stateOf(d.RequiresStatus[id])
		p.Needs.Rows = append(p.Needs.Rows, edgeRow{id.String(), resourceURL(e.ID, id), &s})
	}
	p.Provides = edges{ID: "provides", Title: "Required by", Empty: "Nothing waits for it."}
	for _, id := range slices.SortedFunc(slices.Values(d.Provides), compareIDs) {
		s := stateOf(d.ProvidesStatus[id])
		p.Provides.Rows = append(p.Provides.Rows, edgeRow{id.String(), resourceURL(e.ID, id), &s})
	}
	p.Attempts.LogURL = logsURL(e.ID, "resource", id.String())
	for i, a := range actions {
		p.Attempts.Rows = append(p.Attempts.Rows, c.attempt(a, i == 0))
	}
	if p.History, err = c.intentHistory(r, e, past.Items); err != nil {
		return view{}, err
	}
	if err := c.addAttemptLines(r, e, p.Attempts.Rows, actions); err != nil {
		return view{}, err
	}
	if p.Facts, err = c.factsOf(ctx, e.ID, id); err != nil {
		return view{}, err
	}
	return view{template: "resource", data: p, fragments: []fragment{
		{"resource-head", "resource-head", p.Head}, {"desired", "desired", p.Desired}, {"requires", "edges", p.Needs},
		{"provides", "edges", p.Provides}, {"attempts", "attempts", p.Attempts},
		{"resource-drift", "resource-drift", p.Drift}, {"history", "history", p.History}, {"facts", "facts", p.Facts},
	}}, nil
}

// agentNamed returns an agent; one without a name when there is none of that name.
func (c *console) agentNamed(ctx context.Context, env intent.EnvironmentID, name string) (intent.Agent, error) {
	found, err := c.store.Agents(ctx, env, intent.ListQuery{Filters: map[string][]string{"name": {name}}})
	for _, a := range found.Items { // the filter also matches names that contain this one
		if a.Name == name {
			return a, err
		}
	}
	return intent.Agent{}, err
}

func compareIDs(a, b intent.ResourceID) int { return strings.Compare(a.String(), b.String()) }

// explain says in one sentence why a resource is in its state.
func (c *console) explain(d intent.ResourceDetail, actions []intent.Action, agent intent.Agent) string {
	status := d.State.Status()
	if agent.Paused && status != intent.StatusDeployed {
		return "Its agent is paused, so nothing is done to it until the agent is unpaused."
	}
	if text := parkingSentence(d.State); text != "" && status != intent.StatusOrphaned {
		return text
	}
	if agent.Breaker.Open() && status != intent.StatusDeployed && status != intent.StatusDeploying &&
		status != intent.StatusOrphaned {
		return fmt.Sprintf("It waits for agent %s: unreachable since %s. One deployment tries again %s.", agent.Name,
			minute(*agent.Breaker.Since, "UTC"), c.whenProbed(agent.Breaker))
	}
	switch status {
	case intent.StatusDeployed:
		return "What was found is what the model wants."
	case intent.StatusDeploying:
		return "A handler is working on it now."
	case intent.StatusAvailable:
		return "The model wants something new of it; it is deployed when its turn comes."
	case intent.StatusNonCompliant:
		return "What was found differs from the model, and it was only reported."
	case intent.StatusUnavailable:
		return "No handler could be loaded for its type, or its target could not be reached."
	case intent.StatusFailed:
		for _, a := range actions {
			for _, line := range slices.Backward(a.Messages) {
				if line.Level == "ERROR" || line.Level == "CRITICAL" {
					first, _ := readable(line.Message)
					return first
				}
			}
		}
		return "Its handler failed; the attempts below say how."
	case intent.StatusSkipped, intent.StatusSkippedForDependency:
		for _, id := range slices.SortedFunc(maps.Keys(d.RequiresStatus), compareIDs) {
			if s := d.RequiresStatus[id]; s != intent.StatusDeployed {
				return "It waits for " + id.String() + ", which is " + stateOf(s).Word + "."
			}
		}
		return "Its handler skipped it; the attempts below say why."
	case intent.StatusUndefined:
		switch names := d.Resource.Undefined; len(names) {
		case 0:
		case 1:
			return "The value of " + names[0] + " is not known yet."
		default:
			last := len(names) - 1
			return "The values of " + strings.Join(names[:last], ", ") + " and " + names[last] + " are not known yet."
		}
		return "A value that it needs is not known yet."
	case intent.StatusSkippedForUndefined:
		return "Something that it requires has a value that is not known yet."
	case intent.StatusOrphaned:
		return "The model no longer has it; it is left as it was."
	}
	return ""
}

// toldBySentence are the kinds of reasons that the sentence of a resource says already.
var toldBySentence = []string{"requires", "undefined", "paused", "deploying", "orphan", "reported", "retry", "breaker"}

// whyMore returns the reasons why a resource is not deployed, if they say more than its sentence.
func whyMore(why intent.Why) (out []string) {
	switch {
	case len(why.Reasons) == 1 && slices.Contains(toldBySentence, why.Reasons[0].Kind):
		return nil
	case len(why.Reasons) == 1 && (why.Status == intent.StatusDeployed || why.Status == intent.StatusFailed):
		return nil
	}
	for _, reason := range why.Reasons {
		out = append(out, reason.Text)
	}
	return out
}

// desiredOf lists the intent beside what the last attempt found.
func desiredOf(d intent.ResourceDetail, actions []intent.Action) desired {
	var out desired
	found := map[string]intent.AttributeChange{}
	// What differs now is what the newest attempt found and could not change.
	if s := d.State.Status(); s != intent.StatusDeployed {
		for _, a := range actions {
			if len(a.Changes) > 0 && a.Version == d.Resource.Version {
				found, out.Found = a.Changes, &a.Started
				break
			}
		}
	}
	if change, ok := found["purged"]; ok && change.Current == true && change.Desired != true {
		out.Missing = true
	}
	for _, a := range attributesOf(d.Resource.Attributes) {
		row := desiredRow{attribute: a}
		if change, ok := found[a.Name]; ok {
			row.Found, row.Differs = valueText(change.Current), true
			row.Long = row.Long || isLong(row.Found)
		}
		if slices.Contains(d.Resource.Undefined, a.Name) {
			row.Value = "not known yet"
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// authorsWait is how long a page waits for Git to say who wrote lines. What is not known by then is on the next page,
// or in the next fragment of a live one.
const authorsWait = 150 * time.Millisecond

// addOrigins adds to each attribute what set it, where that is known.
func (c *console) addOrigins(ctx context.Context, e intent.Environment, r intent.Resource, to *desired) error {
	explained, pending, err := c.control.ExplainWithin(ctx, e.ID, r.Version, r.ID, authorsWait)
	if fault.Is(err, fault.NotFound) {
		return nil // the version was stored before origins were kept
	}
	if err != nil {
		return err
	}
	links := sourceLinksOf(e, explained.Commit)
	links.pending = pending
	for _, a := range explained.Attributes {
		for i := range to.Rows {
			if to.Rows[i].Name == a.Name {
				to.Rows[i].Origin = originOf(a.Field, links)
				to.Origins = true
			}
		}
	}
	return nil
}

// attempt returns an action with its changes and log lines.
func (c *console) attempt(a intent.Action, newest bool) attempt {
	out := attempt{
		ID: a.ID.String(), Kind: string(a.Kind), Version: a.Version, Started: a.Started, State: stateOf(a.Status),
		Live: a.Finished == nil,
	}
	if out.Live {
		out.State, out.Took = running, c.now().Sub(a.Started)
	} else {
		out.Took = a.Finished.Sub(a.Started)
	}
	if a.Change != "" && a.Change != intent.NoChange {
		out.Change = string(a.Change)
	}
	out.Changes = changesOf("Found", "Desired", a.Changes)
	for _, line := range a.Messages {
		text := line.Message
		if len(text) > shownMessage {
			text = strings.ToValidUTF8(text[:shownMessage], "") + "\n[cut here]"
		}
		row := logRow{Time: line.Time, Level: line.Level, Text: text}
		if line.Level == "ERROR" || line.Level == "CRITICAL" {
			row.Text, row.Trace = readable(text)
		}
		out.Lines = append(out.Lines, row)
	}
	out.Open = newest && (out.State == failed || out.Live || a.Status == intent.StatusNonCompliant)
	return out
}
