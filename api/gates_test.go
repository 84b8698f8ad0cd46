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
	c.call(
		"POST",
		"/api/v2/environment_settings/maintenance_windows",
		fmt.Sprintf(
			`{"value": {"holidays": {"kind": "freeze", "cron": "0 %d * * *", "duration": 7200}}}`,
			now.Hour(),
		),
		200,
	)
	return c, r
}

// Somebody lets changes through a freeze: until then it is said that they are
// held; who and why is kept, also after the override was ended; a second end,
// and an end of what never was, are refused.
func TestOverrides(t *testing.T) {
	c, r := frozen(t)
	id := r.FailedFile.String()
	why := func() (kinds []string) {
		t.Helper()
		answer := c.call("GET", "/api/v2/resource/"+url.PathEscape(id)+"/why", "", 200)
		if s := dig(t, answer, "data", "sentence").(string); !strings.HasPrefix(s, "It is not deployed: ") {
			t.Errorf("%q", s)
		}
		for _, reason := range dig(t, answer, "data", "reasons").([]any) {
			kinds = append(kinds, dig(t, reason, "kind").(string))
		}
		return kinds
	}
	if kinds := why(); !slices.Contains(kinds, "freeze") {
		t.Errorf("held by %q", kinds)
	}
	state := c.call("GET", "/api/v2/maintenance", "", 200)
	if dig(t, state, "data", "windows", 0, "name") != "holidays" ||
		dig(t, state, "data", "windows", 0, "open") != true ||
		len(dig(t, state, "data", "overrides").([]any)) != 0 {
		t.Errorf("%v", state)
	}
	until := time.Now().UTC().Add(time.Hour).Format(time.RFC3339)
	made := c.call(
		"PUT",
		"/api/v2/override",
		`{"by": "ida", "reason": "the router", "until": "`+until+`", "agents": ["web*"]}`,
		200,
	)
	if dig(t, made, "data", "lasts") != true || dig(t, made, "data", "agents", 0) != "web*" ||
		dig(t, made, "data", "ended") != nil {
		t.Errorf("%v", made)
	}
	if kinds := why(); slices.Contains(kinds, "freeze") {
		t.Errorf("still held by %q", kinds)
	}
	if got := dig(t, c.call("GET", "/api/v2/maintenance", "", 200), "data", "overrides", 0, "by"); got != "ida" {
		t.Errorf("%v lets through", got)
	}
	one := "/api/v2/override/" + dig(t, made, "data", "id").(string)
	r.SetClock(r.Now().Add(time.Second))
	c.call("DELETE", one+"?by=bob", "", 200)
	if kinds := why(); !slices.Contains(kinds, "freeze") {
		t.Errorf("after the end held by %q", kinds)
	}
	c.call("DELETE", one, "", 409)
	c.call("DELETE", "/api/v2/override/nonsense", "", 400)
	list := c.call("GET", "/api/v2/override", "", 200)
	if got := dig(t, list, "data", 0); dig(t, got, "reason") != "the router" || dig(t, got, "lasts") != false ||
		dig(t, got, "ended") == nil {
		t.Errorf("%v", got)
	}
	acts := c.call("GET", "/api/v2/interventions", "", 200)
	if dig(t, acts, "data", 0, "by") != "bob" || dig(t, acts, "data", 0, "kind") != "override_end" ||
		dig(t, acts, "data", 1, "by") != "ida" || dig(t, acts, "data", 1, "kind") != "override" {
		t.Errorf("%v", acts)
	}
}

// An override that does not say who, why and for how long is refused, and lets nothing through.
func TestOverridesAreRefusedAtTheDoor(t *testing.T) {
	c, _ := frozen(t)
	for body, says := range map[string]string{
		`{"reason": "x", "minutes": 5}`:                                               "by",
		`{"by": "ida", "minutes": 5}`:                                                 "reason",
		`{"by": " ", "reason": "x", "minutes": 5}`:                                    "who",
		`{"by": "ida", "reason": "", "minutes": 5}`:                                   "why",
		`{"by": "ida", "reason": "x"}`:                                                "until when, or for how many minutes",
		`{"by": "ida", "reason": "x", "minutes": 5, "until": "2026-11-22T12:00:00Z"}`: "until when, or for how many minutes",
		`{"by": "ida", "reason": "x", "minutes": -5}`:                                 "1 to 1440",
		`{"by": "ida", "reason": "x", "minutes": 1441}`:                               "1 to 1440",
		`{"by": "ida", "reason": "x", "minutes": "a while"}`:                          "minutes",
		`{"by": "ida", "reason": "x", "until": "tomorrow"}`:                           "until",
		`{"by": "ida", "reason": "x", "minutes": 5, "agents": [""]}`:                  "agent",
		`{"by": "` + strings.Repeat("x", 201) + `", "reason": "x", "minutes": 5}`:     "200 bytes",
	} {
		if got := c.call("PUT", "/api/v2/override", body, 400)["message"].(string); !strings.Contains(got, says) {
			t.Errorf("%.80s: no %q in %s", body, says, got)
		}
	}
	if got := dig(t, c.call("GET", "/api/v2/override", "", 200), "data").([]any); len(got) != 0 {
		t.Errorf("%v", got)
	}
	c.tid = "a0000000-0000-4000-8000-000000000099"
	for _, path := range []string{"/api/v2/override", "/api/v2/interventions", "/api/v2/maintenance"} {
		c.call("GET", path, "", 404)
	}
	c.call("PUT", "/api/v2/override", `{"by": "ida", "reason": "x", "minutes": 5}`, 404)
}
