package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// deliveriesPage lists the webhooks that came for an environment.
type deliveriesPage struct {
	frame
	Choices []choice
	Ref     string
	Any     bool
	List    deliveryTable
}

type deliveryTable struct {
	Rows     []deliveryRow
	Pager    pager
	Any      bool // a filter is set
	Settings string
}

type deliveryRow struct {
	State    state
	URL      string
	Received time.Time
	Forge    string
	What     string
	Commit   string
	Reason   string
	Run      string // address of what it started
	Pull     string // address of the pull request that it is about
}

// deliveryPage shows one.
type deliveryPage struct {
	frame
	Card deliveryCard
}

type deliveryCard struct {
	deliveryRow
	ID       string
	Key      string
	Sender   string
	Subject  string
	Size     int
	Module   string
	Handled  *time.Time
	ReplayOf string // address of the one that it repeats
	Told     string // all that it told, as JSON
	Again    string // where the form goes; empty when it cannot be sent again
	Back     string
}

var deliveryStates = map[intent.OutcomeState]state{
	intent.OutcomeWaiting: {
		"waiting",
		"waiting",
	}, intent.OutcomeStarted: {"intended", "started"}, intent.OutcomeSkipped: {"none", "nothing to do"},
	intent.OutcomeFailed: {"failed", "failed"}, intent.OutcomeRefused: {"failed", "refused"},
}

func deliveriesURL(env uuid.UUID) string { return envURL(env) + "/deliveries" }

func deliveryURL(env, id uuid.UUID) string { return deliveriesURL(env) + "/" + id.String() }

func (c *console) deliveries(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Webhooks", "deliveries", crumb{Text: "Webhooks"})
	if err != nil {
		return view{}, err
	}
	values, keep, filters := r.URL.Query(), url.Values{}, map[string][]string{}
	chosen, ref := values.Get("state"), strings.TrimSpace(values.Get("ref"))
	p := deliveriesPage{frame: f, Ref: ref, Any: chosen != "" || ref != ""}
	p.Choices = []choice{{"", "All", chosen == ""}}
	for _, s := range []intent.OutcomeState{intent.OutcomeStarted, intent.OutcomeSkipped, intent.OutcomeWaiting, intent.OutcomeFailed, intent.OutcomeRefused} {
		p.Choices = append(p.Choices, choice{string(s), deliveryStates[s].Word, chosen == string(s)})
	}
	for name, v := range map[string]string{"state": chosen, "ref": ref} {
		if v != "" {
			keep.Set(name, v)
			filters[name] = []string{v}
		}
	}
	q := intent.ListQuery{Limit: perPage, Sort: "received", Desc: true, Filters: filters}
	bounds(values, &q)
	page, err := c.store.Deliveries(r.Context(), e.ID, q)
	if err != nil {
		return view{}, err
	}
	p.List = deliveryTable{Any: p.Any, Settings: envURL(e.ID) + "/settings"}
	for _, d := range page.Items {
		p.List.Rows = append(p.List.Rows, deliveryRowOf(e.ID, d))
	}
	p.List.Pager = paging(
		deliveriesURL(e.ID),
		keep,
		q,
		page,
		func(d intent.Delivery) (string, string) { return stamp(d.Received), d.ID.String() },
	)
	return view{template: "deliveries", data: p, fragments: []fragment{{"deliverylist", "deliverylist", p.List}}}, nil
}

func deliveryRowOf(env uuid.UUID, d intent.Delivery) deliveryRow {
	o := d.Outcomes[0]
	row := deliveryRow{
		State:    deliveryStates[o.State],
		URL:      deliveryURL(env, d.ID),
		Received: d.Received,
		Forge:    d.Forge,
		What:     whatOf(d.Event),
		Reason:   o.Reason,
	}
	if n := len(d.Event.Commit); n > 0 {
		row.Commit = d.Event.Commit[:min(n, 7)]
	}
	if p := d.Event.Pull; p != nil && o.State == intent.OutcomeStarted {
		row.Pull = pullURL(env, p.Number)
	}
	if o.Compile != nil {
		row.Run = runURL(env, *o.Compile)
	}
	return row
}

// whatOf says in a few words what a webhook is about.
func whatOf(e intent.HookEvent) string {
	short := strings.TrimPrefix(strings.TrimPrefix(e.Ref, "refs/heads/"), "refs/tags/")
	switch {
	case e.Kind == intent.HookPush && e.Deleted:
		return "deletion of " + short
	case e.Kind == intent.HookPush:
		return "push to " + short
	case e.Kind == intent.HookTag && e.Deleted:
		return "deletion of the tag " + short
	case e.Kind == intent.HookTag:
		return "tag " + short
	case e.Kind == intent.HookPull && e.Pull != nil:
		return "pull request " + strconv.Itoa(e.Pull.Number) + " " + string(e.Pull.Action)
	case e.Kind == intent.HookPing:
		return "test"
	}
	return e.Name
}

func (c *console) delivery(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	d, err := c.deliveryOf(r, e)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(
		r,
		"Webhook",
		"deliveries",
		crumb{Text: "Webhooks", URL: deliveriesURL(e.ID)},
		crumb{Text: d.ID.String()[:8]},
	)
	if err != nil {
		return view{}, err
	}
	told, err := json.MarshalIndent(d.Event, "", "  ")
	if err != nil {
		return view{}, err
	}
	o := d.Outcomes[0]
	card := deliveryCard{
		deliveryRow: deliveryRowOf(
			e.ID,
			d,
		), ID: d.ID.String(), Key: d.Key, Sender: d.Event.Sender, Subject: d.Event.Subject, Size: int(d.Size), Module: o.Module, Handled: o.Handled,
		Told: string(told), Back: f.Back,
	}
	if d.Verified {
		card.Again = deliveryURL(e.ID, d.ID) + "/redeliver"
	}
	if d.ReplayOf != nil {
		card.ReplayOf = deliveryURL(e.ID, *d.ReplayOf)
	}
	p := deliveryPage{frame: f, Card: card}
	return view{template: "delivery", data: p, fragments: []fragment{{"deliverycard", "deliverycard", p.Card}}}, nil
}

func (c *console) deliveryOf(r *http.Request, e intent.Environment) (intent.Delivery, error) {
	id, err := uuid.Parse(r.PathValue("delivery"))
	if err != nil {
		return intent.Delivery{}, fault.New("console.delivery", fault.NotFound, "there is no such webhook")
	}
	return c.store.Delivery(r.Context(), e.ID, id)
}

// doRedeliver acts on a webhook anew.
func (c *console) doRedeliver(r *http.Request, e intent.Environment) (string, error) {
	d, err := c.deliveryOf(r, e)
	if err != nil {
		return "", err
	}
	again, err := c.control.Redeliver(r.Context(), e.ID, d.ID)
	if err != nil {
		return "", err
	}
	return deliveryURL(e.ID, again.ID) + "?done=redelivered", nil
}
