package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// shownGates is how many of the newest overrides and interventions are listed.
const shownGates = 500

// gateCalls are about what holds changes back, and who lets them through. Inmanta has no such calls.
func (s *server) gateCalls(c *calls) {
	const path = "/api/v2/override"
	v2(c, http.MethodGet, path, "List the overrides, newest first, also those that are over.",
		access.SeeGates, s.listOverrides)
	v2(c, http.MethodPut, path, "Let changes through maintenance windows and freezes.", access.Override, s.override)
	done[noBody](c, http.MethodDelete, path+"/{id}", "End an override before its time.", access.Override, s.endOverride)
	v2(c, http.MethodGet, "/api/v2/interventions",
		"List who halted, resumed, paused, unpaused and let through what, newest first.",
		access.SeeGates, s.listInterventions)
	v2(c, http.MethodGet, "/api/v2/maintenance", "Show the maintenance windows, and what lets changes through them.",
		access.SeeGates, s.getMaintenance)
	v2(c, http.MethodGet, "/api/v2/resource/{rid}/why", "Show why a resource is not deployed.",
		access.SeeResources, s.explainState)
}

// actor is who asks and why; calls that Inmanta has too can leave both out.
type actor struct {
	By     string `arg:"by"`
	Reason string `arg:"reason"`
}

func (a actor) as(ctx context.Context) context.Context {
	if a.By == "" {
		a.By = "the API"
	}
	return control.As(ctx, a.By, a.Reason)
}

// byPerson is who asks and why, of calls that record it.
type byPerson struct {
	By     string `arg:"by,required"`
	Reason string `arg:"reason,required"`
}

func (p byPerson) as(ctx context.Context) context.Context { return actor(p).as(ctx) }

// decision is what somebody decided, and why.
type decision struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     timestamp `json:"at"`
}

type override struct {
	ID      uuid.UUID  `json:"id"`
	By      string     `json:"by"`
	Reason  string     `json:"reason"`
	Agents  []string   `json:"agents"`
	Created timestamp  `json:"created"`
	Until   timestamp  `json:"until"`
	Ended   *timestamp `json:"ended"`
	EndedBy *string    `json:"ended_by"`
	Lasts   bool       `json:"lasts"`
}

type intervention struct {
	At     timestamp               `json:"at"`
	By     string                  `json:"by"`
	Kind   intent.InterventionKind `json:"kind"`
	Agent  *string                 `json:"agent"`
	Reason string                  `json:"reason"`
}

type maintenance struct {
	Windows   []maintenanceWindow `json:"windows"`
	Overrides []override          `json:"overrides"`
}

type maintenanceWindow struct {
	Name      string            `json:"name"`
	Kind      intent.WindowKind `json:"kind"`
	Cron      string            `json:"cron"`
	Duration  float64           `json:"duration"`
	Timezone  string            `json:"timezone"`
	Agents    []string          `json:"agents"`
	Resources []string          `json:"resources"`
	Open      bool              `json:"open"`
	Changes   *timestamp        `json:"changes"`
}

// resourceWhy says why a resource is not deployed.
type resourceWhy struct {
	ResourceID string        `json:"resource_id"`
	Status     intent.Status `json:"status"`
	Sentence   string        `json:"sentence"`
	Reasons    []whyReason   `json:"reasons"`
}

type whyReason struct {
	Kind       string     `json:"kind"`
	Text       string     `json:"text"`
	Until      *timestamp `json:"until"`
	ResourceID *string    `json:"resource_id"`
}

type newOverride struct {
	inEnvironment
	byPerson
	Until   *string  `arg:"until"`
	Minutes int      `arg:"minutes"`
	Agents  []string `arg:"agents"`
}

type oneOverride struct {
	byActor
	ID uuid.UUID `arg:"id,required"`
}

func (s *server) listOverrides(ctx context.Context, a inEnvironment) ([]override, error) {
	list, err := s.store.Overrides(ctx, a.Env, shownGates)
	return listed(list, s.overrideOf), err
}

func (s *server) override(ctx context.Context, a newOverride) (override, error) {
	o := intent.Override{By: a.By, Reason: a.Reason, Agents: a.Agents}
	switch longest := int(intent.LongestOverride / time.Minute); {
	case a.Until != nil && a.Minutes != 0, a.Until == nil && a.Minutes == 0:
		return override{}, invalid("say until when, or for how many minutes")
	case a.Until != nil:
		until, err := store.ParseTime(*a.Until)
		if err != nil {
			return override{}, invalid("until: %v", err)
		}
		o.Until = until
	case a.Minutes < 1 || a.Minutes > longest:
		return override{}, invalid("minutes: an override lasts 1 to %d of them", longest)
	default:
		o.Until = s.now().Add(time.Duration(a.Minutes) * time.Minute)
	}
	o, err := s.control.Override(ctx, a.Env, o)
	return s.overrideOf(o), err
}

func (s *server) endOverride(ctx context.Context, a oneOverride) error {
	return s.control.EndOverride(a.as(ctx), a.Env, a.ID)
}

func (s *server) listInterventions(ctx context.Context, a inEnvironment) ([]intervention, error) {
	list, err := s.store.Interventions(ctx, a.Env, shownGates)
	return listed(list, func(x intent.Intervention) intervention {
		return intervention{At: stamp(x.At), By: x.By, Kind: x.Kind, Agent: orNull(x.Agent), Reason: x.Reason}
	}), err
}

func (s *server) getMaintenance(ctx context.Context, a inEnvironment) (maintenance, error) {
	e, err := s.environment(ctx, a.Env)
	if err != nil {
		return maintenance{}, err
	}
	windows, err := e.Windows()
	return maintenance{
		Windows: listed(windows, func(w intent.Window) maintenanceWindow {
			open, until := w.At(s.now())
			return maintenanceWindow{
				Name: w.Name, Kind: w.Kind, Cron: w.Cron, Duration: w.Duration.Seconds(), Timezone: w.Zone,
				Agents: notNil(w.Agents), Resources: notNil([]string(w.Resources)), Open: open,
				Changes: unlessZero(until),
			}
		}),
		Overrides: listed(e.Overrides, s.overrideOf),
	}, err
}

func (s *server) explainState(ctx context.Context, a oneResource) (resourceWhy, error) {
	w, err := s.control.Why(ctx, a.Env, a.ID)
	return resourceWhy{
		ResourceID: w.Resource.String(), Status: w.Status, Sentence: w.Sentence,
		Reasons: listed(w.Reasons, func(r intent.WhyReason) whyReason {
			out := whyReason{Kind: r.Kind, Text: r.Text, Until: unlessZero(r.Until)}
			if !r.Resource.IsZero() {
				out.ResourceID = new(r.Resource.String())
			}
			return out
		}),
	}, err
}

func (s *server) overrideOf(o intent.Override) override {
	return override{
		ID: o.ID, By: o.By, Reason: o.Reason, Agents: notNil(o.Agents), Created: stamp(o.Created),
		Until: stamp(o.Until), Ended: maybe(o.Ended), EndedBy: orNull(o.EndedBy), Lasts: o.Lasts(s.now()),
	}
}
