package api

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"ordain.dev/ordain/api/apitest"
)

// changing are values that differ from run to run.
var changing = regexp.MustCompile(`"(now|servertime)": "[^"]*"`)

// The shapes of the answers, whole, as clients get them. Write them anew with
// ORDAIN_UPDATE=1; then read the difference.
func TestShapes(t *testing.T) {
	r := apitest.NewRich(present)
	c := newClient(t, r)
	env := r.Production.ID.String()
	c.tid = env
	file := url.PathEscape(r.FailedFile.String())
	for name, path := range map[string]string{
		"v1-project":                 "/api/v1/project",
		"v2-project":                 "/api/v2/project?environment_details=true",
		"v1-environment":             "/api/v1/environment",
		"v2-environment":             "/api/v2/environment/" + env + "?details=true",
		"v2-environment-brief":       "/api/v2/environment",
		"v2-environment-setting":     "/api/v2/environment_settings/auto_deploy",
		"v1-compilequeue":            "/api/v1/compilequeue",
		"v2-compilereport-list":      "/api/v2/compilereport?limit=2&filter.completed=true",
		"v2-compilereport":           "/api/v2/compilereport/" + r.Failed.String(),
		"v1-compilereport":           "/api/v1/compilereport/" + r.Good.String(),
		"v1-version-list":            "/api/v1/version?limit=2&start=0",
		"v1-version":                 "/api/v1/version/8",
		"v2-desiredstate":            "/api/v2/desiredstate?limit=2&filter.status=active&filter.status=candidate",
		"v2-desiredstate-hold":       "/api/v2/desiredstate/9/hold",
		"v2-notification-list":       "/api/v2/notification?limit=2&filter.read=false",
		"v2-notification":            "/api/v2/notification/" + r.Production.Notices[0].ID.String(),
		"v2-desiredstate-resources":  "/api/v2/desiredstate/7?limit=1&filter.resource_id_value=site-023",
		"v2-desiredstate-resource":   "/api/v2/desiredstate/7/resource/" + file,
		"v2-desiredstate-provenance": "/api/v2/desiredstate/7/resource/" + file + "/provenance",
		"v2-resource-list":           "/api/v2/resource?limit=1&deploy_summary=true&filter.resource_id_value=site-023",
		"v2-resource":                "/api/v2/resource/" + file,
		"v2-resource-history":        "/api/v2/resource/" + file + "/history?limit=1",
		"v2-resource-logs":           "/api/v2/resource/" + file + "/logs?limit=2&filter.minimal_log_level=warning",
		"v1-resource":                "/api/v1/resource/" + url.PathEscape(r.FailedFile.AtVersion(7)) + "?logs=true&log_action=deploy&log_limit=1",
		"v2-resource-actions":        "/api/v2/resource_actions?agent=web06&limit=1",
		"v2-dryrun-list":             "/api/v2/dryrun/7",
		"v2-dryrun":                  "/api/v2/dryrun/7/" + r.DryRunID.String(),
		"v1-dryrun":                  "/api/v1/dryrun/" + r.DryRunID.String(),
		"v2-resource-parked":         "/api/v2/resource?filter.parked=true",
		"v2-drift":                   "/api/v2/drift?limit=2&filter.open=false",
		"v2-git-promotions":          "/api/v2/git/promotions",
		"v2-agents":                  "/api/v2/agents?limit=1",
		"v2-executors":               "/api/v2/executors",
		"v1-agent":                   "/api/v1/agent?limit=1",
		"v2-parameters":              "/api/v2/parameters",
		"v2-facts":                   "/api/v2/facts",
		"v1-parameter":               "/api/v1/parameter/region",
		"v1-serverstatus":            "/api/v1/serverstatus",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(c.call("GET", path, "", 200), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(changing.ReplaceAll(got, []byte(`"$1": "TIME"`)), '\n')
			golden := filepath.Join("testdata", "shapes", name+".json")
			if os.Getenv("ORDAIN_UPDATE") == "1" {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%s changed its shape; it is now\n%s", path, got)
			}
		})
	}
}
