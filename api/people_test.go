package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/server/servertest"
)

// frozen returns a client of an environment that freezes all changes now.
func frozen(t *testing.T) (c *client, r *servertest.Rich) {
	t.Helper()
	c, r = rich(t)
	now := time.Now().UTC() // by the clock of the database, which says whether an override is over
	r.SetClock(now)
	window := `{"value": {"holidays": {"kind": "freeze", "cron": "0 %d * * *", "duration": 7200}}}`
	c.call("POST", "/api/v2/environment_settings/maintenance_windows", fmt.Sprintf(window, now.Hour()), 200)
	return c, r
}

// Somebody lets changes through a freeze. Until then the answer to why is that they are held; who did it and why is
// kept, also after the override ended. A second end, and the end of what never was, are rejected.
func TestOverrides(t *testing.T) {
	c, r := frozen(t)
	why := func() (kinds []string) {
		t.Helper()
		answer := c.get("/api/v2/resource/" + url.PathEscape(r.FailedFile.String()) + "/why").part("data")
		if s := answer.text("sentence"); !strings.HasPrefix(s, "It is not deployed: ") {
			t.Errorf("%q", s)
		}
		for i := range answer.list("reasons") {
			kinds = append(kinds, answer.text("reasons", i, "kind"))
		}
		return kinds
	}
	if kinds := why(); !slices.Contains(kinds, "freeze") {
		t.Errorf("held by %q", kinds)
	}
	state := c.get("/api/v2/maintenance").part("data")
	state.is("holidays", "windows", 0, "name")
	state.is(true, "windows", 0, "open")
	if n := len(state.list("overrides")); n != 0 {
		t.Errorf("%d overrides", n)
	}
	until := time.Now().UTC().Add(time.Hour).Format(time.RFC3339)
	made := c.call("PUT", "/api/v2/override",
		`{"by": "ida", "reason": "the router", "until": "`+until+`", "agents": ["web*"]}`, 200).part("data")
	made.is(true, "lasts")
	made.is("web*", "agents", 0)
	made.is(nil, "ended")
	if kinds := why(); slices.Contains(kinds, "freeze") {
		t.Errorf("still held by %q", kinds)
	}
	c.get("/api/v2/maintenance").is("ida", "data", "overrides", 0, "by")
	one := "/api/v2/override/" + made.text("id")
	r.SetClock(r.Now().Add(time.Second))
	c.call("DELETE", one+"?by=bob", "", 200)
	if kinds := why(); !slices.Contains(kinds, "freeze") {
		t.Errorf("after the end held by %q", kinds)
	}
	c.call("DELETE", one, "", 409)
	c.call("DELETE", "/api/v2/override/nonsense", "", 400)
	over := c.get("/api/v2/override").part("data", 0)
	over.is("the router", "reason")
	over.is(false, "lasts")
	over.is("bob", "ended_by")
	acts := c.get("/api/v2/interventions").part("data")
	acts.is("bob", 0, "by")
	acts.is("override_end", 0, "kind")
	acts.is("ida", 1, "by")
	acts.is("override", 1, "kind")
}

// An override that does not say who, why and for how long is rejected, and lets nothing through.
func TestOverridesAreRejectedAtTheDoor(t *testing.T) {
	c, _ := frozen(t)
	const both = "until when, or for how many minutes"
	for body, says := range map[string]string{
		`{"reason": "x", "minutes": 5}`:                              "by",
		`{"by": "ida", "minutes": 5}`:                                "reason",
		`{"by": " ", "reason": "x", "minutes": 5}`:                   "who",
		`{"by": "ida", "reason": "", "minutes": 5}`:                  "why",
		`{"by": "ida", "reason": "x"}`:                               both,
		`{"by": "ida", "reason": "x", "minutes": 5, "until": "now"}`: both,
		`{"by": "ida", "reason": "x", "minutes": -5}`:                "1 to 1440",
		`{"by": "ida", "reason": "x", "minutes": 1441}`:              "1 to 1440",
		`{"by": "ida", "reason": "x", "minutes": "a while"}`:         "minutes",
		`{"by": "ida", "reason": "x", "until": "tomorrow"}`:          "until",
		`{"by": "ida", "reason": "x", "minutes": 5, "agents": [""]}`: "agent",

		`{"by": "` + strings.Repeat("x", 201) + `", "reason": "x", "minutes": 5}`: "200 bytes",
	} {
		c.call("PUT", "/api/v2/override", body, 400).says(says)
	}
	if got := c.get("/api/v2/override").list("data"); len(got) != 0 {
		t.Errorf("%v", got)
	}
	c.tid = "a0000000-0000-4000-8000-000000000099"
	for _, path := range []string{"/api/v2/override", "/api/v2/interventions", "/api/v2/maintenance"} {
		c.call("GET", path, "", 404)
	}
	c.call("PUT", "/api/v2/override", `{"by": "ida", "reason": "x", "minutes": 5}`, 404)
}

