package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// A person asks why something is not deployed. Whatever holds it is told, the
// most pressing first, with when it ends by itself and what it waits for; what
// does not hold it is not told.
func TestWhyNotDeployed(t *testing.T) {
	now := at("UTC", "2026-11-22 12:00")
	later := now.Add(time.Hour)
	web := intent.ResourceID{Type: "fs::File", Agent: "web", Attribute: "path", Value: "/a"}
	db := intent.ResourceID{Type: "fs::File", Agent: "db", Attribute: "path", Value: "/b"}
	windows := map[string]any{
		"nightly": map[string]any{"kind": "window", "cron": "0 2 * * *", "duration": 3600, "agents": []any{"web"}},
		"holidays": map[string]any{
			"kind":     "freeze",
			"cron":     "0 0 20 11 *",
			"duration": 5 * 86400,
			"agents":   []any{"db"},
		},
	}
	pending := intent.ResourceState{
		ID:         web,
		Compliance: intent.HasUpdate,
		LastRun:    intent.RunNew,
		Blocked:    intent.NotBlocked,
	}
	with := func(change func(*intent.ResourceState)) intent.ResourceState { st := pending; change(&st); return st }
	for name, c := range map[string]struct {
		facts WhyFacts
		state intent.ResourceState
		// kinds in their order, and words that the sentence has and has not
		kinds     string
		says, not []string
		until     time.Time
		on        intent.ResourceID
	}{
		"it is its turn": {kinds: "queue", says: []string{"It is not deployed", "turn next"}},
		"deployed": {
			state: with(func(st *intent.ResourceState) {
				st.Compliance, st.LastRun = intent.Compliant,
					intent.RunSuccessful
			}),
			facts: WhyFacts{Environment: intent.Environment{Halted: true}, Agent: intent.Agent{Paused: true}},
			says:  []string{"It is deployed as the model wants it."}, not: []string{"halted", "paused"},
		},
		"deployed, and newer intent is held": {
			state: with(func(st *intent.ResourceState) {
				st.Compliance, st.LastRun = intent.Compliant,
					intent.RunSuccessful
			}),
			facts: WhyFacts{Held: []intent.Version{{Number: 9, Hold: &intent.Hold{Text: "it is empty"}}}},
			kinds: "held_version", says: []string{"as the active version wants it", "version 9 waits for a " +
				"confirmation (it is empty)"},
		},
		"an older version is held": {
			facts: WhyFacts{Held: []intent.Version{{Number: 3, Hold: &intent.Hold{Text: "it is empty"}}},
				Detail: intent.ResourceDetail{Resource: intent.Resource{Version: 4}}},
			kinds: "queue", not: []string{"confirmation"},
		},
		"deploying": {
			state: with(func(st *intent.ResourceState) { st.IsDeploying = true }),
			facts: WhyFacts{Environment: intent.Environment{Halted: true}}, kinds: "deploying",
			says: []string{"being deployed now"}, not: []string{"halted"},
		},
		"orphan": {
			state: with(func(st *intent.ResourceState) { st.Orphaned = 4 }),
			facts: WhyFacts{Environment: intent.Environment{Halted: true}}, kinds: "orphan",
			says: []string{"since version 5"}, not: []string{"halted"},
		},
		"halted and paused": {
			facts: WhyFacts{Environment: intent.Environment{Halted: true, HaltedBy: "ida", HaltedAt: &now},
				Agent: intent.Agent{Paused: true, PausedBy: "bob", PausedAt: &now}},
			kinds: "halted paused", says: []string{"halted by ida since 2026-11-22 12:00 UTC", "web is paused by bob"},
		},
		"outside its window": {
			facts: WhyFacts{Environment: intent.Environment{Settings: map[string]any{"maintenance_windows": windows}}},
			kinds: "window", says: []string{"waits for window `nightly`, opens 2026-11-23 02:00 UTC"}, until: at("UTC",
				"2026-11-23 02:00"),
		},
		"in a freeze": {
			state: with(func(st *intent.ResourceState) { st.ID = db }),
			facts: WhyFacts{Environment: intent.Environment{Settings: map[string]any{"maintenance_windows": windows}}},
			kinds: "freeze", says: []string{"is frozen by `holidays`"}, until: at("UTC", "2026-11-25 00:00"),
		},
		"let through": {
			facts: WhyFacts{Environment: intent.Environment{Settings: map[string]any{"maintenance_windows": windows},
				Overrides: []intent.Override{{By: "ida", Reason: "x", Agents: []string{"w*"},
					Created: now.Add(-time.Hour), Until: later}}}},
			kinds: "queue", not: []string{"window"},
		},
		"another agent is let through": {
			facts: WhyFacts{Environment: intent.Environment{Settings: map[string]any{"maintenance_windows": windows},
				Overrides: []intent.Override{{By: "ida", Reason: "x", Agents: []string{"db"},
					Created: now.Add(-time.Hour), Until: later}}}},
			kinds: "window", until: at("UTC", "2026-11-23 02:00"),
		},
		"the override is over": {
			facts: WhyFacts{Environment: intent.Environment{Settings: map[string]any{"maintenance_windows": windows},
				Overrides: []intent.Override{{By: "ida", Reason: "x", Created: now.Add(-2 * time.Hour), Until: now}}}},
			kinds: "window", until: at("UTC", "2026-11-23 02:00"),
		},
		"its target is away": {
			facts: WhyFacts{Agent: intent.Agent{Breaker: intent.Breaker{Failures: 7, Since: &now, ProbeAt: &later}}},
			kinds: "breaker", says: []string{"web could not be reached 7 " +
				"times", "tries again at 2026-11-22 13:00 UTC"}, until: later,
		},
		"undefined": {
			state: with(func(st *intent.ResourceState) {
				st.Compliance, st.Blocked = intent.Undefined,
					intent.IsBlocked
			}),
			facts: WhyFacts{Detail: intent.ResourceDetail{Resource: intent.Resource{Undefined: []string{"address",
				"port"}}}},
			kinds: "undefined", says: []string{"does not know a value yet: address, port"},
		},
		"behind something undefined": {
			state: with(func(st *intent.ResourceState) { st.Blocked = intent.IsBlocked }), facts: WhyFacts{Behind: db},
			kinds: "undefined", says: []string{"it needs " + db.String() + ", of which"}, on: db,
		},
		"behind something undefined far away": {
			state: with(func(st *intent.ResourceState) { st.Blocked = intent.IsBlocked }), kinds: "undefined",
			says: []string{"needs something that is undefined"},
		},
		"parked": {
			state: with(func(st *intent.ResourceState) {
				st.LastRun, st.Parked, st.Attempts = intent.RunFailed, intent.ParkedAttempts, 20
			}),
			kinds: "parked", says: []string{"it failed 20 times"}, not: []string{"tried again"},
		},
		"contested": {
			state: with(func(st *intent.ResourceState) {
				st.Compliance, st.LastRun, st.Parked = intent.NonCompliant, intent.RunSuccessful, intent.ParkedContested
			}),
			kinds: "parked", says: []string{"It is not deployed", "something else keeps changing it back"},
		},
		"protected": {
			facts: WhyFacts{
				Environment: intent.Environment{Settings: map[string]any{"protected_resources": "fs::File[web,*"}},
				Detail:      intent.ResourceDetail{Resource: intent.Resource{Purged: true}},
			},
			kinds: "protected", says: []string{"protected_resources protects it"},
		},
		"another is protected": {
			facts: WhyFacts{
				Environment: intent.Environment{Settings: map[string]any{"protected_resources": "fs::File[db,*"}},
				Detail:      intent.ResourceDetail{Resource: intent.Resource{Purged: true}},
			},
			kinds: "queue", not: []string{"protect"},
		},
		"what it needs": {
			facts: WhyFacts{Needs: []intent.ResourceState{
				{ID: web, LastRun: intent.RunFailed, RetryAt: &later}, {ID: db, LastRun: intent.RunFailed,
					Parked: intent.ParkedAttempts},
			}},
			kinds: "requires requires", says: []string{"it waits for " + db.String() + ", which is " +
				"parked", web.String() + ", which failed and is tried again at 2026-11-22 13:00 UTC"}, on: db,
		},
		"only reported": {
			state: with(func(st *intent.ResourceState) {
				st.Compliance, st.LastRun = intent.NonCompliant,
					intent.RunSuccessful
			}),
			kinds: "reported", says: []string{"only report that"},
		},
		"failed": {
			state: with(func(st *intent.ResourceState) {
				st.LastRun, st.Attempts, st.RetryAt = intent.RunFailed, 1,
					&later
			}),
			kinds: "retry", says: []string{"it failed once, and is tried again at 2026-11-22 13:00 UTC"}, until: later,
		},
		"everything at once": {
			state: with(func(st *intent.ResourceState) { st.LastRun, st.Attempts = intent.RunFailed, 3 }),
			facts: WhyFacts{Environment: intent.Environment{Halted: true,
				Settings: map[string]any{"maintenance_windows": windows}},
				Held:  []intent.Version{{Number: 9, Hold: &intent.Hold{Text: "it is empty"}}},
				Needs: []intent.ResourceState{{ID: db}}},
			kinds: "held_version halted window requires retry", says: []string{"it failed 3 " +
				"times", "is to be deployed first"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.facts
			f.Now, f.Detail.State = now, c.state
			if c.state.ID.IsZero() {
				f.Detail.State = pending
			}
			w := f.Answer()
			var kinds []string
			for _, r := range w.Reasons {
				kinds = append(kinds, r.Kind)
				if r.Text == "" ||
					w.Status != intent.StatusDeployed && w.Status != intent.StatusDeploying &&
						!strings.Contains(w.Sentence, r.Text) {
					t.Errorf("%q does not tell %q", w.Sentence, r.Text)
				}
			}
			if got := strings.Join(kinds, " "); got != c.kinds {
				t.Errorf("%q, want %q: %s", got, c.kinds, w.Sentence)
			}
			for _, want := range c.says {
				if !strings.Contains(w.Sentence, want) {
					t.Errorf("no %q in %s", want, w.Sentence)
				}
			}
			for _, bad := range c.not {
				if strings.Contains(w.Sentence, bad) {
					t.Errorf("%q in %s", bad, w.Sentence)
				}
			}
			if !c.until.IsZero() &&
				!slices.ContainsFunc(w.Reasons, func(r intent.WhyReason) bool { return r.Until.Equal(c.until) }) {
				t.Errorf("no end at %s: %+v", c.until, w.Reasons)
			}
			if !c.on.IsZero() && w.Reasons[0].Resource != c.on {
				t.Errorf("it waits for %s", w.Reasons[0].Resource)
			}
			if w.Resource != f.Detail.State.ID || w.Status != f.Detail.State.Status() {
				t.Errorf("%s %s", w.Resource, w.Status)
			}
		})
	}
}

// at is the instant that a clock on a wall of a zone shows.
func at(zone, clock string) time.Time {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	t, err := time.ParseInLocation("2006-01-02 15:04", clock, loc)
	if err != nil {
		panic(err)
	}
	return t
}
