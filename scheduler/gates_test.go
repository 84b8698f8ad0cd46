package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/intent"
)

func rulesOf(t testing.TB, windows, limits string) (r Rules) {
	t.Helper()
	e := intent.Environment{Settings: map[string]any{"maintenance_windows": windows, "agent_limits": limits}}
	for name, text := range e.Settings {
		def, _ := intent.SettingNamed(name)
		if _, err := def.Convert(text); err != nil {
			t.Fatal(err)
		}
	}
	r.Windows, _ = e.Windows()
	r.Agents, _ = e.AgentLimits()
	return r
}

// It is noon, and web deploys at night only. A new version changes something on web and on db: db is deployed at
// once, web waits and says until when. At two o'clock it starts; what is still running when the window closes is left
// to end, and what waited for that waits for the next night. Repairs and retries wait too.
func TestWindowHoldsChanges(t *testing.T) {
	w := newWorld(t, Limits{RetryBase: time.Minute}, "web/a 1", "web/b 1 web/a", "db/c 1")
	w.endAll()
	w.said("start db/c", "start web/a", "start web/b")
	w.take(
		w.s.SetRules(rulesOf(t, `{"nightly": {"cron": "0 2 * * *", "duration": "1h", "agents": ["web*"]}}`, ""), w.now),
	)
	w.s.SetTimers(everyTenMinutes(), w.now)
	w.release("web/a 2", "web/b 2 web/a", "db/c 2")
	w.said("start db/c")
	wishes := w.s.Wishes(0, w.now)
	if len(wishes) != 2 || wishes[0].Gate.String() != "waits for window `nightly`, opens 2026-11-22 02:00 UTC" {
		t.Fatalf("%+v", wishes)
	}
	w.end("db/c")
	w.take(w.s.Trigger(UserRepair, Filter{Agents: []string{"web"}}, w.now)) // a person waits as well
	w.said()
	w.tick(24 * time.Hour)
	if want := time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC); !w.now.Equal(want) {
		t.Fatalf("it starts at %s", w.now)
	}
	w.said("start web/a")
	w.now = w.now.Add(time.Hour) // it took until the window closed
	w.end("web/a")
	w.take(w.s.Tick(w.now))
	w.said()
	w.tick(48 * time.Hour)
	if want := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC); !w.now.Equal(want) {
		t.Fatalf("it goes on at %s", w.now)
	}
	w.said("start web/b")
}

// During a freeze looks go on, and nothing is changed; an override lets changes through, for web alone, until it is
// over.
func TestFreezeAndOverride(t *testing.T) {
	w := newWorld(t, Limits{}, "web/a 1", "web/b 1", "db/c 1")
	w.endAll()
	w.said("start db/c", "start web/a", "start web/b")
	rules := rulesOf(t, `{"sale": {"kind": "freeze", "cron": "0 12 21 11 *", "duration": "48h"}}`, "")
	w.take(w.s.SetRules(rules, w.now))
	w.take(w.s.SetPolicy(Policy{ReportDrift: true}, w.now))
	w.take(w.s.Trigger(RepairTimer, Filter{Agents: []string{"db"}}, w.now))
	w.said("look at db/c")
	w.end("db/c")
	w.release("web/a 2", "web/b 2", "db/c 2")
	w.said()
	rules.Overrides = []intent.Override{
		{By: "ann", Agents: []string{"web"}, Created: w.now, Until: w.now.Add(time.Hour)},
	}
	w.take(w.s.SetRules(rules, w.now))
	w.said("start web/a")
	w.now = w.now.Add(time.Hour)
	w.end("web/a") // the override is over by now
	w.said()
	w.tick(72 * time.Hour)
	if want := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC); !w.now.Equal(want) {
		t.Fatalf("it thaws at %s", w.now)
	}
	w.said("start db/c", "start web/b")
}

// Some resources of an agent may be held while others are not: the others overtake them.
func TestWindowOfResources(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "x/c 1 x/a")
	w.endAll()
	w.said("start x/a", "start x/b", "start x/c")
	w.take(
		w.s.SetRules(
			rulesOf(t, `{"f": {"kind": "freeze", "cron": "0 0 * * *", "duration": "20h", "resources": ["*name=a]"]}}`,
				""),
			w.now,
		),
	)
	w.release("x/a 2", "x/b 2", "x/c 2 x/a")
	w.said("start x/b")
	w.end("x/b")
	w.tick(24 * time.Hour)
	w.said("start x/a")
}

// An agent that may do three things at once does, in the order of requirements; never the same resource twice at a
// time.
func TestSideBySide(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "x/c 1 x/a", "x/d 1", "y/e 1", "y/f 1")
	w.said("start x/a", "start y/e")
	w.take(w.s.SetRules(rulesOf(t, "", `{"x": {"concurrency": 3}}`), w.now))
	w.said("start x/b", "start x/d")
	w.take(w.s.Trigger(UserRepair, Filter{Resources: []intent.ResourceID{rid("x/a")}}, w.now))
	w.said()
	w.end("x/a")
	w.said("start x/c") // more urgent than the repair
	w.end("x/b")
	w.said("start x/a")
	w.take(w.s.SetRules(rulesOf(t, "", ""), w.now)) // one at a time again, once those that run have ended
	w.endAll()
}

