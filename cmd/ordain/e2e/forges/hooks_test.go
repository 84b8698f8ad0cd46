package forges

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/webhooks"
)

// notify installs a hook in the repository that notifies the server of pushes, as a
// forge would.
func notify(p *lab.Place, secret string) {
	p.T.Helper()
	file := filepath.Join(p.T.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		p.T.Fatal(err)
	}
	hook := fmt.Sprintf("#!/bin/sh\nexec '%s' hook send --url '%s/hooks/github' --secret-file '%s'\n", os.Args[0],
		p.Server.URL(), file)
	if err := os.WriteFile(filepath.Join(p.Bare, "hooks", "post-receive"), []byte(hook), 0o755); err != nil {
		p.T.Fatal(err)
	}
}

// deliveries waits until n webhooks were processed, and returns them, newest first.
func deliveries(p *lab.Place, n int) (out []intent.Delivery) {
	p.T.Helper()
	p.Until(fmt.Sprint(n, " webhooks"), func() bool {
		page, err := p.Store.Deliveries(p.T.Context(), p.Env, intent.ListQuery{})
		if err != nil {
			p.T.Fatal(err)
		}
		out = page.Items
		for _, d := range out {
			if d.Outcomes[0].State == intent.OutcomeWaiting {
				return false
			}
		}
		return len(out) >= n
	})
	return out
}

// A webhook starts a compile that it should not, or nobody can see why it started none.
// The real git client pushes to a bare repository whose hook notifies the server. Only
// pushes to the branch that change the project's folder are compiled, and every webhook
// is listed with its outcome, also on the command line.
func TestWebhooksOfPushes(t *testing.T) {
	t.Parallel()
	p := lab.SharedWorld(t).NewPlace(t)
	files := map[string]string{}
	for name, text := range lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"})) {
		files["shop/"+name] = text
	}
	p.Push("a project in a folder", files)
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main", Subdir: "shop"},
		map[string]string{"webhook": "the-hook's-secret"})
	p.CompiledWell()
	notify(p, "the-hook's-secret")

	p.Push("beside the project", map[string]string{"bank/main.cf": "x = 1\n", "README.md": "hello\n"})
	got := deliveries(p, 1)[0]
	if o := got.Outcomes[0]; o.State != intent.OutcomeSkipped ||
		!strings.Contains(o.Reason, "nothing of shop changed") {
		t.Errorf("a push beside the project: %+v", o)
	}
	model := p.Model([3]string{"a", "two", "calm"})
	p.Push("in the project", map[string]string{"shop/main.cf": model["main.cf"]})
	second := p.CompiledWell()
	if second.Revision.Subject != "in the project" {
		t.Errorf("compiled %+v", second.Revision)
	}
	p.Git("checkout", "-q", "-b", "next")
	p.Commit("elsewhere", map[string]string{"shop/other.cf": "y = 1\n"})
	p.Git("push", "-q", "origin", "next")
	p.Git("push", "-q", "origin", "--delete", "next")
	all := deliveries(p, 4)
	if d := all[0]; !d.Event.Deleted || d.Outcomes[0].State != intent.OutcomeSkipped {
		t.Errorf("the deletion of a branch: %+v", d)
	}
	if o := all[1].Outcomes[0]; o.State != intent.OutcomeSkipped || o.Reason != "it follows main, not next" {
		t.Errorf("a push to another branch: %+v", o)
	}
	e, err := p.Store.Environment(t.Context(), p.Env)
	if err != nil {
		t.Fatal(err)
	}
	if list := p.Must(t, "hook", "list", e.Name); !strings.Contains(list, "it follows main, not next") ||
		strings.Contains(list, "the-hook's-secret") {
		t.Errorf("ordain hook list:\n%s", list)
	}
	id := all[1].ID.String()
	if shown := p.Must(t, "hook", "show", e.Name, id); !strings.Contains(shown, "refs/heads/next") {
		t.Errorf("ordain hook show:\n%s", shown)
	}
	if out := p.Must(t, "hook", "redeliver", e.Name, id); !strings.Contains(out, "refs/heads/next") {
		t.Errorf("ordain hook redeliver:\n%s", out)
	}
	if d := deliveries(p, 5)[0]; d.ReplayOf == nil || *d.ReplayOf != all[1].ID ||
		d.Outcomes[0].Reason != "it follows main, not next" {
		t.Errorf("sent again: %+v", d)
	}
}

