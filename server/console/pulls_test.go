package console

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/servertest"
	"ordain.dev/ordain/server/source"
)

// Somebody connects a first forge: the page says what is missing, until nothing is; it shows what the forge is sent,
// and the webhook of a pull request links to its preview.
func TestWhatAForgeLacks(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	ctx := t.Context()
	page := func() string { return get(t, h, "/e/"+r.Staging.ID.String()+"/pulls").Body.String() }
	says := func(want, not string) {
		t.Helper()
		if body := page(); !strings.Contains(body, want) || strings.Contains(body, not) {
			t.Errorf("want %q and not %q:\n%s", want, not, body)
		}
	}
	says("no token of the forge is set", "One that is opened appears here by itself")
	says("pull_previews</a> is off", "ENVIRONMENT forge-token")
	must(t, r.Control.SetSetting(ctx, r.Staging.ID, "pull_previews", "trusted"))
	says("no token of the forge is set", "is off")
	must(t, r.Control.SetSecret(ctx, r.Staging.ID, source.SecretForgeToken, "x"))
	says("One that is opened appears here by itself", "no token")
	settings := get(t, h, "/e/"+r.Staging.ID.String()+"/settings").Body.String()
	if !strings.Contains(settings, `id="secret-forge-token"`) ||
		!strings.Contains(settings, "Set for this environment.") {
		t.Error("the settings, to which the page leads, have no form for the token")
	}

	env := "/e/" + r.Production.ID.String()
	for _, want := range []string{
		"look at pull request 3", "comment on pull request 7", "the forge answered 401 &lt;script",
	} {
		if body := get(t, h, env+"/pulls").Body.String(); !strings.Contains(body, want) {
			t.Errorf("nothing of %q:\n%s", want, body)
		}
	}
	waiting, err := r.Store.WaitingDeliveries(ctx, r.Production.ID, 100)
	must(t, err)
	at := r.Now()
	for _, d := range waiting {
		if d.Event.Pull != nil {
			must(t, r.Store.FinishDeliveries(ctx, r.Production.ID, map[uuid.UUID]intent.DeliveryOutcome{d.ID: {
				Environment: r.Production.ID, State: intent.OutcomeStarted, Handled: &at,
				Reason: "the forge is asked about pull request 12",
			}}))
		}
	}
	if body := get(t, h, env+"/deliveries").Body.String(); !strings.Contains(body, `href="`+env+`/pulls/12"`) {
		t.Errorf("no link to the preview:\n%s", body)
	}
}

