package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/servertest"
)

// The commits of the bakery.
const lemon, plum, burnt = "e9929bb", "a1219c5", "9a52d00"

// bakery is an environment with one resource, and a console of it.
type bakery struct {
	*servertest.Server
	t   *testing.T
	h   http.Handler
	env intent.EnvironmentID
	id  intent.ResourceID
}

func newBakery(t *testing.T) *bakery {
	t.Helper()
	s := servertest.New(t, servertest.Present)
	return &bakery{
		Server: s, t: t, h: newConsole(t, s), env: newEnvironmentIn(t, s, intent.Source{URL: servertest.RepositoryURL}),
		id: intent.ResourceID{Type: "fs::File", Agent: "web01", Attribute: "path", Value: "/srv/cakes.html"},
	}
}

// deploy compiles a commit, releases its version, and brings its resource about.
func (b *bakery) deploy(commit string) {
	b.t.Helper()
	number := compileIn(b.t, b.Server, b.env, commit, b.id)
	must(b.t, b.Control.Release(b.t.Context(), b.env, number))
	b.finish(number)
}

func (b *bakery) finish(number int) {
	b.t.Helper()
	at := b.Now()
	must(b.t, b.Store.FinishActions(b.t.Context(), b.env, []intent.FinishedAction{{
		Action: intent.Action{
			ID: uuid.New(), Environment: b.env, Kind: intent.ActionDeploy, Resource: b.id, Version: number,
			Started: at, Finished: &at, Status: intent.StatusDeployed,
		},
		State: intent.ResourceState{
			ID: b.id, Compliance: intent.Compliant, LastRun: intent.RunSuccessful, Blocked: intent.NotBlocked,
			LastRunAt: &at, LastSuccess: &at, LastDeployed: number, DeployedHash: "1", IntentHash: "1",
		},
	}}))
}

// page returns a page of the environment.
func (b *bakery) page(path string) string {
	b.t.Helper()
	return get(b.t, b.h, envURL(b.env)+path).Body.String()
}

// preview records the compile of a dry run that ended well.
func (b *bakery) preview(commit string) {
	b.t.Helper()
	ctx := b.t.Context()
	run := intent.Compile{
		ID: uuid.New(), Environment: b.env, Requested: b.Now(), Export: true, Trigger: intent.Trigger{Type: "dryrun"},
	}
	must(b.t, b.Store.StartPreview(ctx, run))
	must(b.t, b.Store.SetCompileRevision(ctx, run.ID, intent.Revision{Commit: commit + strings.Repeat("0", 33)}))
	must(b.t, b.Store.FinishCompile(ctx, run.ID, intent.CompileEnd{Success: true, At: b.Now()}))
}

// rowWith returns the row of a table with a text.
func rowWith(t *testing.T, page, text string) string {
	t.Helper()
	for _, row := range strings.Split(page, "<tr")[1:] {
		if row, _, _ = strings.Cut(row, "</tr>"); strings.Contains(row, text) {
			return row
		}
	}
	t.Fatalf("no row with %q in\n%s", text, page)
	return ""
}

// A dry run that goes well does not hide that the newest push failed: neither on the overview nor on the list of
// environments, which has that environment first, although its resources are as intended.
func TestADryRunHidesNoFailedPush(t *testing.T) {
	t.Parallel()
	b := newBakery(t)
	e, err := b.Store.Environment(t.Context(), b.env)
	must(t, err)
	_, err = b.Control.CreateEnvironment(t.Context(), control.NewEnvironment{
		Environment: intent.Environment{ProjectID: e.ProjectID, Name: "alpha"},
	})
	must(t, err)
	b.deploy(lemon)
	if page := b.page(""); !strings.Contains(page, "The one resource is as intended.") ||
		strings.Contains(page, `class="banner failed"`) {
		t.Errorf("before the push:\n%s", page)
	}
	compileIn(t, b.Server, b.env, burnt)
	b.preview(lemon)
	contains(t, b.page(""), "failed on "+burnt, "version 1 stays active", "The newest commit is not deployed.")
	home := get(t, newConsole(t, b.Server), "/").Body.String()
	contains(t, home, "The newest commit is not deployed. The one resource is as intended.")
	live, alpha := strings.Index(home, ">live</a></h2>"), strings.Index(home, ">alpha</a></h2>")
	if live < 0 || alpha < 0 || live > alpha {
		t.Errorf("the environment whose push failed is not the first one: %d, %d", live, alpha)
	}
}

