package api

import (
	"strings"
	"testing"
)

// A dry run of a commit is asked for, listed, read and cancelled; what chooses
// badly is refused at the door.
func TestDryRunsOfCommits(t *testing.T) {
	c, r := rich(t)
	for _, bad := range []string{`{"version":7,"agents":[]}`, `{"version":7,"resource_ids":["nonsense"]}`} {
		c.call("POST", "/api/v2/dryrun", bad, 400)
	}
	id := dig(t, c.call("POST", "/api/v2/dryrun", `{"commit":"feature","agents":["web*"],"resource_types":["fs::File"]}`, 200), "data").(string)
	list := c.call("GET", "/api/v2/dryrun", "", 200)
	if dig(t, list, "data", 0, "commit") != "feature" || dig(t, list, "data", 0, "state") != "compiling" ||
		dig(t, list, "data", 0, "model") != nil {
		t.Errorf("%v", list)
	}
	summary := dig(t, c.call("GET", "/api/v2/dryrun-report/"+id, "", 200), "data", "summary")
	if dig(t, summary, "filter", "agents", 0) != "web*" || dig(t, summary, "complete") != false {
		t.Errorf("%v", summary)
	}
	if got := dig(t, c.call("GET", "/api/v1/dryrun", "", 200), "dryruns").([]any); len(got) != 2 {
		t.Errorf("the old list has one of no version: %v", got)
	}
	c.call("POST", "/api/v2/dryrun-report/"+id+"/cancel", "", 200)
	c.call("POST", "/api/v2/dryrun-report/"+id+"/cancel", "", 409)
	c.call("GET", "/api/v2/dryrun-report/00000000-0000-0000-0000-000000000001", "", 404)
	whole := c.call("GET", "/api/v2/dryrun-report/"+r.DryRun.String(), "", 200)
	if dig(t, whole, "data", "summary", "counts", "unknown") != 2.0 ||
		dig(t, whole, "data", "no_longer_managed", 0) != "fs::File[web01,path=/srv/www/left.html]" {
		t.Errorf("%v", whole)
	}
}

// Facts are asked for: by name, and by an old client that misses one.
func TestFactsAreAskedFor(t *testing.T) {
	c, r := rich(t)
	r.Start(t)
	file := r.HealthyDir.String()
	if got := dig(t, c.call("POST", "/api/v2/facts/refresh", `{"resource_ids":["`+file+`"]}`, 200), "data", 0); got != file {
		t.Errorf("%v", got)
	}
	if got := dig(t, c.call("POST", "/api/v2/facts/refresh", `{"resource_ids":[]}`, 200), "data").([]any); len(
		got,
	) != 0 {
		t.Errorf("%v", got)
	}
	c.call("POST", "/api/v2/facts/refresh", `{"resource_ids":["x"]}`, 400)
	if w := c.send("GET", "/api/v1/parameter/nobody?resource_id="+strings.NewReplacer("[", "%5B", "]", "%5D", "/", "%2F", ",", "%2C", "=", "%3D").Replace(file), ""); w.Code != 503 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := c.send("GET", "/api/v1/parameter/nobody?resource_id=no::Such%5Ba,b=c%5D", ""); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if told := strings.Join(r.Told(), "\n"); strings.Count(told, "refresh facts ["+file+"]") != 2 {
		t.Errorf("%s", told)
	}
}
