package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/cli"
)

// ordain runs a command against the server.
func (w *world) ordain(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(append(args, "--server", w.server.URL()), strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// must runs a command like ordain, and fails the test if the command fails.
func (w *world) must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := w.ordain(t, "", args...)
	if code != 0 {
		t.Fatalf("ordain %s ends with %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// A command no longer fits the API. A person does everything from the command line:
// makes an environment, waits until its push is deployed, inspects it, changes
// settings, compares versions, makes a dry run, pauses, halts, and deletes it again.
func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	p := w.newPlace(t)
	p.push("a note", mergeFiles(labModule, p.model([3]string{"a", "one", "calm"})))
	mentions(
		t,
		w.must(t, "environment", "create", "cli-lab", "--project", "cli", "--repo", "file://"+p.bare, "--branch",
			"main"),
		"cli-lab",
		p.bare,
	)
	mentions(t, w.must(t, "project", "list"), "cli")
	envs, err := w.store.Environments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range envs {
		if e.Name == "cli-lab" {
			p.env = e.ID
		}
	}
	p.compiledWell()
	p.settled()
	w.must(t, "environment", "sync", "cli-lab")
	second := p.compiledWell()
	p.settled()
	id := "lab::Note[desk,path=" + filepath.Join(p.site, "a") + "]"
	mentions(t, w.must(t, "resource", "list", "cli/cli-lab", "--status", "deployed"), id)
	mentions(t, w.must(t, "resource", "show", "cli-lab", id), "attributes", "one")
	mentions(t, w.must(t, "resource", "logs", "cli-lab", id), "deploy")
	mentions(t, w.must(t, "version", "list", "cli-lab"), "active", "retired")
	mentions(t, w.must(t, "compile-report", "list", "cli-lab"), "ordain environment sync")
	mentions(t, w.must(t, "compile-report", "show", "cli-lab", second.ID.String()), "Recompiling configuration model")
	mentions(t,
		w.must(t, "settings", "set", "cli-lab", "auto_deploy", "false")+w.must(t, "settings", "list", "cli-lab"),
		"auto_deploy", "false")
	w.must(t, "settings", "reset", "cli-lab", "auto_deploy")
	if code, _, errs := w.ordain(t, "", "settings", "set", "cli-lab", "follow_soak", "yesterday"); code != 1 ||
		errs != "ordain: setting follow_soak: yesterday is not of the type int\n" {
		t.Errorf("a setting that cannot be: %d %s", code, errs)
	}
	mentions(t, w.must(t, "agent", "list", "cli-lab"), "desk", "up")
	mentions(t, w.must(t, "executor", "list", "cli-lab"), "lab", "blueprint")
	mentions(t, w.must(t, "executor", "disk", "cli-lab"), "venv", "code")
	if out := w.must(t, "executor", "list", "cli-lab"); regexp.MustCompile(`\de\+\d`).MatchString(out) {
		t.Errorf("a number of bytes is not written out:\n%s", out)
	}
	w.must(t, "agent", "pause", "cli-lab", "desk")
	mentions(t, w.must(t, "agent", "list", "cli-lab"), "paused")
	w.must(t, "agent", "unpause", "cli-lab", "desk")
	w.must(t, "resource", "deploy", "cli-lab", "--repair")

	p.push("changed", p.model([3]string{"a", "two", "calm"}))
	third := p.compiledWell()
	p.settled()
	mentions(t,
		w.must(t, "version", "diff", "cli-lab", strconv.Itoa(*second.Version), strconv.Itoa(*third.Version)), id,
		"modified", "two")
	run := strings.TrimSpace(w.must(t, "dryrun", "start", "cli-lab", strconv.Itoa(*second.Version)))
	p.until("the dry run", func() bool {
		out := w.must(t, "dryrun", "show", "cli-lab", strconv.Itoa(*second.Version), run, "-o", "json")
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
	if p.note("a") != "two" {
		t.Errorf("the dry run changed the note to %q", p.note("a"))
	}
	w.must(t, "environment", "halt", "cli-lab")
	w.must(t, "environment", "resume", "cli-lab")
	w.must(t, "environment", "clear", "cli-lab")
	w.must(t, "environment", "delete", "cli-lab")
	if code, _, errs := w.ordain(t, "", "environment", "sync", "cli-lab"); code != 1 ||
		!strings.Contains(errs, "no environment cli-lab") {
		t.Errorf("a deleted environment: %d %s", code, errs)
	}
}

// A secret that was set from the command line can be read back, or does not work. A
// webhook with the secret starts a compile, one with another secret is rejected, and no
// command shows the secret.
func TestWebhookSecretFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	p := newDeployedPlace(t, w)
	e, err := w.store.Environment(t.Context(), p.env)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "a-secret-of-the-forge"
	if code, _, errs := w.ordain(t, secret+"\n", "environment", "secret", e.Name, "webhook"); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := w.ordain(t, "x", "environment", "secret", e.Name, "pin"); code != 1 ||
		!strings.Contains(errs, "webhook") {
		t.Errorf("an unknown secret: %d %s", code, errs)
	}
	body := `{"object_kind":"push","ref":"refs/heads/main","after":"` + strings.Repeat(
		"1",
		40,
	) + `","project":{"git_http_url":"file://` + p.bare + `"},"repository":{"git_http_url":"file://` + p.bare + `"}}`
	for token, want := range map[string]int{
		secret: http.StatusAccepted, "another": http.StatusUnauthorized, "": http.StatusUnauthorized,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL()+"/hooks/gitlab",
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
		w.must(t, "environment", "list", "-o", "json")+w.must(t, "settings", "list", e.Name, "-o", "json"),
		secret) {
		t.Error("the secret can be read back")
	}
}