// After a rollback, the overview says who rolled back from what and why, and the list of commits says which of them is
// deployed, in which version. A push that fails after that is not "in sync".
func TestARollbackIsSeen(t *testing.T) {
	t.Parallel()
	b := newBakery(t)
	b.deploy(lemon)
	b.deploy(plum)
	v, err := b.Control.RollBack(control.As(t.Context(), "Ada", "cakes are wrong"), b.env, 1)
	must(t, err)
	b.finish(v.Number)
	contains(t, b.page(""), "Ada rolled back from version 2 to 1", "cakes are wrong", plum+" is blocked",
		"Unblock "+plum, "Rolled back.")
	contains(t, b.page("/versions/3"), "Ada rolled back from version 2 to 1")
	if strings.Contains(b.page("/versions/2"), "Ada rolled back") {
		t.Error("the page of another version says how things stand")
	}
	page := b.page("/git")
	contains(t, rowWith(t, page, lemon+"0"), ">active<", `/versions/3"`)
	if row := rowWith(t, page, plum+"0"); !strings.Contains(row, "rolled back") || strings.Contains(row, ">active<") {
		t.Errorf("the commit that was rolled back is %s", row)
	}
	// Compiled once more, it is still one row, which says what is active and has both runs.
	compileIn(t, b.Server, b.env, lemon, b.id)
	page = b.page("/git")
	row, rows := rowWith(t, page, lemon+"0"), 0
	for _, other := range strings.Split(page, "<tr")[1:] {
		if strings.Contains(other, lemon+"0") {
			rows++
		}
	}
	contains(t, row, ">2 runs<", `/versions/4">version 4`, `/versions/3">version 3`)
	if state, _, _ := strings.Cut(row, "</td>"); rows != 1 || !strings.Contains(state, ">active<") ||
		strings.Index(row, ">version 4") > strings.Index(row, ">version 3") {
		t.Errorf("%d rows of a commit that was compiled twice, such as %s", rows, row)
	}
	must(t, b.Store.SetGitState(t.Context(), b.env, intent.GitState{
		Kind: intent.GitOK, Commit: burnt + strings.Repeat("0", 33), Checked: b.Now(),
	}))
	compileIn(t, b.Server, b.env, burnt)
	page = b.page("/git")
	contains(t, page, "fetched", "failed on "+burnt)
	if strings.Contains(page, "in sync") {
		t.Error("the repository is in sync, although what it has is not deployed")
	}
}

// Of a resource that does not exist yet, nothing is the same as desired.
func TestWhatDoesNotExistIsNotTheSame(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	at := r.Now()
	must(t, r.Store.FinishActions(t.Context(), r.Production.ID, []intent.FinishedAction{{
		Action: intent.Action{
			ID: uuid.New(), Environment: r.Production.ID, Kind: intent.ActionDeploy, Resource: r.FailedFile, Version: 7,
			Started: at, Finished: &at, Status: intent.StatusFailed,
			Changes: map[string]intent.AttributeChange{"purged": {Current: true, Desired: false}},
		},
		State: intent.ResourceState{
			ID: r.FailedFile, Compliance: intent.NonCompliant, LastRun: intent.RunFailed, Blocked: intent.NotBlocked,
			LastRunAt: &at, IntentHash: "1",
		},
	}}))
	page := get(t, h, paths(r)["resource-failed"]).Body.String()
	contains(t, page, "It does not exist yet.")
	if strings.Contains(page, ">same<") {
		t.Error("something is said to be the same")
	}
	// What differs comes first, the rest is folded, and then comes the log of the attempt.
	differs, folded := strings.Index(page, `<tr class="off">`), strings.Index(page, `id="desired-same"`)
	if log := strings.Index(page, `id="attempts"`); differs < 0 || folded < differs || log < folded {
		t.Errorf("what differs is at %d, the rest at %d, the log at %d", differs, folded, log)
	}
}

