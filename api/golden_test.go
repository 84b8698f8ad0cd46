package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// madeUp are ids that the server made up, which differ from run to run; those of servertest begin with a.
var madeUp = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// ofTheMachine are figures of the server's status that depend on the machine and the moment.
var ofTheMachine = regexp.MustCompile(`("(?:database|host|postgresql_version)": ")[^"]*"` +
	`|("(?:max_pool|free_pool|open_connections|free_connections|pool_exhaustion_time)": )[0-9.e+-]+`)

// stable writes the ids that differ from run to run as ID 1, ID 2 … in the order in which they appear.
func stable(answer []byte) []byte {
	answer = ofTheMachine.ReplaceAllFunc(answer, func(found []byte) []byte {
		name, _, _ := bytes.Cut(found, []byte(": "))
		return slices.Concat(name, []byte(`: "…"`)) // found is a part of the answer, which append would write into
	})
	seen := map[string]string{}
	return madeUp.ReplaceAllFunc(answer, func(id []byte) []byte {
		if bytes.HasPrefix(id, []byte("a00000")) && bytes.Contains(id, []byte("-0000-4000-8000-")) {
			return id
		}
		if seen[string(id)] == "" {
			seen[string(id)] = fmt.Sprintf("ID %d", len(seen)+1)
		}
		return []byte(seen[string(id)])
	})
}

// Whole answers, as clients get them. Write them anew with ORDAIN_UPDATE=1, then read the difference.
func TestShapes(t *testing.T) {
	c, r := rich(t)
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
		"v2-desiredstate":            "/api/v2/desiredstate?limit=2&filter.status=active&filter.status=candidate",
		"v2-desiredstate-hold":       "/api/v2/desiredstate/9/hold",
		"v2-notification-list":       "/api/v2/notification?limit=2&filter.read=false",
		"v2-notification":            "/api/v2/notification/" + r.Notices[0].ID.String(),
		"v2-desiredstate-resources":  "/api/v2/desiredstate/7?limit=1&filter.resource_id_value=site-023",
		"v2-desiredstate-resource":   "/api/v2/desiredstate/7/resource/" + file,
		"v2-desiredstate-provenance": "/api/v2/desiredstate/7/resource/" + file + "/provenance",
		"v2-resource-list":           "/api/v2/resource?limit=1&deploy_summary=true&filter.resource_id_value=site-023",
		"v2-resource":                "/api/v2/resource/" + file,
		"v2-resource-history":        "/api/v2/resource/" + file + "/history?limit=1",
		"v2-resource-logs":           "/api/v2/resource/" + file + "/logs?limit=2&filter.minimal_log_level=warning",
		"v1-resource": "/api/v1/resource/" + url.PathEscape(r.FailedFile.AtVersion(7)) +
			"?logs=true&log_action=deploy&log_limit=1",
		"v2-resource-actions": "/api/v2/resource_actions?agent=web06&limit=1",
		"v2-dryrun-list":      "/api/v2/dryrun/7",
		"v2-dryrun":           "/api/v2/dryrun/7/" + r.DryRun.String(),
		"v1-dryrun":           "/api/v1/dryrun/" + r.DryRun.String(),
		"v2-resource-parked":  "/api/v2/resource?filter.parked=true",
		"v2-drift":            "/api/v2/drift?limit=2&filter.open=false",
		"v2-git-promotions":   "/api/v2/git/promotions",
		"v2-agents":           "/api/v2/agents?limit=1",
		"v1-agent":            "/api/v1/agent?limit=1",
		"v2-parameters":       "/api/v2/parameters",
		"v2-facts":            "/api/v2/facts",
		"v1-parameter":        "/api/v1/parameter/region",
		"v1-serverstatus":     "/api/v1/serverstatus",
		"v1-version":          "/api/v1/version/2",
	} {
		t.Run(name, func(t *testing.T) {
			c.tid = env
			if name == "v1-version" {
				c.tid = r.Staging.ID.String() // whose versions are small
			}
			c.golden(name, path)
		})
	}
}

// The executors of an environment that a server has taken.
func TestExecutors(t *testing.T) {
	c, r := rich(t)
	r.Start(t)
	c.golden("v2-executors", "/api/v2/executors")
}

// golden compares an answer with the one on file.
func (c *client) golden(name, path string) {
	c.t.Helper()
	got, err := json.MarshalIndent(c.get(path).body, "", "  ")
	if err != nil {
		c.t.Fatal(err)
	}
	got = append(stable(got), '\n')
	file := filepath.Join("testdata", "shapes", name+".json")
	if os.Getenv("ORDAIN_UPDATE") == "1" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	if string(got) != string(want) {
		c.t.Errorf("%s changed its shape; it is now\n%s", path, got)
	}
}
