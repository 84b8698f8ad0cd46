package api

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// Versions are released once; a comparison goes from the older to the newer.
func TestVersions(t *testing.T) {
	c, r := rich(t)
	c.call("POST", "/api/v2/desiredstate/99/promote", "null", 404).is("The request version does not exist.", "message")
	c.call("POST", "/api/v2/desiredstate/7/promote", "", 409)
	w := c.send("POST", "/api/v2/desiredstate/8/promote", `{"trigger_method":"push_full_deploy"}`)
	if w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("promote: %d %s", w.Code, w.Body)
	}
	c.call("GET", "/api/v2/desiredstate/diff/7/6", "", 400)
	diff := c.get("/api/v2/desiredstate/diff/6/7").part("data")
	if n := len(diff.list()); n != 14 {
		t.Errorf("%d differences", n)
	}
	for i := range diff.list() {
		if diff.at(i, "status") == "added" {
			diff.is("False", i, "attributes", "purged", "to_value_compare")
			diff.is("", i, "attributes", "purged", "from_value_compare")
			diff.is("[\n    \"web\",\n    \"public\"\n]", i, "attributes", "tags", "to_value_compare")
		}
	}
	c.call("DELETE", "/api/v1/version/1", "", 200)
	c.call("GET", "/api/v1/version/1", "", 404)
	rows := c.get("/api/v1/version?start=1&limit=2")
	rows.is(9, "count")
	rows.is(9, "versions", 0, "version")
	if n := len(rows.list("versions")); n != 2 {
		t.Errorf("%d versions", n)
	}
	one := c.get("/api/v1/version/7?include_logs=true&log_filter=deploy&limit=2").part("resources")
	for i := range one.list() {
		if one.at(i, "resource_id") == r.FailedFile.String() && len(one.list(i, "actions")) != 2 {
			t.Errorf("the actions are %v", one.at(i, "actions"))
		}
	}
}

// The calls that every client knows do not release a version that takes away much: they answer why, and what to do. A
// person who says who and why releases it.
func TestAHeldVersionNeedsAPerson(t *testing.T) {
	c, r := rich(t)
	for _, path := range []string{"/api/v2/desiredstate/9/promote", "/api/v1/version/9"} {
		c.call("POST", path, "{}", 409).says(
			"version 9 is held", "84 of 204 resources", "ordain version confirm", "/api/v2/desiredstate/9/confirm")
	}
	hold := c.get("/api/v2/desiredstate/9/hold").part("data")
	hold.is(84, "removed")
	hold.is(true, "held")
	if n := len(hold.list("first")); n != 84 {
		t.Errorf("%d are named", n)
	}
	c.call("GET", "/api/v2/desiredstate/7/hold", "", 404)
	c.call("POST", "/api/v2/desiredstate/9/confirm", `{"by":"ida"}`, 400)
	c.call("POST", "/api/v2/desiredstate/9/confirm", `{"by":"","reason":"x"}`, 400)
	done := c.call("POST", "/api/v2/desiredstate/9/confirm", `{"by":"ida","reason":"the east site closes"}`, 200)
	done.is("active", "data", "status")
	done.is("ida", "data", "hold", "confirmed", "by")
	c.call("POST", "/api/v2/desiredstate/8/confirm", `{"by":"ida","reason":"x"}`, 409)
	if v, err := r.Store.ActiveVersion(t.Context(), r.Production.ID); err != nil || v.Number != 9 {
		t.Errorf("version %v is active, %v", v, err)
	}
}

// What is protected cannot be confirmed away.
func TestProtectionIsStrongerThanAPerson(t *testing.T) {
	c, r := rich(t)
	c.call("POST", "/api/v2/environment_settings/protected_resources", `{"value":"fs::Directory[web*]"}`, 200)
	c.call("POST", "/api/v2/desiredstate/9/confirm", `{"by":"ida","reason":"x"}`, 409).says("held")
	v, err := r.Store.Version(t.Context(), r.Production.ID, 9)
	if err != nil || v.Status != intent.VersionCandidate {
		t.Errorf("%+v %v", v, err)
	}
}

