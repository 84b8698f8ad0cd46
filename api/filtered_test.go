package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// What a filter matches is deployed, all of it or what is not as intended, and listed in the answer. A filter that is
// not one is refused, and so is a halted environment.
func TestDeployFiltered(t *testing.T) {
	c, r := rich(t)
	r.Start(t)
	const path = "/api/v2/deploy_filtered"
	some := `{"filter": {"agent": {"eq": "web01"}, "resourceType": {"contains": ["FS::%"]}}}`
	matched := c.call("POST", path, some, 200).list("data")
	if len(matched) == 0 {
		t.Fatal("nothing matches")
	}
	for _, id := range matched {
		if parsed, err := intent.ParseResourceID(id.(string)); err != nil || parsed.Agent != "web01" {
			t.Errorf("%s matches", id)
		}
	}
	c.call("POST", path, `{"filter": {"compliance": {"eq": ["NON_COMPLIANT"]}, "isOrphan": null},
		"agent_trigger_method": "push_incremental_deploy"}`, 200)
	if got := c.call("POST", path, `{"filter": {"agent": {"eq": []}}}`, 200).list("data"); len(got) != 0 {
		t.Errorf("an empty list matches %v", got)
	}
	every := c.call("POST", path, `{}`, 200).list("data")
	if n := c.total("/api/v2/resource"); len(every) != n {
		t.Errorf("%d of %d resources without a filter", len(every), n)
	}
	told := strings.Join(r.Told(), "\n")
	for _, want := range []string{"deploy full=true [] [fs::Directory[web01,", "deploy full=false [] [",
		"deploy full=true [] []"} {
		if !strings.Contains(told, want) {
			t.Errorf("the deployer was not told %q:\n%s", want, told)
		}
	}
	for body, says := range map[string]string{
		`{"filter": {"modelVersion": 7}}`:              "modelVersion",
		`{"filter": {"isOrphan": true}}`:               "isOrphan",
		`{"filter": {"colour": "red"}}`:                "colour",
		`{"filter": {"agent": "web01"}}`:               "agent",
		`{"filter": {"compliance": {"eq": ["good"]}}}`: "NON_COMPLIANT",
		`{"filter": {"isDeploying": "yes"}}`:           "isDeploying",
		`{"filter": {"agent": {"contains": ["a\\"]}}}`: "backslash",
		`{"agent_trigger_method": "push"}`:             "push_full_deploy",
	} {
		c.call("POST", path, body, 400).says(says)
	}
	c.call("POST", "/api/v2/actions/environment/halt", "null", 200)
	c.call("POST", path, `{}`, 409).says("halted")
	c.call("POST", "/api/v2/dryrun_filtered", `{}`, 409).says("halted")
}

// A dry run of what a filter matches looks at that alone, and shows the filter and the context as they came, in both
// versions of the API; another dry run has neither.
func TestDryRunFiltered(t *testing.T) {
	c, r := rich(t)
	r.Start(t)
	const path = "/api/v2/dryrun_filtered"
	body := `{"filter": {"agent": {"eq": ["web01"]}, "isOrphan": false}, "context": {"mine": {"n": 1.50, "list": [1]}}}`
	made := c.call("POST", path, body, 200)
	id := made.text("data", "id")
	version := fmt.Sprint(made.at("data", "model"))
	n := len(c.call("POST", "/api/v2/deploy_filtered", `{"filter": {"agent": {"eq": ["web01"]}}}`, 200).list("data"))
	for _, at := range []struct {
		path string
		keys []any
	}{
		{"/api/v2/dryrun/" + version + "/" + id, []any{"data", "summary"}},
		{"/api/v2/dryrun/" + version, []any{"data", 0}},
		{"/api/v1/dryrun/" + id, []any{"dryrun"}},
	} {
		got := c.get(at.path)
		got.is(n, append(at.keys, "total")...)
		got.is("web01", append(at.keys, "resource_filter", "agent", "eq", 0)...)
		got.is(1.5, append(at.keys, "context", "mine", "n")...)
	}
	chosen, err := r.Store.DryRunChosen(t.Context(), r.Production.ID, uuid.MustParse(id))
	others := slices.ContainsFunc(chosen, func(id intent.ResourceID) bool { return id.Agent != "web01" })
	if err != nil || len(chosen) != n || others {
		t.Errorf("chosen: %v, %v", chosen, err)
	}
	plain := c.call("POST", "/api/v2/dryrun/"+version, "null", 200).text("data")
	c.get("/api/v2/dryrun/"+version+"/"+plain).is(nil, "data", "summary", "resource_filter")
	c.get("/api/v1/dryrun/"+plain).is(nil, "dryrun", "context")
	c.call("POST", path, `{"filter": {"agent": {"eq": ["nobody"]}}}`, 404).says("No resource matched the filter")
	c.call("POST", path, `{"filter": {"modelVersion": 4000}}`, 404)
	c.call("POST", path, `{"filter": {"modelVersion": `+version+`, "isDeploying": false}}`, 400).says("isDeploying")
	c.call("POST", path, `{"context": [1]}`, 400).says("context")
	pinned := c.call("POST", path, `{"filter": {"modelVersion": `+version+`}}`, 200)
	if fmt.Sprint(pinned.at("data", "model")) != version {
		t.Error("another version than the pinned one")
	}
}

// A compliance report has an entry for each resource that is asked for; it fails when the active version lacks one.
func TestComplianceReport(t *testing.T) {
	c, r := rich(t)
	const path = "/api/v2/compliance_report"
	parked := r.ParkedFile.String()
	got := c.call("POST", path, `{"resource_ids": ["`+parked+`"]}`, 200)
	got.is("non_compliant", "data", parked, "compliance")
	got.is(false, "data", parked, "report_only")
	got.is(nil, "data", parked, "attribute_diff")
	c.call("POST", path, `{"resource_ids": []}`, 200)
	const no = "fs::File[web01,path=/no]"
	c.call("POST", path, `{"resource_ids": ["`+parked+`", "`+no+`"]}`, 404).says(no)
	c.call("POST", path, `{}`, 400).says("resource_ids")
}
