package deploys

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
)

// A command no longer fits the API. A person does everything from the command line:
// makes an environment, waits until its push is deployed, inspects it, changes
// settings, compares versions, makes a dry run, pauses, halts, and deletes it again.
func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	w := lab.SharedWorld(t)
	p := w.NewPlace(t)
	p.Push("a note", lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"})))
	lab.Mentions(
		t,
		w.Must(t, "environment", "create", "cli-lab", "--project", "cli", "--repo", "file://"+p.Bare, "--branch",
			"main"),
		"cli-lab",
		p.Bare,
	)
	lab.Mentions(t, w.Must(t, "project", "list"), "cli")
	envs, err := w.Store.Environments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range envs {
		if e.Name == "cli-lab" {
			p.Env = e.ID
		}
	}
	p.CompiledWell()
	p.Settled()
	w.Must(t, "environment", "sync", "cli-lab")
	second := p.CompiledWell()
	p.Settled()
	id := "lab::Note[desk,path=" + filepath.Join(p.Site, "a") + "]"
	lab.Mentions(t, w.Must(t, "resource", "list", "cli/cli-lab", "--status", "deployed"), id)
	lab.Mentions(t, w.Must(t, "resource", "show", "cli-lab", id), "attributes", "one")
	lab.Mentions(t, w.Must(t, "resource", "logs", "cli-lab", id), "deploy")
	lab.Mentions(t, w.Must(t, "version", "list", "cli-lab"), "active", "retired")
	lab.Mentions(t, w.Must(t, "compile-report", "list", "cli-lab"), "ordain environment sync")
	lab.Mentions(
		t,
		w.Must(t, "compile-report", "show", "cli-lab", second.ID.String()),
		"Recompiling configuration model",
	)
	lab.Mentions(t,
		w.Must(t, "settings", "set", "cli-lab", "auto_deploy", "false")+w.Must(t, "settings", "list", "cli-lab"),
		"auto_deploy", "false")
	w.Must(t, "settings", "reset", "cli-lab", "auto_deploy")
	if code, _, errs := w.Ordain(t, "", "settings", "set", "cli-lab", "follow_soak", "yesterday"); code != 1 ||
		errs != "ordain: setting follow_soak: \"yesterday\" cannot be read; write a number of seconds, or a "+
			"length of time such as 90 s, 10 min or 2 h\n" {
		t.Errorf("a setting that cannot be: %d %s", code, errs)
	}
	lab.Mentions(t, w.Must(t, "agent", "list", "cli-lab"), "desk", "up")
	lab.Mentions(t, w.Must(t, "executor", "list", "cli-lab"), "lab", "blueprint")
	lab.Mentions(t, w.Must(t, "executor", "disk", "cli-lab"), "venv", "code")
	if out := w.Must(t, "executor", "list", "cli-lab"); regexp.MustCompile(`\de\+\d`).MatchString(out) {
		t.Errorf("a number of bytes is not written out:\n%s", out)
	}
	w.Must(t, "agent", "pause", "cli-lab", "desk")
	lab.Mentions(t, w.Must(t, "agent", "list", "cli-lab"), "paused")
	w.Must(t, "agent", "unpause", "cli-lab", "desk")
	w.Must(t, "resource", "deploy", "cli-lab", "--repair")

	p.Push("changed", p.Model([3]string{"a", "two", "calm"}))
	third := p.CompiledWell()
	p.Settled()
	lab.Mentions(t,
		w.Must(t, "version", "diff", "cli-lab", strconv.Itoa(*second.Version), strconv.Itoa(*third.Version)), id,
		"modified", "two")
	run := strings.TrimSpace(w.Must(t, "dryrun", "start", "cli-lab", strconv.Itoa(*second.Version)))
	p.Until("the dry run", func() bool {
		out := w.Must(t, "dryrun", "show", "cli-lab", strconv.Itoa(*second.Version), run, "-o", "json")
		var found struct {
			Summary struct{ Todo int }
			Diff    []struct {
				Status     string
				Attributes map[string]struct {
					From string `json:"from_value"`
					To   string `json:"to_value"`
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &found); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if found.Summary.Todo > 0 {
			return false
		}
		if len(found.Diff) != 1 || found.Diff[0].Status != "modified" ||
			found.Diff[0].Attributes["text"].From != "two" ||
			found.Diff[0].Attributes["text"].To != "one" {
			t.Errorf("the dry run of the version before found %+v", found.Diff)
		}
		return true
	})
	if p.Note("a") != "two" {
		t.Errorf("the dry run changed the note to %q", p.Note("a"))
	}
	w.Must(t, "environment", "halt", "cli-lab")
	w.Must(t, "environment", "resume", "cli-lab")
	w.Must(t, "environment", "clear", "cli-lab")
	w.Must(t, "environment", "delete", "cli-lab")
	if code, _, errs := w.Ordain(t, "", "environment", "sync", "cli-lab"); code != 1 ||
		!strings.Contains(errs, "no environment cli-lab") {
		t.Errorf("a deleted environment: %d %s", code, errs)
	}
}

// A secret that was set from the command line can be read back, or does not work. A
// webhook with the secret starts a compile, one with another secret is rejected, and no
// command shows the secret.
func TestWebhookSecretFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := lab.SharedWorld(t)
	p := lab.NewDeployedPlace(t, w)
	e, err := w.Store.Environment(t.Context(), p.Env)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "a-secret-of-the-forge"
	if code, _, errs := w.Ordain(t, secret+"\n", "environment", "secret", e.Name, "webhook"); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := w.Ordain(t, "x", "environment", "secret", e.Name, "pin"); code != 1 ||
		!strings.Contains(errs, "webhook") {
		t.Errorf("an unknown secret: %d %s", code, errs)
	}
	body := `{"object_kind":"push","ref":"refs/heads/main","after":"` + strings.Repeat(
		"1",
		40,
	) + `","project":{"git_http_url":"file://` + p.Bare + `"},"repository":{"git_http_url":"file://` + p.Bare + `"}}`
	for token, want := range map[string]int{
		secret: http.StatusAccepted, "another": http.StatusUnauthorized, "": http.StatusUnauthorized,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.Server.URL()+"/hooks/gitlab",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Gitlab-Event", "Push Hook")
		req.Header.Set("X-Gitlab-Token", token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with the token %q the webhook answers %d, want %d", token, resp.StatusCode, want)
		}
	}
	if strings.Contains(
		w.Must(t, "environment", "list", "-o", "json")+w.Must(t, "settings", "list", e.Name, "-o", "json"),
		secret) {
		t.Error("the secret can be read back")
	}
}
