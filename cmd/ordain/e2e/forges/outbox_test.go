package forges

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/forge/forgetest"
	"ordain.dev/ordain/server/source"
)

// A forge that is down delays deployments or never gets its statuses. From the command
// line, pull requests are listed, shown and previewed again. While the forge is down,
// pushes are deployed, and statuses are sent when it is back. With a wrong token they
// fail for good, until a person sets the right token and retries.
func TestPullRequestsFromTheCommandLine(t *testing.T) {
	tool.Heavy(t, "runs a server beside a forge")
	t.Parallel()
	w := lab.SharedWorld(t)
	p, h := w.Hosted(t, "gitea", lab.Module)
	env := t.Name()
	if out := p.Must(t, "pull", "list", env); strings.Contains(out, "open") {
		t.Errorf("ordain pull list:\n%s", out)
	}
	head := p.Branch("origin", "feature", "main", p.Model([3]string{"kept", "two", "calm"}))
	h.Opens(7, "ida", lab.HostRepo, "feature")
	first := waitComment(p, h, 7, "+ text: two")
	lab.Mentions(t, p.Must(t, "pull", "list", env), "7", "open", "done", "ida", head, "A change")
	lab.Mentions(t, p.Must(t, "pull", "show", env, "7"), "#7 A change", "open, by ida", "- text: one", "+ text: two")
	for want, args := range map[string][]string{
		"not the number of a pull request":      {"pull", "show", env, "seven"},
		"no pull request 99":                    {"pull", "show", env, "99"},
		"name the commit to approve":            {"pull", "approve", env, "7", " "},
		"is not dead":                           {"forge", "retry", env, "1"},
		"approve ENVIRONMENT NUMBER COMMIT":     {"pull", "approve", env, "7"},
		"no environment " + env + "x":           {"pull", "list", env + "x"},
		"Input should be a valid integer":       {"forge", "retry", env, "x"},
		"no pull request 99 towards the branch": {"pull", "approve", env, "99", head},
	} {
		if code, _, errs := p.Ordain(t, "", args...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("ordain %v: %d %s; want %q", args, code, errs, want)
		}
	}
	before := previewOf(p, 7).Preview.ID
	p.Must(t, "pull", "preview", env, "7")
	p.Until("another preview", func() bool {
		q := previewOf(p, 7)
		return q.Preview.ID != before && q.PreviewState() == intent.PreviewDone
	})
	if last := waitComment(p, h, 7, "+ text: two"); last.ID != first.ID {
		t.Errorf("another comment: %+v", last)
	}

	// The forge is down.
	h.Answer(func(*http.Request) (int, http.Header, string) { return http.StatusBadGateway, nil, "down" })
	p.Push("while it is down", p.Model([3]string{"kept", "three", "calm"}))
	p.CompiledWell()
	p.Settled()
	if p.Note("kept") != "three" {
		t.Errorf("deployed: %q", p.Note("kept"))
	}
	p.Until("the failure to be listed",
		func() bool { return strings.Contains(p.Must(t, "forge", "outbox", env), "502") })
	h.Answer(nil)
	waitStatus(p, h, p.Head(), "deploy", "success")

	// A person sets a wrong token.
	if code, _, errs := p.Ordain(t, "not-the-token-of-anybody\n", "environment", "secret", env,
		source.SecretForgeToken); code != 0 {
		t.Fatal(errs)
	}
	p.Push("with a wrong token", p.Model([3]string{"kept", "four", "calm"}))
	p.CompiledWell()
	p.Settled()
	dead := map[int64]bool{}
	p.Until("dead work", func() bool {
		all, err := p.Store.Outbox(t.Context(), p.Env, 200)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			if o.State == intent.OutboxDead && o.Payload.Commit == p.Head() && o.Payload.State == intent.CommitSuccess {
				dead[o.ID] = true
			}
		}
		return len(dead) == 2
	})
	out := p.Must(t, "forge", "outbox", env)
	lab.Mentions(t, out, "dead", "401", "deploy/"+p.Head())
	if strings.Contains(out, "not-the-token") || strings.Contains(out, forgetest.Token) {
		t.Errorf("a token is shown:\n%s", out)
	}
	lab.Mentions(t, p.Must(t, "forge", "outbox", env, "-o", "json"), "token is wrong")
	if code, _, errs := p.Ordain(t, forgetest.Token+"\n", "environment", "secret", env,
		source.SecretForgeToken); code != 0 {
		t.Fatal(errs)
	}
	for id := range dead {
		p.Must(t, "forge", "retry", env, strconv.FormatInt(id, 10))
	}
	waitStatus(p, h, p.Head(), "compile", "success")
	waitStatus(p, h, p.Head(), "deploy", "success")
	out = p.Must(t, "forge", "outbox", env)
	for id := range dead {
		if !strings.Contains(out, strconv.FormatInt(id, 10)) {
			t.Errorf("%d is not listed:\n%s", id, out)
		}
	}
}
