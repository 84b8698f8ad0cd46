package cli

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/server/servertest"
)

// Somebody finds a dead process from the command line, looks at it, retries it and gives it up.
func TestProcesses(t *testing.T) {
	r := servertest.NewRich(t)
	rest, err := api.New(api.Config{
		Control: r.Control, Store: r.Store, Logger: r.Log, Auth: r.People.API(), People: r.People, Tokens: r.Tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rest)
	defer server.Close()
	run := func(wanted int, args ...string) string {
		t.Helper()
		status, out, errs := ordain("", append([]string{"process", "--server", server.URL}, args...)...)
		if status != wanted {
			t.Fatalf("%v: %d\n%s%s", args, status, out, errs)
		}
		return out + errs
	}
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("nothing of %q in\n%s", w, text)
			}
		}
	}
	dead := fmt.Sprint(r.Dead)
	has(run(0, "list"), "forge.send", "pager.call", "a worker", "staging", "production")
	out := run(0, "list", "--environment", "staging", "--state", "dead")
	has(out, dead, "pager.call", "its attempts ran out", "the pager answered 500")
	if strings.Contains(out, "forge.send") {
		t.Errorf("processes of production:\n%s", out)
	}
	has(run(0, "show", dead), "max_attempts", "worker-1", "ida", "dead")
	has(run(1, "show", "4711"), "there is no such process")
	has(run(1, "retry", dead, "--environment", "production"), "there is no such process")
	run(0, "retry", dead, "--environment", "staging")
	has(run(0, "show", dead), "waiting", "a worker")
	run(0, "cancel", dead)
	has(run(1, "retry", dead), "the process is cancelled; only a dead or waiting one can be retried")
	has(run(0, "list", "-o", "json", "--name", "pager"), `"state": "cancelled"`)
}
