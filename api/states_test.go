package api

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// What is parked is listed and freed: one by name, then all that are left. A
// name that is no id, or of no resource, frees nothing, nor does an empty list.
func TestParked(t *testing.T) {
	c, r := rich(t)
	parked := func() any {
		return dig(t, c.call("GET", "/api/v2/resource?filter.parked=true", "", 200), "metadata", "total")
	}
	if got := dig(t, c.call("GET", "/api/v2/resource?filter.parked=true&sort=resource_id.asc", "", 200), "data", 0, "parked"); got != "contested" &&
		got != "attempts" {
		t.Errorf("%v", got)
	}
	c.call("POST", "/api/v2/unpark", `{"resource_ids": ["`+r.ParkedFile.String()+`", "nonsense"]}`, 400)
	c.call(
		"POST",
		"/api/v2/unpark",
		`{"resource_ids": ["`+r.ParkedFile.String()+`", "fs::File[web01,path=/nowhere]"]}`,
		404,
	)
	c.call("POST", "/api/v2/unpark", `{"resource_ids": "all"}`, 400)
	c.call("POST", "/api/v2/unpark", `{"resources": []}`, 400)
	if got := dig(t, c.call("POST", "/api/v2/unpark", `{"resource_ids": []}`, 200), "data").([]any); len(got) != 0 ||
		parked() != 2.0 {
		t.Errorf("freed %v", got)
	}
	if got := dig(t, c.call("POST", "/api/v2/unpark", `{"resource_ids": ["`+r.ParkedFile.String()+`"]}`, 200), "data", 0); got != r.ParkedFile.String() ||
		parked() != 1.0 {
		t.Errorf("freed %v", got)
	}
	if got := dig(t, c.call("POST", "/api/v2/unpark", `{}`, 200), "data", 0); got != r.ContestedFile.String() ||
		parked() != 0.0 {
		t.Errorf("freed %v", got)
	}
	c.tid = strings.Repeat("0", 8) + "-0000-4000-8000-000000000000"
	c.call("POST", "/api/v2/unpark", `{}`, 404)
	c.call("GET", "/api/v2/drift", "", 404)
}

// Drift is filtered, paged and refused like any other list.
func TestDriftList(t *testing.T) {
	c, r := rich(t)
	for filter, want := range map[string]float64{
		"": 3, "filter.open=true": 1, "filter.ending=healed": 1, "filter.attribute=mode": 2, "filter.resource_id=site-186": 2,
		"filter.resource=" + strings.NewReplacer("[", "%5B", "]", "%5D", ",", "%2C", "=", "%3D", "/", "%2F").Replace(r.ContestedFile.String()): 1,
	} {
		if got := dig(t, c.call("GET", "/api/v2/drift?"+filter, "", 200), "metadata", "total"); got != want {
			t.Errorf("%q: %v, want %v", filter, got, want)
		}
	}
	page := c.call("GET", "/api/v2/drift?limit=1&sort=resource_id.asc", "", 200)
	seen := 0
	for {
		seen += len(dig(t, page, "data").([]any))
		next, more := dig(t, page, "links").(map[string]any)["next"]
		if !more {
			break
		}
		page = c.call("GET", next.(string), "", 200)
	}
	if seen != 3 {
		t.Errorf("the pages have %d", seen)
	}
	for _, bad := range []string{"sort=found.asc", "filter.found=x", "filter.open=maybe", "filter.since=yesterday", "first_id=x&start=2026-11-21"} {
		c.call("GET", "/api/v2/drift?"+bad, "", 400)
	}
	if got := dig(t, c.call("GET", "/api/v2/agents?filter.name=web06", "", 200), "data", 0, "breaker", "state"); got != "open" {
		t.Errorf("the breaker is %v", got)
	}
	if _, ok := intent.SettingNamed("drift_policy"); !ok {
		t.Fatal("no such setting")
	}
	c.call("POST", "/api/v2/environment_settings/drift_policy", `{"value": "ignore"}`, 500)
	c.call("POST", "/api/v2/environment_settings/breaker_pause", `{"value": 3601}`, 500)
	c.call("POST", "/api/v2/environment_settings/drift_policy", `{"value": "report"}`, 200)
}
