package api

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/servertest"
)

// Agents are paused one by one or all at once, but not in a halted environment; deployments and dry runs are handed to
// the deployer.
func TestAgentsAndHalt(t *testing.T) {
	c, r := rich(t)
	r.Start(t)
	c.call("POST", "/api/v2/agent/web01/pause", "", 200)
	c.call("POST", "/api/v2/agent/web0l/pause", "", 200) // as the reference
	c.call("POST", "/api/v2/agent/web0l/pause", `{"strict": true}`, 404).says("web0l")
	c.call("POST", "/api/v2/agent/web01/dance", "", 400)
	c.call("POST", "/api/v2/agents/keep_paused_on_resume", "", 403)
	if n := c.total("/api/v2/agents?filter.status=paused"); n != 2 {
		t.Errorf("%d agents are paused", n)
	}
	c.call("POST", "/api/v2/agents/unpause", "", 200)
	for range 2 { // halting twice is fine
		c.call("POST", "/api/v2/actions/environment/halt", "null", 200)
	}
	c.call("POST", "/api/v2/agents/pause", "", 403)
	agents := c.get("/api/v1/agent")
	agents.is("paused", "agents", 0, "state")
	agents.is("", "agents", 0, "last_failover")
	c.call("POST", "/api/v2/dryrun/7", "null", 409)
	c.call("POST", "/api/v2/actions/environment/resume", "null", 200)
	id := c.call("POST", "/api/v2/dryrun/7", "null", 200).text("data")
	c.get("/api/v2/dryrun/7/"+id).is(204, "data", "summary", "todo")
	c.call("GET", "/api/v2/dryrun/6/"+id, "", 404)
	c.call("POST", "/api/v1/deploy", `{"agent_trigger_method":"push_incremental_deploy","agents":["web03"]}`, 200).
		is("web03", "agents", 0)
	c.call("POST", "/api/v1/deploy", `{"agents":["stranger"]}`, 404)
	told := strings.Join(r.Told(), "\n")
	for _, want := range []string{"pause web01=true", "pause =false", "dry run " + id, "deploy full=false [web03]"} {
		if !strings.Contains(told, want) {
			t.Errorf("the deployer was not told %q:\n%s", want, told)
		}
	}
}

// Parked resources are listed and unparked: one by name, then all that are left. A name that is not an id, or of no
// resource, frees nothing; neither does an empty list.
func TestParked(t *testing.T) {
	c, r := rich(t)
	const path, list = "/api/v2/unpark", "/api/v2/resource?filter.parked=true"
	free := func(body string, left int, want ...any) {
		t.Helper()
		if got := c.call("POST", path, body, 200).list("data"); !slices.Equal(got, want) {
			t.Errorf("%s frees %v", body, got)
		}
		if got := c.total(list); got != left {
			t.Errorf("%d are parked after %s", got, body)
		}
	}
	parked := r.ParkedFile.String()
	c.call("POST", path, `{"resource_ids": ["`+parked+`", "nonsense"]}`, 400)
	c.call("POST", path, `{"resource_ids": ["`+parked+`", "fs::File[web01,path=/nowhere]"]}`, 404)
	c.call("POST", path, `{"resource_ids": "all"}`, 400)
	c.call("POST", path, `{"resources": []}`, 400)
	free(`{"resource_ids": []}`, 2)
	free(`{"resource_ids": ["`+parked+`"]}`, 1, parked)
	free(`{}`, 0, r.ContestedFile.String())
	c.tid = "00000000-0000-4000-8000-000000000000"
	c.call("POST", path, `{}`, 404)
	c.call("GET", "/api/v2/drift", "", 404)
}

