package forges

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/source"
)

// Each of many environments of one repository fetches every push. A dozen environments
// follow a repository; a push with one webhook is compiled in all of them, and its
// objects are fetched once.
func TestEnvironmentsShareOneFetch(t *testing.T) {
	tool.Long(t, "compiles a dozen environments")
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	t.Parallel()
	const n = 12
	w := lab.OwnWorld(t, nil)
	p := w.NewPlace(t)
	behind, err := url.Parse(gitOverHTTP(t, filepath.Dir(p.Bare), "", ""))
	if err != nil {
		t.Fatal(err)
	}
	var asked, fetched atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fetched.Add(1)
		} else {
			asked.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	p.Push("first", map[string]string{"project.yml": "name: plain\nmodulepath: libs\n", "main.cf": "x = 1\n"})
	ctx := t.Context()
	project, err := p.Control.CreateProject(ctx, intent.Project{Name: "dozen"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Control.SetProjectSecret(ctx, project.ID, source.SecretWebhook, "the-hook's-secret"); err != nil {
		t.Fatal(err)
	}
	all := make([]lab.Place, n)
	for i := range all {
		env, err := p.Control.CreateEnvironment(ctx, control.NewEnvironment{Environment: intent.Environment{
			ProjectID: project.ID, Name: fmt.Sprint("e", i),
			Source: intent.Source{URL: front.URL + "/repo.git", Branch: "main"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		all[i] = *p
		all[i].Env = env.ID
	}
	for i := range all {
		all[i].CompiledWell()
	}
	if got := fetched.Load(); got != 1 {
		t.Errorf("the first commit was fetched %d times", got)
	}
	fetched.Store(0)
	asked.Store(0)
	p.Push("second", map[string]string{"main.cf": "x = 2\n"})
	if status := sendPushHook(t, p.Server.URL(), front.URL+"/repo.git", p.Head(), "the-hook's-secret",
		"1"); status != http.StatusAccepted {
		t.Fatal(status)
	}
	for i := range all {
		if c := all[i].CompiledWell(); c.Revision.Subject != "second" || !strings.Contains(c.Trigger.Type, "webhook") {
			t.Errorf("compiled %+v, %+v", c.Revision, c.Trigger)
		}
	}
	if got := fetched.Load(); got != 1 {
		t.Errorf("the push was fetched %d times", got)
	}
	t.Logf("the repository was asked for its branches %d times", asked.Load())
}