// A dry run of a commit is asked for, listed, read and cancelled; a choice of nothing, or of nonsense, is rejected.
func TestDryRunsOfCommits(t *testing.T) {
	c, r := rich(t)
	for _, bad := range []string{`{"version":7,"agents":[]}`, `{"version":7,"resource_ids":["nonsense"]}`} {
		c.call("POST", "/api/v2/dryrun", bad, 400)
	}
	const choice = `{"commit":"feature","agents":["web*"],"resource_types":["fs::File"]}`
	id := c.call("POST", "/api/v2/dryrun", choice, 200).text("data")
	list := c.get("/api/v2/dryrun")
	list.is("feature", "data", 0, "commit")
	list.is("compiling", "data", 0, "state")
	list.is(nil, "data", 0, "model")
	report := "/api/v2/dryrun-report/" + id
	c.get(report).is("web*", "data", "summary", "filter", "agents", 0)
	c.get(report).is(false, "data", "summary", "complete")
	if got := c.get("/api/v1/dryrun").list("dryruns"); len(got) != 2 {
		t.Errorf("the old list has one that has no version: %v", got)
	}
	c.call("POST", report+"/cancel", "", 200)
	c.call("POST", report+"/cancel", "", 409)
	c.call("GET", "/api/v2/dryrun-report/00000000-0000-0000-0000-000000000001", "", 404)
	whole := c.get("/api/v2/dryrun-report/" + r.DryRun.String())
	whole.is(2, "data", "summary", "counts", "unknown")
	whole.is("fs::File[web01,path=/srv/www/left.html]", "data", "no_longer_managed", 0)
}

// Pull requests are listed and shown with the text of their comment; a preview is asked for, and a commit is approved:
// the one that the pull request has, by somebody.
func TestPullRequests(t *testing.T) {
	c, r := rich(t)
	list := c.get("/api/v2/pull")
	list.is(12, "data", 0, "number")
	list.is("needs approval", "data", 0, "preview")
	list.is(nil, "data", 0, "approved")
	list.is(nil, "data", 0, "dryrun")
	one := c.get("/api/v2/pull/7")
	one.is("ida", "data", "author")
	one.is(true, "data", "trusted")
	one.is(r.Preview.String(), "data", "dryrun", "id")
	if text := one.text("data", "text"); !strings.Contains(text, "| created | changed |") {
		t.Errorf("the comment is %s", text)
	}
	for number, status := range map[string]int{"99": 404, "seven": 400, "-1": 404, "99999999999999999999": 400} {
		c.call("GET", "/api/v2/pull/"+number, "", status)
	}
	c.call("POST", "/api/v2/pull/7/preview", "", 202).is(nil, "data")
	c.call("POST", "/api/v2/pull/12/preview", "{}", 409).says("approve")
	approve := "/api/v2/pull/12/approve"
	for body, status := range map[string]int{
		``: 400, `{}`: 400, `{"commit":"` + r.Stranger + `"}`: 400, `{"by":"ida"}`: 400,
		`{"commit":"1111111111111111111111111111111111111111","by":"ida"}`: 409,
	} {
		c.call("POST", approve, body, status)
	}
	approved := c.call("POST", approve, `{"commit":"`+r.Stranger+`","by":"ida"}`, 200)
	approved.is(r.Stranger, "data", "approved", "commit")
	approved.is("ida", "data", "approved", "by")
	approved.is("running", "data", "preview")
	c.call("POST", "/api/v2/pull/12/preview", "{}", 202)
	c.tid = r.Staging.ID.String()
	c.call("GET", "/api/v2/pull/7", "", 404)
	if got := c.get("/api/v2/pull").list("data"); len(got) != 0 {
		t.Errorf("the pull requests of another environment: %v", got)
	}
	c.tid = "00000000-0000-4000-8000-000000000000"
	for _, path := range []string{"/api/v2/pull", "/api/v2/pull/7", "/api/v2/forge/outbox"} {
		c.call("GET", path, "", 404)
	}
	c.tid = ""
	c.call("GET", "/api/v2/pull", "", 400)
}
