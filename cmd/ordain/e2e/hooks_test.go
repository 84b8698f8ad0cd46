package e2e

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

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/webhooks"
)

// notify installs a hook in the repository that notifies the server of pushes, as a
// forge would.
func (p *place) notify(secret string) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		p.t.Fatal(err)
	}
	hook := fmt.Sprintf("#!/bin/sh\nexec '%s' hook send --url '%s/hooks/github' --secret-file '%s'\n", os.Args[0],
		p.server.URL(), file)
	if err := os.WriteFile(filepath.Join(p.bare, "hooks", "post-receive"), []byte(hook), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// deliveries waits until n webhooks were processed, and returns them, newest first.
func (p *place) deliveries(n int) (out []intent.Delivery) {
	p.t.Helper()
	p.until(fmt.Sprint(n, " webhooks"), func() bool {
		page, err := p.store.Deliveries(p.t.Context(), p.env, intent.ListQuery{})
		if err != nil {
			p.t.Fatal(err)
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
	p := sharedWorld(t).newPlace(t)
	files := map[string]string{}
	for name, text := range mergeFiles(labModule, p.model([3]string{"a", "one", "calm"})) {
		files["shop/"+name] = text
	}
	p.push("a project in a folder", files)
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main", Subdir: "shop"},
		map[string]string{"webhook": "the-hook's-secret"})
	p.compiledWell()
	p.notify("the-hook's-secret")

	p.push("beside the project", map[string]string{"bank/main.cf": "x = 1\n", "README.md": "hello\n"})
	got := p.deliveries(1)[0]
	if o := got.Outcomes[0]; o.State != intent.OutcomeSkipped ||
		!strings.Contains(o.Reason, "nothing of shop changed") {
		t.Errorf("a push beside the project: %+v", o)
	}
	model := p.model([3]string{"a", "two", "calm"})
	p.push("in the project", map[string]string{"shop/main.cf": model["main.cf"]})
	second := p.compiledWell()
	if second.Revision.Subject != "in the project" {
		t.Errorf("compiled %+v", second.Revision)
	}
	p.git("checkout", "-q", "-b", "next")
	p.commit("elsewhere", map[string]string{"shop/other.cf": "y = 1\n"})
	p.git("push", "-q", "origin", "next")
	p.git("push", "-q", "origin", "--delete", "next")
	all := p.deliveries(4)
	if d := all[0]; !d.Event.Deleted || d.Outcomes[0].State != intent.OutcomeSkipped {
		t.Errorf("the deletion of a branch: %+v", d)
	}
	if o := all[1].Outcomes[0]; o.State != intent.OutcomeSkipped || o.Reason != "it follows main, not next" {
		t.Errorf("a push to another branch: %+v", o)
	}
	e, err := p.store.Environment(t.Context(), p.env)
	if err != nil {
		t.Fatal(err)
	}
	if list := p.must(t, "hook", "list", e.Name); !strings.Contains(list, "it follows main, not next") ||
		strings.Contains(list, "the-hook's-secret") {
		t.Errorf("ordain hook list:\n%s", list)
	}
	id := all[1].ID.String()
	if shown := p.must(t, "hook", "show", e.Name, id); !strings.Contains(shown, "refs/heads/next") {
		t.Errorf("ordain hook show:\n%s", shown)
	}
	if out := p.must(t, "hook", "redeliver", e.Name, id); !strings.Contains(out, "refs/heads/next") {
		t.Errorf("ordain hook redeliver:\n%s", out)
	}
	if d := p.deliveries(5)[0]; d.ReplayOf == nil || *d.ReplayOf != all[1].ID ||
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
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	t.Parallel()
	dir, err := worldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := (&world{dir: dir}).newPlace(t)
	p.push("a note", mergeFiles(labModule, p.model([3]string{"a", "one", "calm"})))
	c := startChild(t, dir)
	env := c.bind("file://" + p.bare)
	const secret = "the-hook's-secret"
	if err := c.client.Call(t.Context(), http.MethodPut, "/api/v2/environment/"+env+"/secret/webhook", env,
		map[string]any{"value": secret}, nil); err != nil {
		t.Fatal(err)
	}
	const n = 60
	var wg sync.WaitGroup
	answered := make(chan int, n)
	for i := range n {
		wg.Go(func() {
			answered <- sendPushHook(t, c.url, "file://"+p.bare, p.head(), secret, fmt.Sprint("burst-", i))
		})
	}
	wg.Wait()
	c.kill()
	close(answered)
	for status := range answered {
		if status != http.StatusAccepted {
			t.Errorf("answered %d", status)
		}
	}
	c = startChild(t, dir)
	c.until("/e/"+env+"/deliveries", func(ctx context.Context) (bool, string) {
		var rows []struct {
			State string `json:"state"`
		}
		err := c.client.Call(ctx, http.MethodGet, "/api/v2/deliveries?limit=100", env, nil, &rows)
		waiting := 0
		for _, r := range rows {
			if r.State == "waiting" {
				waiting++
			}
		}
		return err == nil && len(rows) == n &&
			waiting == 0, fmt.Sprintf("%d of %d webhooks, %d wait: %v", len(rows), n, waiting, err)
	})
	c.waitDeployed(env, 1)
}

// The database is killed in the middle of a burst of webhooks. Every webhook that was
// accepted is recorded. The others were answered with "try again", and after that each
// of them is recorded once.
func TestAnsweredWebhooksSurviveAKilledDatabase(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, nil)
	p := w.newPlace(t)
	p.push("a note", mergeFiles(labModule, p.model([3]string{"a", "one", "calm"})))
	const secret, n, connections = "the-hook's-secret", 300, 8
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, map[string]string{"webhook": secret})
	p.compiledWell()
	head, url := p.head(), w.server.URL()
	send := func(i int) int { return sendPushHook(t, url, "file://"+p.bare, head, secret, fmt.Sprint("burst-", i)) }

	answers, next, answered := make([]int, n), atomic.Int64{}, atomic.Int64{}
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				answers[i] = send(i)
				if answered.Add(1) == n/3 {
					if err := syscall.Kill(postmaster(t, w), syscall.SIGKILL); err != nil {
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
		waitFor(t, func() bool { second = send(i); return second != http.StatusServiceUnavailable },
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
	if page, err := p.store.Deliveries(t.Context(), p.env, intent.ListQuery{}); err != nil || page.Total != n {
		t.Errorf("%d webhooks are recorded, want %d: %v", page.Total, n, err)
	}
}
