package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// Somebody halts an environment, pauses agents and lets changes through: who, why and when are recorded, once for
// each change, and an override is part of its environment for as long as it lasts.
func TestInterventionsAreRecorded(t *testing.T) {
	s := storetest.Open(t)
	ctx := t.Context()
	env := newEnvironment(t, s)
	at := func(by string) intent.Actor {
		return intent.Actor{By: by, Reason: "the router", At: time.Now().UTC().Truncate(time.Microsecond)}
	}
	must(t, s.SetHalted(ctx, env, true, at("ann")))
	must(t, s.SetHalted(ctx, env, true, at("bob"))) // it is halted already
	e, err := s.Environment(ctx, env)
	must(t, err)
	if e.HaltedBy != "ann" || e.HaltedAt == nil {
		t.Errorf("halted by %q at %v", e.HaltedBy, e.HaltedAt)
	}
	must(t, s.SetHalted(ctx, env, false, at("bob")))
	must(t, s.SetAgentPaused(ctx, env, "web1", true, at("ann")))
	must(t, s.SetAgentPaused(ctx, env, "web1", true, at("bob")))
	page, err := s.Agents(ctx, env, intent.ListQuery{})
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].PausedBy != "ann" || page.Items[0].PausedAt == nil {
		t.Errorf("%+v", page.Items)
	}
	must(t, s.SetAgentPaused(ctx, env, "", false, at("ann")))

	now := time.Now().UTC().Truncate(time.Microsecond)
	o := intent.Override{
		ID:      uuid.New(),
		By:      "ann",
		Reason:  "the fix cannot wait",
		Agents:  []string{"web*"},
		Created: now,
		Until:   now.Add(time.Hour),
	}
	must(t, s.AddOverride(ctx, env, o))
	over := intent.Override{
		ID:      uuid.New(),
		By:      "ann",
		Reason:  "before",
		Created: now.Add(-2 * time.Hour),
		Until:   now.Add(-time.Hour),
	}
	must(t, s.AddOverride(ctx, env, over))
	e, err = s.Environment(ctx, env)
	must(t, err)
	if len(e.Overrides) != 1 || e.Overrides[0].ID != o.ID || !e.Overrides[0].Until.Equal(o.Until) ||
		e.Overrides[0].Agents[0] != "web*" {
		t.Fatalf("those that last: %+v", e.Overrides)
	}
	must(t, s.EndOverride(ctx, env, o.ID, at("bob")))
	want(t, s.EndOverride(ctx, env, o.ID, at("bob")), fault.Conflict)
	want(t, s.EndOverride(ctx, env, over.ID, at("bob")), fault.Conflict)
	want(t, s.EndOverride(ctx, env, uuid.New(), at("bob")), fault.NotFound)
	want(t, s.AddOverride(ctx, uuid.New(), o), fault.NotFound)
	if e, err = s.Environment(ctx, env); err != nil || len(e.Overrides) != 0 {
		t.Errorf("%+v %v", e.Overrides, err)
	}
	all, err := s.Overrides(ctx, env, 10)
	must(t, err)
	if len(all) != 2 || all[0].ID != o.ID || all[0].EndedBy != "bob" || all[1].ID != over.ID {
		t.Errorf("%+v", all)
	}
	var did []string
	list, err := s.Interventions(ctx, env, 100)
	must(t, err)
	for _, x := range list {
		did = append(did, x.By+" "+string(x.Kind)+" "+x.Agent)
	}
	if got, wanted := len(did), 7; got != wanted || did[0] != "bob override_end web*" || did[6] != "ann halt " ||
		did[3] != "ann unpause " {
		t.Errorf("%q", did)
	}
	// The table refuses a longer one too.
	o.ID, o.Until = uuid.New(), now.Add(25*time.Hour)
	if err := s.AddOverride(ctx, env, o); err == nil {
		t.Error("it lasts longer than a day")
	}
}
