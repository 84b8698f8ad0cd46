package api

import (
	"strings"
	"testing"
)

// Pull requests are listed and shown with what their comment says; previews are
// asked for, and a commit is approved: the one that it has, by somebody.
func TestPullRequests(t *testing.T) {
	c, r := rich(t)
	list := c.call("GET", "/api/v2/pull", "", 200)
	if dig(t, list, "data", 0, "number") != 12.0 || dig(t, list, "data", 0, "preview") != "needs approval" ||
		dig(t, list, "data", 0, "approved") != nil ||
		dig(t, list, "data", 0, "dryrun") != nil {
		t.Errorf("%v", list)
	}
	one := c.call("GET", "/api/v2/pull/7", "", 200)
	text, _ := dig(t, one, "data", "text").(string)
	if dig(t, one, "data", "author") != "ida" || dig(t, one, "data", "trusted") != true ||
		dig(t, one, "data", "dryrun", "id") != r.Preview.String() ||
		!strings.Contains(text, "| created | changed |") {
		t.Errorf("%v", one)
	}
	for path, code := range map[string]int{"/api/v2/pull/99": 404, "/api/v2/pull/seven": 400, "/api/v2/pull/-1": 404, "/api/v2/pull/99999999999999999999": 400} {
		c.call("GET", path, "", code)
	}
	if got := c.send("POST", "/api/v2/pull/7/preview", ""); got.Code != 202 ||
		strings.TrimSpace(got.Body.String()) != `{"data":null}` {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if got := c.call("POST", "/api/v2/pull/12/preview", "{}", 409); !strings.Contains(
		got["message"].(string),
		"approve",
	) {
		t.Errorf("%v", got)
	}
	head := dig(t, list, "data", 0, "head").(string)
	for body, code := range map[string]int{
		``: 400, `{}`: 400, `{"commit":"` + head + `"}`: 400, `{"by":"ida"}`: 400,
		`{"commit":"1111111111111111111111111111111111111111","by":"ida"}`: 409,
	} {
		c.call("POST", "/api/v2/pull/12/approve", body, code)
	}
	approved := c.call("POST", "/api/v2/pull/12/approve", `{"commit":"`+head+`","by":"ida"}`, 200)
	if dig(t, approved, "data", "approved", "commit") != head || dig(t, approved, "data", "approved", "by") != "ida" ||
		dig(t, approved, "data", "preview") != "running" {
		t.Errorf("%v", approved)
	}
	c.call("POST", "/api/v2/pull/12/preview", "{}", 202)
	c.tid = r.Staging.ID.String()
	c.call("GET", "/api/v2/pull/7", "", 404)
	if got := dig(t, c.call("GET", "/api/v2/pull", "", 200), "data").([]any); len(got) != 0 {
		t.Errorf("of another environment: %v", got)
	}
	c.tid = "00000000-0000-4000-8000-000000000000"
	for _, path := range []string{"/api/v2/pull", "/api/v2/pull/7", "/api/v2/forge/outbox"} {
		c.call("GET", path, "", 404)
	}
	c.tid = ""
	c.call("GET", "/api/v2/pull", "", 400)
}

// What a forge was told is listed, and what is dead gets another chance, once.
func TestForgeOutbox(t *testing.T) {
	c, _ := rich(t)
	list := c.call("GET", "/api/v2/forge/outbox", "", 200)
	if dig(t, list, "data", 0, "state") != "waiting" || dig(t, list, "data", 0, "done") != nil ||
		dig(t, list, "data", 1, "state") != "dead" ||
		!strings.Contains(dig(t, list, "data", 1, "problem").(string), "401") ||
		dig(t, list, "data", 1, "attempts") != 1.0 {
		t.Errorf("%v", list)
	}
	c.call("POST", "/api/v2/forge/outbox/1/retry", "{}", 200)
	if got := dig(t, c.call("GET", "/api/v2/forge/outbox", "", 200), "data", 1, "state"); got != "waiting" {
		t.Errorf("%v", got)
	}
	c.call("POST", "/api/v2/forge/outbox/1/retry", "{}", 409)
	c.call("POST", "/api/v2/forge/outbox/x/retry", "{}", 400)
}
