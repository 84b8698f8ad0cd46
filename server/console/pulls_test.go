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

// The page of a pull request says what would stop its commit after the merge: that the commit would be refused, that
// its version would be held, that changes would wait. It says nothing of the kind where nothing would.
func TestPreviewSaysWhatWouldStopIt(t *testing.T) {
	r, h := rich(t)
	ctx, env := t.Context(), r.Production.ID
	page := func(number, want string) {
		t.Helper()
		const strong, end = "<strong>It would ", "</p>"
		body := get(t, h, envURL(env)+"/pulls/"+number).Body.String()
		_, said, _ := strings.Cut(body, strong)
		said, _, _ = strings.Cut(said, end)
		if said != want || strings.Count(body, strong) > 1 {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
	page("7", "")
	must(t, r.Control.SetSetting(ctx, env, "maintenance_windows", map[string]any{
		"holidays": map[string]any{"kind": "freeze", "cron": "0 15 * * *", "duration": 7200},
	}))
	page("7", "wait:</strong> 3 of its changes: frozen by `holidays`, changes may start 2026-11-21 17:00 UTC.")
	must(t, r.Control.DeleteSetting(ctx, env, "maintenance_windows"))

	active, err := r.Store.Version(ctx, env, 7)
	must(t, err)
	deployed := active.Provenance.Commit
	pull := intent.PullRequest{
		Environment: env, Number: 8, State: intent.PullIsOpen, Title: "Keep one page", Author: "ida", Trusted: true,
		Base: "main", Head: deployed, Updated: r.Now(),
	}
	must(t, r.Store.SavePull(ctx, pull, false, r.Now()))
	previewIn(t, r, pull, r.FailedFile)
	page("8", "be held:</strong> it takes away 203 of 204 resources, more than 20%: 152 fs::File, 41 fs::Directory, "+
		"10 web::Site.")
	must(t, r.Control.SetSetting(ctx, env, "prune_share", 100))
	page("8", "")
	must(t, r.Control.SetSetting(ctx, env, "git_verify", "tip"))
	page("8", "be refused as it is:</strong> commit "+short(deployed)+" by Noor Haddad may not be deployed: it is not "+
		"signed; sign it with a key that git_allowed_signers names, or add the key there (or merge it with a commit "+
		"that is signed).")
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