// One resource is deployed and no other one, with what it waits for; a contested one only when that is asked for.
func TestDeployOneResource(t *testing.T) {
	c, r := rich(t)
	r.Start(t)
	path := func(id intent.ResourceID) string {
		return "/api/v2/resource/" + url.PathEscape(id.String()) + "/deploy"
	}
	told := func() []string {
		var out []string
		for _, one := range r.Told() {
			if strings.HasPrefix(one, "deploy") || strings.HasPrefix(one, "unpark") {
				out = append(out, one)
			}
		}
		return out
	}
	failed := c.call("POST", path(r.FailedFile), "", 200)
	failed.is(r.FailedFile.String(), "data", "resource_id")
	if len(failed.list("data", "waits_for")) != 0 {
		t.Errorf("it waits for %v", failed.list("data", "waits_for"))
	}
	page := c.call("POST", "/api/v2/resource/"+url.PathEscape("fs::File[web03,path=/srv/www/site-062/index.html]")+
		"/deploy", `{"unpark": false}`, 200)
	page.is("fs::File[web02,path=/srv/www/site-061/index.html]", "data", "waits_for", 0, "resource_id")
	page.is("undefined", "data", "waits_for", 0, "status")
	before := len(told())
	c.call("POST", path(r.ContestedFile), `{}`, 409).says("is contested", "--unpark")
	if got := told(); len(got) != before || !strings.HasPrefix(got[0], "deploy full=true [] ["+r.FailedFile.String()) {
		t.Errorf("the deployer was told %q", got)
	}
	c.call("POST", path(r.ContestedFile), `{"unpark": true}`, 200).is(r.ContestedFile.String(), "data", "resource_id")
	if got := told(); len(got) != before+1 || !strings.HasPrefix(got[before], "unpark ["+r.ContestedFile.String()) {
		t.Errorf("the deployer was told %q", got)
	}
	c.get("/api/v2/resource?filter.parked=true").is(r.ParkedFile.String(), "data", 0, "resource_id")
	c.call("POST", "/api/v2/resource/"+url.PathEscape("fs::File[web01,path=/nowhere]")+"/deploy", "", 404)
}

// Records of drift are filtered; an agent shows its breaker; the settings of both are checked.
func TestDrift(t *testing.T) {
	c, r := rich(t)
	for filter, want := range map[string]int{
		"": 4, "filter.open=true": 2, "filter.ending=healed": 1, "filter.attribute=mode": 3,
		"filter.resource_id=site-186": 2, "filter.resource=" + url.QueryEscape(r.ContestedFile.String()): 2,
	} {
		if got := c.total("/api/v2/drift?" + filter); got != want {
			t.Errorf("%q has %d, want %d", filter, got, want)
		}
	}
	c.get("/api/v2/agents?filter.name=web06").is("open", "data", 0, "breaker", "state")
	c.call("POST", "/api/v2/environment_settings/drift_policy", `{"value": "ignore"}`, 500)
	c.call("POST", "/api/v2/environment_settings/breaker_pause", `{"value": 3601}`, 500)
	c.call("POST", "/api/v2/environment_settings/drift_policy", `{"value": "report"}`, 200)
}

// Parameters and facts are set, found and deleted, with the calls of both versions.
func TestParameters(t *testing.T) {
	c, r := rich(t)
	if w := c.send("GET", "/api/v1/parameter/unknown", ""); w.Code != 404 || w.Body.Len() != 0 {
		t.Errorf("an unknown parameter is answered %d %q", w.Code, w.Body)
	}
	const size = `{"source":"user","value":"12","metadata":{"unit":"GB"},"recompile":true}`
	c.call("PUT", "/api/v2/parameters/size", size, 200)
	c.call("PUT", "/api/v2/parameters/size", `{"source":"rumour","value":"12"}`, 400)
	found := c.call("POST", "/api/v1/parameter", `{"query":{"unit":"GB"}}`, 200)
	found.is("12", "parameters", 0, "value")
	found.is(3600, "expire")
	if n := len(found.list("parameters")); n != 1 {
		t.Errorf("%d parameters", n)
	}
	queue, err := r.Store.OpenCompiles(t.Context(), r.Production.ID)
	if err != nil || len(queue) != 2 || queue[1].Trigger.Type != "param" {
		t.Errorf("the compile that was asked for is not in the queue: %v %v", queue, err)
	}
	a := `{"id":"a","source":"fact","value":"1","resource_id":"` + r.HealthyDir.String() + `"}`
	c.call("PUT", "/api/v1/parameters", `{"parameters":[`+a+`]}`, 200)
	facts := c.get("/api/v2/facts?filter.name=a")
	facts.is(r.HealthyDir.String(), "data", 0, "resource_id")
	facts.is(true, "data", 0, "expires")
	c.call("DELETE", "/api/v1/parameter/size", "", 200)
	c.call("DELETE", "/api/v1/parameter/size", "", 404)
}

