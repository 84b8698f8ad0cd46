package console

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/control"
)

// Actions on many resources at once: those that are ticked, or all that match the filter.
//
//	GET  resources?filter&do=deploy&id=…  ─▶ the list, and above it a question with the numbers
//	POST resources/deploy                 ─▶ the verb of control, with the same filter

// bulkAction is something to do with many resources.
type bulkAction struct {
	Name, Text string
	verb       access.Verb
}

var bulkActions = []bulkAction{
	{"deploy", "Deploy", access.Deploy},
	{"repair", "Repair", access.Deploy},
	{"dryrun", "Dry run", access.StartDryRun},
	{"pause", "Pause agents", access.PauseAgents},
	{"unpause", "Unpause agents", access.PauseAgents},
	{"unpark", "Unpark", access.Unpark},
}

// bulkBar offers the actions, and asks about one that was chosen.
type bulkBar struct {
	URL     string // of the list
	Kept    []hiddenField
	Actions []bulkAction
	Total   int
	Ask     *bulkQuestion
	Nothing bool // an action was chosen, and nothing to do it with
}

// bulkQuestion asks whether to do an action.
type bulkQuestion struct {
	Action   bulkAction
	Question string
	Fields   []hiddenField
	URL      string
	Cancel   string
}

// bulkChoice is what an action is about: the ids that were ticked, or nil for all that the filter matches.
func bulkChoice(v url.Values) (f intent.ResourceFilter, ids []intent.ResourceID, chosen bool, err error) {
	filter := readResourceFilter(v)
	if v.Get("all") == "yes" {
		return filter.value(), nil, true, nil
	}
	for _, text := range v["id"] {
		id, err := intent.ParseResourceID(text)
		if err != nil {
			return f, nil, false, fault.Wrap("console.bulk", fault.Invalid, err)
		}
		ids = append(ids, id)
	}
	return intent.ResourceFilter{Resources: ids, Orphan: new(false)}, ids, len(ids) > 0, nil
}

func (c *console) bulkBar(r *http.Request, env uuid.UUID, filter resourceFilter, total int) (bulkBar, error) {
	base := envURL(env) + "/resources"
	bar := bulkBar{URL: base, Actions: bulkActions, Total: total}
	for name, values := range filter.address() {
		for _, v := range values {
			bar.Kept = append(bar.Kept, hiddenField{name, v})
		}
	}
	v := r.URL.Query()
	for _, a := range bulkActions {
		if v.Get("do") != a.Name {
			continue
		}
		f, _, chosen, err := bulkChoice(v)
		if err != nil {
			return bar, err
		}
		if !chosen {
			bar.Nothing = true
			return bar, nil
		}
		if a.Name == "unpark" {
			f.Parked = new(true)
		}
		if a.Name == "deploy" || a.Name == "repair" || a.Name == "unpark" {
			f.Orphan = new(false)
		}
		matched, err := c.store.MatchResources(r.Context(), env, f)
		if err != nil {
			return bar, err
		}
		if len(matched.IDs) == 0 {
			bar.Nothing = true
			return bar, nil
		}
		bar.Ask = &bulkQuestion{
			Action: a, Question: a.question(len(matched.IDs), len(matched.Agents())), Fields: bar.Kept,
			URL: base + "/" + a.Name, Cancel: base,
		}
		if keep := filter.address(); len(keep) > 0 {
			bar.Ask.Cancel += "?" + keep.Encode()
		}
		for _, name := range []string{"all", "id"} {
			for _, value := range v[name] {
				bar.Ask.Fields = append(bar.Ask.Fields, hiddenField{name, value})
			}
		}
	}
	return bar, nil
}

// question says what an action would do.
func (a bulkAction) question(n, agents int) string {
	plural := func(n int, one string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %ss", n, one)
	}
	of := plural(n, "resource") + " on " + plural(agents, "agent")
	switch a.Name {
	case "deploy":
		return "Deploy what is not as intended among " + of + "?"
	case "repair":
		return "Verify and repair " + of + "?"
	case "dryrun":
		return "Start a dry run of " + of + "? It changes nothing."
	case "pause":
		return "Pause " + plural(agents, "agent") + " of " + plural(n, "resource") + "? Nothing more starts on them."
	case "unpause":
		return "Unpause " + plural(agents, "agent") + " of " + plural(n, "resource") + "?"
	}
	return "Unpark " + of + " and deploy them again?"
}

// doBulk does an action with what a form chose.
func (c *console) doBulk(a bulkAction) action {
	return func(r *http.Request, e intent.Environment) (string, error) {
		f, ids, chosen, err := bulkChoice(r.PostForm)
		if err == nil && !chosen {
			err = fault.New("console.bulk", fault.Invalid, "no resources were chosen").
				Hint("tick some, or choose all that match")
		}
		if err != nil {
			return "", err
		}
		ctx := r.Context()
		done := ""
		switch a.Name {
		case "deploy", "repair":
			done = "bulk" + a.Name
			_, err = c.control.DeployMatching(ctx, e.ID, f, a.Name == "repair")
		case "dryrun":
			run, err := c.control.DryRunMatching(ctx, e.ID, control.FilteredDryRun{
				Filter: f, Sent: readResourceFilter(r.PostForm).wire(ids),
			})
			return dryRunURL(e.ID, run.ID), err
		case "pause":
			done = "bulkpaused"
			_, err = c.control.PauseMatching(asConsole(r), e.ID, f, true)
		case "unpause":
			done = "bulkresumed"
			_, err = c.control.PauseMatching(asConsole(r), e.ID, f, false)
		case "unpark":
			done = "freed"
			_, err = c.control.UnparkMatching(ctx, e.ID, f)
		}
		return back(r, envURL(e.ID)+"/resources", done), err
	}
}