// The page of a pull request is a review: numbers, checks, approvals, links to the forge. Its checks say what would
// stop the commit after the merge: that it would be refused, that its version would be held, that changes would wait.
// They say nothing of the kind where nothing would.
func TestPullPageIsAReview(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	ctx, env := t.Context(), r.Production.ID
	body := func(number string) string {
		t.Helper()
		return get(t, h, envURL(env)+"/pulls/"+number).Body.String()
	}
	check := func(number, name, word, want string) {
		t.Helper()
		page := body(number)
		before, after, found := strings.Cut(page, "<strong>"+name+"</strong> <span>")
		said, _, _ := strings.Cut(after, "</span>")
		line := before[max(0, strings.LastIndex(before, "<li>")):]
		if !found || said != want || !strings.Contains(line, "<span>"+word+"</span>") {
			t.Errorf("%s of %s says %q, want %s: %q", name, number, said, word, want)
		}
	}
	says := func(number string, want ...string) {
		t.Helper()
		page := body(number)
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("the page of %s does not contain %q", number, w)
			}
		}
	}
	says("7", "3 resources on 3 agents", "<dt>purged</dt><dd><strong>1</strong>",
		"<dt>agents</dt><dd><strong>3</strong>",
		`href="https://git.example.com/infra/model/pulls/7/files"`, "/pulls/7/commits/"+r.PullHead,
		"ida may write to the repository: no approval is needed", "Nothing would stop it; 2 checks would delay it.")
	check("7", "Approval", "passes", "its author may write to the repository")
	check("7", "Model", "passes", "it compiles")
	check("7", "Dry run", "waits", "2 resources could not be checked; run it again when their agents answer")
	check("7", "Base", "passes", "compared with version 7, which is deployed")
	check("7", "Signature", "not asked for", "git_verify is off")
	check("7", "Windows", "passes", "changes may start at any time")
	must(t, r.Control.SetSetting(ctx, env, "maintenance_windows", map[string]any{
		"holidays": map[string]any{"kind": "freeze", "cron": "0 15 * * *", "duration": 7200},
	}))
	check("7", "Windows", "waits",
		"3 of its changes: frozen by `holidays`, changes may start 2026-11-21 17:00 UTC")
	must(t, r.Control.DeleteSetting(ctx, env, "maintenance_windows"))

	says("12", "1 more approval needed.", "because it comes from a fork", "1 check would stop it")
	check("12", "Approval", "holds", "its code does not run here before one person approves it")
	must(t, r.Control.ApprovePull(ctx, env, 12, r.Stranger, "noor"))
	says("12", "noor approved", "was needed, and was given")
	check("12", "Approval", "passes", "approved by noor")

	active, err := r.Store.Version(ctx, env, 7)
	must(t, err)
	deployed := active.Provenance.Commit
	pull := intent.PullRequest{
		Environment: env, Number: 8, State: intent.PullIsOpen, Title: "Keep one page", Author: "ida", Trusted: true,
		Base: "main", Head: deployed, Updated: r.Now(),
	}
	must(t, r.Store.SavePull(ctx, pull, false, r.Now()))
	previewIn(t, r, pull, r.FailedFile)
	check("8", "Removal limits", "holds", "it takes away 203 of 204 resources, more than 20%: 152 fs::File, "+
		"41 fs::Directory, 10 web::Site; a person would have to confirm it")
	says("8", "203 resources of the active version are not in this one", "<dt>no longer managed</dt><dd><strong>203")
	must(t, r.Control.SetSetting(ctx, env, "prune_share", 100))
	check("8", "Removal limits", "passes", "it takes away 203 resources; more than 100% and at least 10 would be held")
	must(t, r.Control.SetSetting(ctx, env, "git_verify", "tip"))
	check("8", "Signature", "refused", "commit "+short(deployed)+" by Noor Haddad may not be deployed: it is not "+
		"signed; sign it with a key that git_allowed_signers names, or add the key there (or merge it with a commit "+
		"that is signed)")
}

// A pull request links to its files and its newest commit as each forge names them, and to nothing that is no web page.
func TestForgeLinks(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"https://h/o/r/pull/3": "https://h/o/r/pull/3/files https://h/o/r/pull/3/commits/c0ffee",
		"https://h/g/r/-/merge_requests/3/": "https://h/g/r/-/merge_requests/3/diffs " +
			"https://h/g/r/-/merge_requests/3/diffs?commit_id=c0ffee",
		"https://h/changes/3": "",
		"javascript:alert(1)": "",
	} {
		var got []string
		for i, l := range forgeLinks(intent.PullRequest{Number: 3, URL: page, Head: "c0ffee"}) {
			if i > 0 {
				got = append(got, l.URL)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", page, got)
		}
	}
}

// previewIn records the preview of a pull request whose model has only one resource.
func previewIn(t *testing.T, r *servertest.Rich, p intent.PullRequest, only intent.ResourceID) {
	t.Helper()
	ctx, env, at := t.Context(), p.Environment, r.Now()
	compile := intent.Compile{ID: uuid.New(), Environment: env, Requested: at, Update: true, Export: true}
	must(t, r.Store.StartPreview(ctx, compile))
	run := intent.DryRun{ID: uuid.New(), Environment: env, Commit: p.Head, Compile: &compile.ID, Date: at, Base: 7}
	_, err := r.Store.StartPullPreview(ctx, p.Number, run)
	must(t, err)
	v := intent.NewVersion{Environment: env, Preview: true}
	v.Provenance = intent.Provenance{Compile: compile.ID, Commit: p.Head, Branch: p.Base}
	v.Resources = []intent.Resource{{ID: only, Attributes: []byte(`{"purged": false}`), AttributeHash: "1"}}
	number, err := r.Store.StoreVersion(ctx, v, at)
	must(t, err)
	must(t, r.Store.FinishCompile(ctx, compile.ID, intent.CompileEnd{Success: true, Version: &number, At: at}))
	must(t, r.Store.SetDryRunVersion(ctx, env, run.ID, number, 1))
	must(t, r.Store.AddDryRunDiffs(ctx, env, run.ID, []intent.ResourceDiff{{ID: only, Kind: intent.DiffUnmodified}}))
	must(t, r.Store.EndDryRun(ctx, env, run.ID, intent.DryRunDone, "", nil, at))
}
