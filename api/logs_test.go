package api

import (
	"net/url"
	"slices"
	"testing"
)

// A client reads the log of an environment page by page, back to its beginning, by the links of the answers. It finds
// errors and the log of one resource, and nothing after the newest place; what it cannot ask for is refused.
func TestTheLogOfAnEnvironment(t *testing.T) {
	c, r := rich(t)
	said := func(a answer) (out []any) {
		for i := range a.list("data") {
			out = append(out, a.at("data", i, "msg"))
		}
		return out
	}
	link := func(a answer, name string) string {
		text, _ := a.at("links").(map[string]any)[name].(string)
		return text
	}
	whole := said(c.get("/api/v2/logs"))
	if len(whole) != 16 || whole[0] != "End of the deployment" {
		t.Errorf("%d lines: %v", len(whole), whole)
	}
	var back []any
	page := c.get("/api/v2/logs?limit=4")
	newest := page.text("metadata", "newest")
	page.is(true, "metadata", "full")
	for {
		back = append(said(page), back...)
		next := link(page, "prev")
		if next == "" {
			break
		}
		page = c.get(next)
		page.is(next, "links", "self")
	}
	if !slices.Equal(back, whole) {
		t.Errorf("the pages have %v", back)
	}
	if forward := said(c.get(link(page, "next"))); len(forward) < 4 {
		t.Errorf("forward from the first page are %v", forward)
	}
	after := c.get("/api/v2/logs?after=" + url.QueryEscape(newest))
	after.is(nil, "metadata", "later")
	after.is(newest, "metadata", "newest")
	if got := said(after); len(got) != 0 {
		t.Errorf("after the newest there are %v", got)
	}

	failed := url.QueryEscape(r.FailedFile.String())
	errors := c.get("/api/v2/logs?minimal_log_level=error&agent=web04&resource_type=fs::File&action=deploy" +
		"&message=no%20space&resource_id=" + failed)
	errors.is("ERROR", "data", 0, "level")
	errors.is(r.FailedFile.String(), "data", 0, "resource_id")
	errors.is(7, "data", 0, "version")
	errors.is("deploy", "data", 0, "action")
	if n := len(errors.list("data")); n != 3 {
		t.Errorf("%d errors", n)
	}
	for _, wrong := range []string{
		"limit=1001", "limit=-1", "before=now", "after=2026-11-21T16:00:00Z,7", "since=now", "minimal_log_level=loud",
		"resource_id=motd", "before=2026-11-21&after=2026-11-21",
	} {
		c.call("GET", "/api/v2/logs?"+wrong, "", 400)
	}
}