// Notifications are listed by page and filter, and marked as read and cleared.
func TestNotifications(t *testing.T) {
	c, r := rich(t)
	titles := func(query string) (out []string) {
		t.Helper()
		list := c.get("/api/v2/notification" + query).part("data")
		for i := range list.list() {
			out = append(out, list.text(i, "title"))
		}
		return out
	}
	for query, want := range map[string][]string{
		"": {
			"Version 9 is held", "Dry run of version 7 ready", "Compilation failed",
			"Dry run of " + r.PullHead + " ready", "The forge was not informed", "A commit waits for approval",
			"Agent web06 cannot reach its target",
		},
		"?sort=created.asc&limit=1": {"Agent web06 cannot reach its target"},
		"?filter.read=true": { // dry runs ring no bell
			"Dry run of version 7 ready", "Dry run of " + r.PullHead + " ready", "Agent web06 cannot reach its target",
		},
		"?filter.title=HELD":       {"Version 9 is held"},
		"?filter.message=errors":   {"Compilation failed"},
		"?filter.severity=warning": {"Version 9 is held", "The forge was not informed"},
		"?filter.cleared=true":     nil,
	} {
		if got := titles(query); !slices.Equal(got, want) {
			t.Errorf("%q lists %q", query, got)
		}
	}
	one := "/api/v2/notification/" + r.Notices[0].ID.String()
	read := c.call("PATCH", one, `{"read":true}`, 200)
	read.is(true, "data", "read")
	read.is(false, "data", "cleared")
	cleared := c.call("PATCH", one, `{"cleared":true}`, 200)
	cleared.is(true, "data", "read")
	cleared.is(true, "data", "cleared")
	c.call("PATCH", one, `{}`, 400)
	c.call("PATCH", one, `{"read":"perhaps"}`, 400)
	const unknown = "/api/v2/notification/a0000000-0000-4000-8000-000000000099"
	c.call("GET", unknown, "", 404)
	c.call("PATCH", unknown, `{"read":true}`, 404)
	if got := titles("?filter.cleared=false"); len(got) != 6 {
		t.Errorf("%q", got)
	}
}

// Webhooks are listed, filtered, shown with what they said, and sent again; one that was refused is not.
func TestDeliveries(t *testing.T) {
	c, r := rich(t)
	const path = "/api/v2/deliveries"
	for filter, want := range map[string]int{
		"": 4, "filter.state=started": 1, "filter.state=refused": 1, "filter.event=pull": 1, "filter.ref=main": 1,
		"filter.forge=gitlab": 0,
	} {
		if got := c.total(path + "?" + filter); got != want {
			t.Errorf("%q has %d, want %d", filter, got, want)
		}
	}
	c.call("GET", path+"/nonsense", "", 400)
	c.call("GET", path+"/00000000-0000-4000-8000-000000000000", "", 404)
	one := path + "/" + r.Delivery.String()
	c.get(one).is("started", "data", "state")
	c.get(one).is(r.Good.String(), "data", "compile")
	c.get(one).is("push", "data", "told", "kind")
	again := c.call("POST", one+"/redeliver", "{}", 200)
	again.is(r.Delivery.String(), "data", "replay_of")
	again.is("waiting", "data", "state")
	refused := c.get(path+"?filter.state=refused").text("data", 0, "id")
	c.call("POST", path+"/"+refused+"/redeliver", "{}", 409)
	c.tid = r.Staging.ID.String()
	c.call("GET", one, "", 404)
}

// What a forge is to hear is listed, and what is dead gets another chance, once.
func TestForgeOutbox(t *testing.T) {
	c, _ := rich(t)
	const path = "/api/v2/forge/outbox"
	list := c.get(path).part("data")
	list.is("waiting", 0, "state")
	list.is(nil, 0, "done")
	list.is("dead", 1, "state")
	list.is(1, 1, "attempts")
	if problem := list.text(1, "problem"); !strings.Contains(problem, "401") {
		t.Errorf("the problem is %s", problem)
	}
	c.call("POST", path+"/1/retry", "{}", 200)
	c.get(path).is("waiting", "data", 1, "state")
	c.call("POST", path+"/1/retry", "{}", 409)
	c.call("POST", path+"/x/retry", "{}", 400)
}

// A commit that rewrites history is accepted; a version is rolled back, which blocks its commit until somebody unblocks
// it; a promotion is approved, paused and forced.
func TestCommits(t *testing.T) {
	c, r := rich(t)
	const who = `"by":"ida","reason":"it has to be"`
	rewritten := strings.Repeat("a", 40)
	c.get("/api/v2/git").is("rewritten", "data", "state", "kind")
	c.call("POST", "/api/v2/git/accept", `{"commit":"`+rewritten+`"}`, 400)
	c.call("POST", "/api/v2/git/accept", `{"commit":"`+rewritten+`",`+who+`}`, 200).is(rewritten, "data", "commit")
	c.get("/api/v2/git/blocks").is(r.Blocked, "data", 0, "commit")
	c.call("POST", "/api/v2/git/unblock", `{"commit":"`+r.Blocked+`",`+who+`}`, 200).is(r.Blocked, "data", "commit")
	c.call("POST", "/api/v2/git/unblock", `{"commit":"`+r.Blocked+`",`+who+`}`, 409)
	back := c.call("POST", "/api/v2/rollback", `{"version":6,`+who+`}`, 200)
	back.is(7, "data", "rolled_back", "from")
	back.is(6, "data", "rolled_back", "to")
	back.is("ida", "data", "rolled_back", "by")
	c.call("POST", "/api/v2/rollback", `{"version":-6,`+who+`}`, 400)

	const promotions = "/api/v2/git/promotions"
	waiting := `{"commit":"` + r.Waiting.Commit + `",` + who + `}`
	c.call("POST", promotions+"/approve", `{"commit":"`+rewritten+`",`+who+`}`, 409)
	c.call("POST", promotions+"/approve", waiting, 200).is("ida", "data", "promotions", 0, "approved", "by")
	c.call("POST", promotions+"/pause", `{`+who+`}`, 200).is("ida", "data", "paused", "by")
	c.call("POST", promotions+"/resume", `{`+who+`}`, 200).is(nil, "data", "paused")
	c.call("POST", "/api/v2/promote", waiting, 200).is("promoted", "data", "state")
	c.call("POST", "/api/v2/promote", waiting, 409)
}