// Who made a dry run is not told by the bell that it has ended.
func TestADryRunRingsNoBell(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	unread := func() string {
		_, rest, _ := strings.Cut(get(t, h, envURL(r.Production.ID)).Body.String(), `id="bell"`)
		rest, _, _ = strings.Cut(rest, "</a>")
		return rest
	}
	before := unread()
	run := intent.DryRun{
		ID: uuid.New(), Environment: r.Production.ID, Date: r.Now(), Commit: "nosuchbranch", Compile: &r.Failed,
	}
	must(t, r.Store.CreateDryRun(t.Context(), run))
	must(t, r.Store.EndDryRun(t.Context(), r.Production.ID, run.ID, intent.DryRunFailed, "there is no such branch",
		nil, r.Now()))
	if now := unread(); now != before {
		t.Errorf("the bell was %s and is %s", before, now)
	}
	all := get(t, h, envURL(r.Production.ID)+"/notifications?show=all").Body.String()
	contains(t, all, "Dry run of nosuchbranch failed")
}

// A run that waits says for what, on its page and in the lists.
func TestARunSaysForWhatItWaits(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	run := intent.Compile{ID: uuid.New(), Environment: r.Production.ID, Requested: r.Now(), Update: true, Export: true}
	must(t, r.Store.EnqueueCompile(t.Context(), run))
	contains(t, get(t, h, runURL(r.Production.ID, run.ID)).Body.String(), "waits for the run before it",
		runURL(r.Production.ID, r.Running))
	contains(t, get(t, h, envURL(r.Production.ID)).Body.String(), "the run before it")
}

// The last part of the path above a run is its headline, which changes when the run has chosen a commit.
func TestThePathAboveARunIsLive(t *testing.T) {
	t.Parallel()
	r, server := live(t)
	ctx, env := t.Context(), r.Sandbox.ID
	run := intent.Compile{
		ID: uuid.New(), Environment: env, Requested: r.Now(), Update: true, Export: true,
		Trigger: intent.Trigger{Type: "console", Message: "Sync asked for"},
	}
	must(t, r.Store.EnqueueCompile(ctx, run))
	_, err := r.Store.StartCompile(ctx, env, r.Now())
	must(t, err)
	l := listen(t, server, runURL(env, run.ID)+"?live=1")
	l.until(fragmentWith("crumb", "Sync asked for"))
	must(t, r.Store.SetCompileRevision(ctx, run.ID, intent.Revision{
		Commit: lemon + strings.Repeat("0", 33), Subject: "Lemon cakes",
	}))
	r.Bus.Publish(bus.Event{Environment: env, Topic: bus.Compile})
	l.until(fragmentWith("crumb", "Lemon cakes"))
}

// A run that waits or runs can be cancelled on its page, with a name and a reason, and then says who did it.
func TestARunIsCancelledOnItsPage(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	page := runURL(r.Production.ID, r.Running)
	if body := get(t, h, page).Body.String(); !strings.Contains(body, "Cancel the run") ||
		!strings.Contains(body, `id="crumb"`) {
		t.Errorf("the page of a run that is under way:\n%s", body)
	}
	w := post(h, page+"/cancel", url.Values{"by": {"Ada"}, "reason": {"it hangs"}})
	if w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	body := get(t, h, page).Body.String()
	if !strings.Contains(body, "being cancelled") || !strings.Contains(body, "by Ada") ||
		!strings.Contains(body, "it hangs") || strings.Contains(body, "Cancel the run") {
		t.Errorf("after that:\n%s", body)
	}
}
