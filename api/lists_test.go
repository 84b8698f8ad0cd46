package api

import (
	"strings"
	"testing"
)

// A client that follows links blindly sees every row once, there and back.
func TestFollowingLinksSeesEverything(t *testing.T) {
	c, _ := rich(t)
	for _, list := range []struct {
		path string
		want int
		id   string
	}{
		{"/api/v2/resource?limit=30&deploy_summary=true", 204, "resource_id"},
		{"/api/v2/resource?limit=30&sort=agent.ASC", 204, "resource_id"},
		{"/api/v2/resource?limit=7&sort=status.desc&filter.agent=WEB0&filter.status=!deployed", 19, "resource_id"},
		{"/api/v2/compilereport?limit=5", 32, "id"},
		{"/api/v2/compilereport?limit=5&sort=requested.asc", 32, "id"},
		{"/api/v2/compilereport?limit=2&filter.success=false", 5, "id"},
		{"/api/v2/desiredstate?limit=3", 10, "version"},
		{"/api/v2/desiredstate/7?limit=50&sort=resource_id_value.asc", 204, "resource_id"},
		{"/api/v2/agents?limit=4", 10, "name"},
		{"/api/v2/agents?limit=3&sort=paused.desc", 10, "name"},
		{"/api/v2/drift?limit=1&sort=resource_id.asc", 4, "id"},
	} {
		seen, pages := map[any]bool{}, 0
		next, last := list.path, ""
		for next != "" {
			got := c.get(next)
			got.is(list.want, "metadata", "total")
			got.is(len(seen), "metadata", "before")
			for i := range got.list("data") {
				key := got.at("data", i, list.id)
				if seen[key] {
					t.Fatalf("%s: %v twice", next, key)
				}
				seen[key] = true
			}
			links := got.at("links").(map[string]any)
			if pages == 0 && (links["prev"] != nil || links["first"] != nil) {
				t.Errorf("%s: the first page has pages before it: %v", next, links)
			}
			last = next
			next, _ = links["next"].(string)
			pages++
		}
		if len(seen) != list.want {
			t.Errorf("%s: %d rows, want %d", list.path, len(seen), list.want)
		}
		back := 1
		for last != "" {
			links := c.get(last).at("links").(map[string]any)
			if last, _ = links["prev"].(string); last != "" {
				back++
			}
		}
		if back != pages {
			t.Errorf("%s: %d pages there, %d back", list.path, pages, back)
		}
	}
	got := c.get("/api/v2/resource?limit=1&deploy_summary=true&filter.agent=web01")
	if self := got.text("links", "self"); !strings.Contains(self, "deploy_summary=True") ||
		!strings.Contains(self, "filter.agent=web01") {
		t.Errorf("the link to the page itself is %s", self)
	}
	got.is(185, "metadata", "deploy_summary", "by_state", "deployed")
}

// Paging, sorting and filtering reject what they do not know.
func TestListsRejectWhatTheyDoNotKnow(t *testing.T) {
	c, _ := rich(t)
	for _, query := range []string{
		"resource?limit=1001", "resource?limit=-1", "resource?limit=x", "resource?sort=colour.asc",
		"resource?sort=agent", "resource?sort=agent.up", "resource?filter.colour=red",
		"resource?start=a&first_id=b&end=c&last_id=d", "compilereport?filter.success=perhaps",
		"compilereport?filter.success=true&filter.success=false", "compilereport?filter.requested=2026-11-21",
		"compilereport?filter.requested=ge:yesterday", "compilereport?start=yesterday", "compilereport?first_id=7",
		"desiredstate?filter.version=ge:x", "desiredstate?first_id=3", "agents?filter=web",
		"drift?sort=found.asc", "drift?filter.found=x", "drift?filter.open=maybe", "drift?filter.since=yesterday",
		"drift?first_id=x&start=2026-11-21", "notification?sort=title.asc", "notification?filter.uri=x",
		"deliveries?filter.colour=red",
	} {
		c.call("GET", "/api/v2/"+query, "", 400)
	}
	for query, want := range map[string]int{
		"compilereport?filter.requested=ge:2026-11-21+15:00:00":    6, // a plus sign that was not encoded
		"compilereport?filter.started=true&filter.completed=false": 1,
	} {
		if got := c.total("/api/v2/" + query); got != want {
			t.Errorf("%s has %d, want %d", query, got, want)
		}
	}
	c.get("/api/v2/resource?limit=0").is(1000, "metadata", "page_size")
}