// Resources are asked for their facts: by name, and by an old client that misses one.
func TestFactsAreAskedFor(t *testing.T) {
	c, r := rich(t)
	r.Start(t)
	dir := r.HealthyDir.String()
	c.call("POST", "/api/v2/facts/refresh", `{"resource_ids":["`+dir+`"]}`, 200).is(dir, "data", 0)
	if got := c.call("POST", "/api/v2/facts/refresh", `{"resource_ids":[]}`, 200).list("data"); len(got) != 0 {
		t.Errorf("an empty list asks %v", got)
	}
	c.call("POST", "/api/v2/facts/refresh", `{"resource_ids":["x"]}`, 400)
	for id, status := range map[string]int{dir: 503, "no::Such[a,b=c]": 404} {
		if w := c.send("GET", "/api/v1/parameter/nobody?resource_id="+url.QueryEscape(id), ""); w.Code != status {
			t.Errorf("a missing fact of %s is answered %d %s", id, w.Code, w.Body)
		}
	}
	if told := strings.Join(r.Told(), "\n"); strings.Count(told, "refresh facts ["+dir+"]") != 2 {
		t.Errorf("the deployer was told:\n%s", told)
	}
}

// Files are kept under the hash of their content, and compared by line.
func TestFiles(t *testing.T) {
	c := newClient(t, servertest.New(t, servertest.Present))
	const missing = "9534e28ef6b45e6a98ab84dfe0bdf64c71adb55a"
	put := func(content string) (hash string) {
		body := `{"content":"` + content + `"}`
		message := c.call("PUT", "/api/v1/file/"+missing, body, 400).text("message")
		_, rest, _ := strings.Cut(message, "has the hash ")
		hash, _, _ = strings.Cut(rest, " ")
		c.call("PUT", "/api/v1/file/"+hash, body, 200)
		return hash
	}
	a := put("b25lCnR3bwp0aHJlZQo=")     // one two three
	b := put("b25lCjIKdGhyZWUKZm91cgo=") // one 2 three four
	c.get("/api/v1/file/"+a).is("b25lCnR3bwp0aHJlZQo=", "content")
	for hash, status := range map[string]int{a: 200, missing: 404} {
		if w := c.send("HEAD", "/api/v1/file/"+hash, ""); w.Code != status {
			t.Errorf("HEAD of %s is answered %d", hash, w.Code)
		}
	}
	files := c.call("POST", "/api/v1/file", `{"files":["`+a+`","`+missing+`"]}`, 200).list("files")
	if !slices.Equal(files, []any{missing}) {
		t.Errorf("%v are missing", files)
	}
	diff := c.call("POST", "/api/v1/filediff", `{"file_id_1":"`+a+`","file_id_2":"`+b+`"}`, 200).list("diff")
	want := []any{"--- ", "+++ ", "@@ -1,3 +1,4 @@", " one", "-two", "+2", " three", "+four"}
	if !slices.Equal(diff, want) {
		t.Errorf("the diff is %q", diff)
	}
}

// Discovered resources are reported one by one and together, listed, and forgotten.
func TestDiscovered(t *testing.T) {
	c, r := rich(t)
	const path = "/api/v2/discovered"
	by := r.DiscoveryDir.String()
	one := url.PathEscape("fs::File[web01,path=/etc/one]")
	c.call("POST", path+"/"+one, `{"discovery_resource_id":"`+by+`","values":{"mode":644}}`, 200)
	c.get(path+"/"+one).is(644, "data", "values", "mode")
	c.get(path+"/"+one).is(nil, "data", "managed_resource_uri")
	two := `{"discovered_resource_id":"fs::File[web01,path=/etc/two]","discovery_resource_id":"` + by + `","values":{}}`
	c.call("POST", path+"/", `{"discovered_resources":[`+two+`]}`, 200)
	c.call("POST", path, `{"discovered_resources":[`+two+`,{"discovered_resource_id":"x"}]}`, 400)
	if n := c.total(path); n != 4 {
		t.Errorf("%d are listed", n)
	}
	if n := c.total(path + "?filter.managed=true"); n != 1 {
		t.Errorf("%d are managed", n)
	}
	c.call("DELETE", path+"/"+one, "", 200)
	c.call("DELETE", path+"/", `{"discovered_resource_ids":["fs::File[web01,path=/etc/two]"]}`, 200)
	c.call("GET", path+"/"+one, "", 404)
}
