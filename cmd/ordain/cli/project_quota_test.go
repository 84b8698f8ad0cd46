package cli

import (
	"net/http/httptest"
	"strings"
	"testing"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/server/servertest"
)

// A quota is set for one thing without changing the others, and lifted with none.
func TestProjectQuota(t *testing.T) {
	r := servertest.NewRich(t)
	rest, err := api.New(api.Config{
		Control: r.Control, Store: r.Store, Logger: r.Log, Auth: r.People.API(), People: r.People, Tokens: r.Tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rest)
	defer server.Close()
	quota := func(flags ...string) map[string]string {
		t.Helper()
		args := append([]string{"project", "quota", r.Project.Name, "--server", server.URL}, flags...)
		status, out, errs := ordain("", args...)
		if status != 0 {
			t.Fatal(errs)
		}
		limits := map[string]string{}
		for _, line := range strings.Split(out, "\n")[1:] {
			if words := strings.Fields(line); len(words) == 3 {
				limits[words[0]] = words[2]
			}
		}
		return limits
	}
	quota("--environments", "7")
	quota("--disk", "5G", "--compiles", "0")
	got := quota()
	if len(got) != 3 || got["environments"] != "7" || got["disk"] != "5368709120" || got["compiles"] != "0" {
		t.Errorf("the limits are %v", got)
	}
	if got := quota("--environments", "none"); len(got) != 2 || got["environments"] != "" {
		t.Errorf("the limits are %v", got)
	}
	status, _, errs := ordain("", "project", "quota", r.Project.Name, "--server", server.URL, "--disk", "much")
	if status != 2 || !strings.Contains(errs, "--disk") {
		t.Errorf("status %d: %s", status, errs)
	}
}