// A slow target gets ten seconds between two starts, across a restart too.
func TestGap(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "x/c 1")
	rules := rulesOf(t, "", `{"*": {"min_gap": 10}}`)
	w.take(w.s.SetRules(rules, w.now))
	w.said("start x/a")
	first := w.now
	w.now = w.now.Add(time.Second)
	w.end("x/a")
	w.said()
	w.tick(time.Minute)
	w.said("start x/b")
	if w.now.Sub(first) != 10*time.Second {
		t.Fatalf("the second starts after %s", w.now.Sub(first))
	}
	w.end("x/b")
	second := w.now
	w.restart("x/a 1", "x/b 1", "x/c 1")
	w.take(w.s.Tick(w.now))
	w.said()
	w.tick(time.Minute)
	w.said("start x/c")
	if w.now.Sub(second) < 9*time.Second {
		t.Fatalf("after a restart the next starts after %s", w.now.Sub(second))
	}
}

// An agent has its own timers: it is repaired each hour while the others are
// each day, and its retries keep to its own cron expression.
func TestOwnTimers(t *testing.T) {
	w := newWorld(t, Limits{RetryBase: time.Minute}, "x/a 1", "y/b 1")
	w.endAll()
	w.said("start x/a", "start y/b")
	w.s.SetTimers(Timers{Deploy: cron.Every(10 * time.Minute), Repair: cron.Every(24 * time.Hour)}, w.now)
	w.take(w.s.SetRules(rulesOf(t, "", `{"x": {"repair_interval": 3600, "deploy_interval": "30 * * * *"}}`), w.now))
	begin := w.now
	for range 23 {
		w.tick(2 * time.Hour)
		w.said("start x/a")
		w.end("x/a")
	}
	if w.now.Sub(begin).Truncate(time.Minute) != 23*time.Hour {
		t.Fatalf("23 repairs took %s", w.now.Sub(begin))
	}
	w.tick(2 * time.Hour)
	w.said("start x/a", "start y/b")
	w.end("x/a=failed", "y/b=failed")
	failed := w.now
	w.tick(20 * time.Minute)
	w.said("start y/b") // by its time
	w.end("y/b")
	w.tick(time.Hour)
	w.said("start x/a")
	if w.now.Minute() != 30 {
		t.Fatalf("x is tried again %s after its failure, at %s", w.now.Sub(failed), w.now)
	}
}

// A thousand resources fail, or are repaired, in an environment with any limits. One change waits for no more than
// what is already running on its agent, and for one running task anywhere when the environment's limit is reached.
func TestAChangeWaitsForOneTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agents := rapid.IntRange(1, 8).Draw(t, "agents")
		limit := rapid.SampledFrom([]int{0, 2, 4, 16}).Draw(t, "limit")
		failing := rapid.Bool().Draw(t, "failing")
		var lines []string
		for i := range 1000 {
			lines = append(lines, fmt.Sprintf("a%d/%04d 1", i%agents, i))
		}
		s, err := New(Snapshot{Now: t0}, Limits{Concurrency: limit, RetryBase: time.Second, RetryCap: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		s.SetTimers(Timers{Deploy: cron.Every(time.Minute), Repair: cron.Every(time.Hour)}, t0)
		now, version := t0, 1
		var running []Start
		ends := func(at int, status intent.Status) (out []Command) {
			c := running[at]
			running = append(running[:at], running[at+1:]...)
			return s.TaskDone(Outcome{ID: c.Resource.ID, Version: c.Resource.Version, Status: status}, now)
		}
		take := func(out []Command) {
			for _, c := range out {
				if c, ok := c.(Start); ok {
					running = append(running, c)
				}
			}
		}
		out, err := s.NewVersion(version, model(version, lines), nil, now)
		if err != nil {
			t.Fatal(err)
		}
		for take(out); len(running) > 0; {
			status := intent.StatusDeployed
			if failing {
				status = intent.StatusFailed
			}
			take(ends(0, status))
		}
		now = now.Add(2 * time.Hour) // all are due now
		take(s.Tick(now))
		for range rapid.IntRange(0, 50).Draw(t, "before") {
			take(ends(0, intent.StatusDeployed))
		}
		if len(running) == 0 {
			t.Fatal("nothing is under way")
		}
		changed := rapid.IntRange(0, 999).Draw(t, "changed")
		lines[changed] = strings.TrimSuffix(lines[changed], "1") + "2"
		id := rid(strings.Fields(lines[changed])[0])
		version++
		out, err = s.NewVersion(version, model(version, lines), nil, now)
		if err != nil {
			t.Fatal(err)
		}
		beside := 0 // what ran on its agent
		for _, c := range running {
			if c.Resource.ID.Agent == id.Agent {
				beside++
			}
		}
		take(out)
		started := func() bool {
			for _, c := range running {
				if c.Resource.ID == id && c.Resource.Version == version {
					return true
				}
			}
			return false
		}
		for waited := 0; !started(); waited++ {
			if waited >= 1 || beside == 0 {
				t.Fatalf("%s waits for more than the one task on its agent (%d ran there)", id, beside)
			}
			for i, c := range running {
				if c.Resource.ID.Agent == id.Agent {
					take(ends(i, intent.StatusFailed))
					break
				}
			}
		}
	})
}