// sendPushHook sends the webhook of a push to main, as GitHub does, and returns the
// status of the answer.
func sendPushHook(t *testing.T, server, repository, head, secret, id string) int {
	t.Helper()
	body := []byte(fmt.Sprintf(`{"ref":"refs/heads/main","after":%q,"repository":{"clone_url":%q}}`, head, repository))
	req, err := http.NewRequest(http.MethodPost, server+"/hooks/github", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("X-GitHub-Event", "push")
	req.Header.Set("X-GitHub-Delivery", id)
	req.Header.Set(webhooks.HeaderSignature, webhooks.Sign(body, []byte(secret)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// The server is killed right after it has answered a burst of webhooks. After the
// restart it processes all of them; none is lost.
func TestWebhooksSurviveAKilledServer(t *testing.T) {
	tool.Heavy(t, "runs a server beside a forge")
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	t.Parallel()
	dir, err := lab.WorldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := (&lab.World{Dir: dir}).NewPlace(t)
	p.Push("a note", lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"})))
	c := lab.StartChild(t, dir)
	env := c.Bind("file://" + p.Bare)
	const secret = "the-hook's-secret"
	if err := c.Client.Call(t.Context(), http.MethodPut, "/api/v2/environment/"+env+"/secret/webhook", env,
		map[string]any{"value": secret}, nil); err != nil {
		t.Fatal(err)
	}
	const n = 60
	var wg sync.WaitGroup
	answered := make(chan int, n)
	for i := range n {
		wg.Go(func() {
			answered <- sendPushHook(t, c.URL, "file://"+p.Bare, p.Head(), secret, fmt.Sprint("burst-", i))
		})
	}
	wg.Wait()
	c.Kill()
	close(answered)
	for status := range answered {
		if status != http.StatusAccepted {
			t.Errorf("answered %d", status)
		}
	}
	c = lab.StartChild(t, dir)
	c.Until("/e/"+env+"/deliveries", func(ctx context.Context) (bool, string) {
		var rows []struct {
			State string `json:"state"`
		}
		err := c.Client.Call(ctx, http.MethodGet, "/api/v2/deliveries?limit=100", env, nil, &rows)
		waiting := 0
		for _, r := range rows {
			if r.State == "waiting" {
				waiting++
			}
		}
		return err == nil && len(rows) == n &&
			waiting == 0, fmt.Sprintf("%d of %d webhooks, %d wait: %v", len(rows), n, waiting, err)
	})
	c.WaitDeployed(env, 1)
}

// The database is killed in the middle of a burst of webhooks. Every webhook that was
// accepted is recorded. The others were answered with "try again", and after that each
// of them is recorded once.
func TestAnsweredWebhooksSurviveAKilledDatabase(t *testing.T) {
	t.Parallel()
	tool.Long(t, "starts a server, and kills its database under hundreds of webhooks")
	w := lab.OwnWorld(t, nil)
	p := w.NewPlace(t)
	p.Push("a note", lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"})))
	const secret, n, connections = "the-hook's-secret", 300, 8
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, map[string]string{"webhook": secret})
	p.CompiledWell()
	head, url := p.Head(), w.Server.URL()
	send := func(i int) int { return sendPushHook(t, url, "file://"+p.Bare, head, secret, fmt.Sprint("burst-", i)) }

	answers, next, answered := make([]int, n), atomic.Int64{}, atomic.Int64{}
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				answers[i] = send(i)
				if answered.Add(1) == n/3 {
					if err := syscall.Kill(lab.Postmaster(t, w), syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	counts := map[int]int{}
	for i, answer := range answers {
		counts[answer]++
		second := 0
		lab.WaitFor(t, func() bool { second = send(i); return second != http.StatusServiceUnavailable },
			func() string { return "the database does not come back" })
		switch {
		case answer == http.StatusAccepted && second != http.StatusOK:
			t.Errorf("the %d. was answered with %d; when it came again, with %d", i, answer, second)
		case answer != http.StatusAccepted && answer != http.StatusServiceUnavailable,
			second != http.StatusOK && second != http.StatusAccepted:
			t.Errorf("the %d. was answered with %d, then with %d", i, answer, second)
		}
	}
	if counts[http.StatusAccepted] < n/3-connections || counts[http.StatusServiceUnavailable] == 0 {
		t.Errorf("the answers of the burst: %v", counts)
	}
	if page, err := p.Store.Deliveries(t.Context(), p.Env, intent.ListQuery{}); err != nil || page.Total != n {
		t.Errorf("%d webhooks are recorded, want %d: %v", page.Total, n, err)
	}
}
