package console

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
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
	Any      bool   // a filter is set
	Settings string // the address of the settings
}

type deliveryRow struct {
	State    state
	URL      string
	Received time.Time
	Forge    string
	What     string
	Commit   string
	Reason   string
	Run      string // the address of the run that it started
	Pull     string // the address of the pull request that it is about
}

// deliveryPage shows one webhook.
type deliveryPage struct {
	frame
	Card deliveryCard
}

type deliveryCard struct {
	deliveryRow
	Key      string
	Sender   string
	Subject  string
	Size     int
	Module   string
	Handled  *time.Time
	ReplayOf string // the address of the webhook that it repeats
	Event    string // all that was read from it, as JSON
	Again    string // the address that delivers it again; empty when that is not possible
}

var deliveryStates = map[intent.OutcomeState]state{
	intent.OutcomeWaiting: waiting, intent.OutcomeStarted: {"intended", "started"},
	intent.OutcomeSkipped: {"none", "nothing to do"}, intent.OutcomeFailed: failed,
	intent.OutcomeRefused: {"failed", "refused"},
}

// outcomes are the outcomes of webhooks in the order in which the filter offers them.
var outcomes = []intent.OutcomeState{
	intent.OutcomeStarted, intent.OutcomeSkipped, intent.OutcomeWaiting, intent.OutcomeFailed, intent.OutcomeRefused,
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
	l := listingOf(r, store.DeliveryList, deliveriesURL(e.ID))
	chosen, ref := r.URL.Query().Get("state"), strings.TrimSpace(r.URL.Query().Get("ref"))
	if chosen != "" {
		l.filter("state", chosen, "state", chosen)
	}
	if ref != "" {
		l.filter("ref", ref, "ref", ref)
	}
	p := deliveriesPage{frame: f, Ref: ref, Any: l.filtered(), Choices: []choice{{"", "All", chosen == ""}}}
	for _, s := range outcomes {
		p.Choices = append(p.Choices, choice{string(s), deliveryStates[s].Word, chosen == string(s)})
	}
	page, err := c.store.Deliveries(r.Context(), e.ID, l.query)
	if err != nil {
		return view{}, err
	}
	p.List = deliveryTable{Any: p.Any, Settings: envURL(e.ID) + "/settings"}
	for _, d := range page.Items {
		p.List.Rows = append(p.List.Rows, deliveryRowOf(e.ID, d))
	}
	p.List.Pager = pagerOf(l, page, func(d intent.Delivery) (string, string) {
		return stamp(d.Received), d.ID.String()
	})
	return view{template: "deliveries", data: p, fragments: []fragment{{"deliverylist", "deliverylist", p.List}}}, nil
}

func deliveryRowOf(env uuid.UUID, d intent.Delivery) deliveryRow {
	o := d.Outcomes[0]
	row := deliveryRow{
		State: deliveryStates[o.State], URL: deliveryURL(env, d.ID), Received: d.Received, Forge: d.Forge,
		What: whatOf(d.Event), Commit: short(d.Event.Commit), Reason: o.Reason,
	}
	if p := d.Event.Pull; p != nil && o.State == intent.OutcomeStarted {
		row.Pull = pullURL(env, p.Number)
	}
	if o.Compile != nil {
		row.Run = runURL(env, *o.Compile)
	}
	return row
}

// whatOf says in a few words what a webhook announces.
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
	f, err := c.frame(r, "Webhook", "deliveries",
		crumb{Text: "Webhooks", URL: deliveriesURL(e.ID)}, crumb{Text: d.ID.String()[:8]})
	if err != nil {
		return view{}, err
	}
	event, err := json.MarshalIndent(d.Event, "", "  ")
	if err != nil {
		return view{}, err
	}
	o := d.Outcomes[0]
	card := deliveryCard{
		deliveryRow: deliveryRowOf(e.ID, d), Key: d.Key, Sender: d.Event.Sender, Subject: d.Event.Subject,
		Size: int(d.Size), Module: o.Module, Handled: o.Handled, Event: string(event),
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

// doRedeliver handles a webhook again, as if the forge had sent it once more.
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
