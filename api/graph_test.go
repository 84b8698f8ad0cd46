package api

import (
	"net/url"
	"testing"
)

// The graph tells what a resource requires and what requires it, within its bounds, and collapses when asked.
func TestGraph(t *testing.T) {
	c, r := rich(t)
	root := "/api/v2/graph?root=" + url.QueryEscape(r.FailedFile.String())
	around := c.get(root)
	found := false
	for i := range around.list("data", "nodes") {
		id := around.text("data", "nodes", i, "resource_id")
		found = found || id == r.FailedFile.String()
	}
	if !found {
		t.Errorf("the root %s is not among the nodes", r.FailedFile)
	}
	if len(around.list("data", "edges")) == 0 {
		t.Error("the root has no edges")
	}
	groups := c.get("/api/v2/graph?collapse=type")
	groups.is("type", "data", "collapse")
	groups.is(nil, "data", "nodes", 0, "resource_id")
	all := c.total("/api/v2/resource")
	groups.is(all, "data", "total")
	c.call("GET", "/api/v2/graph?depth=11", "", 400).says("1 to 10")
	c.call("GET", "/api/v2/graph?collapse=colour", "", 400).says("agent, type")
	c.call("GET", "/api/v2/graph?root="+url.QueryEscape("fs::File[nobody,path=/x]"), "", 404).says("no resource")
	c.get("/api/v2/graph?agent=nobody").is(0, "data", "total")
}
