package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/promote"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// chain is production, which follows staging.
type chain struct {
	t                   *testing.T
	s                   *store.Store
	staging, production intent.Environment
	rs                  []intent.Resource
}

func newChain(t *testing.T, settings map[string]any) *chain {
	t.Helper()
	c := &chain{t: t, s: storetest.Open(t), rs: resources(2)}
	p := intent.Project{ID: uuid.New(), Name: "shop"}
	must(t, c.s.CreateProject(t.Context(), p))
	for name, e := range map[string]*intent.Environment{"staging": &c.staging, "production": &c.production} {
		*e = intent.Environment{
			ID:        uuid.New(),
			ProjectID: p.ID,
			Name:      name,
			Created:   epoch,
			Source:    intent.Source{URL: "file:///repo", Branch: "main"},
			Settings:  map[string]any{},
		}
		if name == "production" {
			e.Settings = settings
			e.Settings["follow"] = "staging"
		}
		must(t, c.s.CreateEnvironment(t.Context(), *e, nil))
	}
	return c
}

// deploys makes a commit the intent of staging; its resources are compliant a second later.
func (c *chain) deploys(commit string, second int) int {
	c.t.Helper()
	c.rs = changed(c.rs, 0, commit)
	n := c.version(c.staging.ID, commit)
	must(c.t, c.s.ReleaseVersion(c.t.Context(), c.staging.ID, n, after(second)))
	c.compliant(n, second+1)
	return n
}

func (c *chain) version(env intent.EnvironmentID, commit string) int {
	c.t.Helper()
	v := version(env, c.rs)
	v.Provenance.Commit, v.Provenance.Branch, v.Provenance.Subject = commit, "main", "about "+commit
	return get(c.s.StoreVersion(c.t.Context(), v, epoch))(c.t)
}

func (c *chain) compliant(version, second int) {
	c.t.Helper()
	for _, st := range states(c.t, c.s, c.staging.ID) {
		if st.Orphaned == 0 && st.Compliance != intent.Compliant {
			must(c.t,
				c.s.FinishActions(c.t.Context(), c.staging.ID, []intent.FinishedAction{deployed(st, version, second)}))
		}
	}
}

// breaks lets the deployment of the first resource fail.
func (c *chain) breaks(version, second int) {
	c.t.Helper()
	st := states(c.t, c.s, c.staging.ID)[c.rs[0].ID]
	f := deployed(st, version, second)
	f.State.Compliance, f.State.LastRun, f.Action.Status = intent.NonCompliant, intent.RunFailed, intent.StatusFailed
	must(c.t, c.s.FinishActions(c.t.Context(), c.staging.ID, []intent.FinishedAction{f}))
}

func (c *chain) judge(second int) *intent.Promotion {
	c.t.Helper()
	return get(c.s.JudgePromotion(c.t.Context(), c.production, &c.staging, "", after(second)))(c.t)
}

// waits compares what a promotion of a commit waits for.
func (c *chain) waits(second int, commit, why string) {
	c.t.Helper()
	p := c.judge(second)
	if p == nil || p.Commit != commit || p.State != intent.PromotionWaiting || promote.Waits(*p) != why {
		c.t.Errorf("at %d: %+v\nwant %s, %s", second, p, commit, why)
	}
}

// isPromoted checks that a commit is promoted now, with a compile of production.
func (c *chain) isPromoted(second int, commit string) intent.Promotion {
	c.t.Helper()
	p := c.judge(second)
	if p == nil || p.Commit != commit || p.State != intent.PromotionPromoted || p.Compile == nil {
		c.t.Fatalf("at %d: %+v", second, p)
	}
	open := get(c.s.OpenCompiles(c.t.Context(), c.production.ID))(c.t)
	if i := slices.IndexFunc(open, func(o intent.Compile) bool { return o.ID == *p.Compile }); i < 0 ||
		open[i].Trigger.Type != "promotion" ||
		!open[i].Export {
		c.t.Errorf("the compiles are %+v", open)
	}
	if again := c.judge(second + 1); again != nil {
		c.t.Errorf("promoted twice: %+v", again)
	}
	return *p
}

func (c *chain) by(second int) intent.Actor {
	return intent.Actor{By: "ida", Reason: "it is time", At: after(second)}
}

// Each gate holds a commit in turn and says why; with all of them open it is promoted, once.
func TestAPromotionWaitsForItsGates(t *testing.T) {
	t.Parallel()
	c := newChain(t, map[string]any{"follow_soak": 600, "follow_approval": true})
	if p := c.judge(0); p != nil {
		t.Errorf("with nothing deployed: %+v", p)
	}
	c.rs = changed(c.rs, 0, "commit-1")
	n := c.version(c.staging.ID, "commit-1")
	must(t, c.s.ReleaseVersion(t.Context(), c.staging.ID, n, after(10)))
	c.waits(
		11,
		"commit-1",
		"waits: soak until 12:10 UTC; 2 resources are not compliant: fs::File[host0,path=/etc/f00000], "+
			"fs::File[host1,path=/etc/f00001]; approval of this commit",
	)
	c.compliant(n, 12)
	c.waits(13, "commit-1", "waits: soak until 12:10 UTC; approval of this commit")
	// A failure restarts the soak, and durably so: all of it is read from the database.
	c.breaks(n, 120)
	c.waits(
		121,
		"commit-1",
		"waits: soak until 12:12 UTC, for fs::File[host0,path=/etc/f00000] failed at 12:02 UTC; 1 resource is not "+
			"compliant: fs::File[host0,path=/etc/f00000]; approval of this commit",
	)
	c.compliant(n, 130)
	// The same commit, compiled again, goes on soaking.
	again := c.version(c.staging.ID, "commit-1")
	must(t, c.s.ReleaseVersion(t.Context(), c.staging.ID, again, after(200)))
	c.waits(
		201,
		"commit-1",
		"waits: soak until 12:12 UTC, for fs::File[host0,path=/etc/f00000] failed at 12:02 UTC; approval of this "+
			"commit",
	)
	if p := c.judge(202); p.Version != again || !p.Since.Equal(after(10)) {
		t.Errorf("%+v", p)
	}
	if got := titles(t, c.s, c.production.ID); len(got) != 0 {
		t.Errorf("people heard of %q before it was their turn", got)
	}
	c.waits(721, "commit-1", "waits: approval of this commit")
	c.waits(722, "commit-1", "waits: approval of this commit")
	if got := titles(t, c.s, c.production.ID); !slices.Equal(got, []string{"A commit waits for approval"}) {
		t.Errorf("people heard of %q", got)
	}
	want(t, c.s.ApprovePromotion(t.Context(), c.production.ID, "commit-2", c.by(730)), fault.Conflict)
	must(t, c.s.ApprovePromotion(t.Context(), c.production.ID, "commit-1", c.by(730)))
	// It drifts after all, and the drift goes again.
	d := &drifting{t: t, s: c.s, env: c.staging.ID, rs: c.rs, version: again}
	d.finds(731, intent.DriftReport{Open: true}, "mode=777")
	c.waits(732, "commit-1", "waits: 1 record of drift is open: fs::File[host0,path=/etc/f00000] mode")
	d.finds(733, intent.DriftReport{Open: true, Healed: true}, "mode=777")
	p := c.isPromoted(734, "commit-1")
	if p.Version != again || p.Branch != "main" || p.Follows != "main" || p.Approved == nil || p.Approved.By != "ida" ||
		p.Approved.Reason != "it is time" {
		t.Errorf("%+v", p)
	}
	if did := get(c.s.Interventions(t.Context(), c.production.ID, 10))(t); len(did) != 1 ||
		did[0].Kind != intent.DidApprove ||
		!strings.Contains(did[0].Reason, "commit-1 of staging") {
		t.Errorf("%+v", did)
	}
	if last := get(c.s.LastPromoted(t.Context(), c.production.ID))(t); last == nil || last.Commit != "commit-1" {
		t.Errorf("%+v", last)
	}
}

// A newer commit replaces the one that waits: it soaks from the beginning, and an approval of the old one does not
// count.
func TestANewerCommitStartsOver(t *testing.T) {
	t.Parallel()
	c := newChain(t, map[string]any{"follow_soak": 600, "follow_approval": true})
	c.deploys("commit-1", 0)
	c.waits(60, "commit-1", "waits: soak until 12:10 UTC; approval of this commit")
	must(t, c.s.ApprovePromotion(t.Context(), c.production.ID, "commit-1", c.by(61)))
	c.deploys("commit-2", 300)
	c.waits(310, "commit-2", "waits: soak until 12:15 UTC; approval of this commit")
	c.waits(620, "commit-2", "waits: soak until 12:15 UTC; approval of this commit")
	all := get(c.s.Promotions(t.Context(), c.production.ID, 10))(t)
	if len(all) != 2 || all[1].State != intent.PromotionSuperseded ||
		promote.Text(all[1]) != "superseded: staging moved on to commit-" ||
		all[1].Approved == nil {
		t.Errorf("%+v", all)
	}
	must(t, c.s.ApprovePromotion(t.Context(), c.production.ID, "commit-2", c.by(621)))
	c.isPromoted(901, "commit-2")
}

// A commit that was taken back, or a partial one, is never promoted.
func TestWhatIsNotPromoted(t *testing.T) {
	t.Parallel()
	c := newChain(t, map[string]any{})
	c.deploys("commit-1", 0)
	c.isPromoted(10, "commit-1")
	must(t, c.s.PausePromotions(t.Context(), c.production.ID, true, c.by(11)))
	c.deploys("commit-2", 20)
	c.waits(22, "commit-2", "waits: ida paused promotions: it is time")
	// Staging takes commit-2 back while it waits.
	get(c.s.RollBack(t.Context(), c.staging.ID, 0, c.by(30)))(t)
	must(t, c.s.PausePromotions(t.Context(), c.production.ID, false, c.by(31)))
	if p := c.judge(32); p != nil {
		t.Errorf("after a rollback in staging: %+v", p)
	}
	if got := get(c.s.Promotions(t.Context(), c.production.ID, 1))(t)[0]; got.State != intent.PromotionSuperseded ||
		!strings.Contains(got.Reason, "staging was rolled back to version 1") {
		t.Errorf("%+v", got)
	}
	if _, err := c.s.Promote(t.Context(), c.production, c.staging, "commit-2", c.by(33)); !fault.Is(
		err,
		fault.Conflict,
	) {
		t.Errorf("a person promotes what was taken back: %v", err)
	}
	// The fix is promoted, and taken back in production: it is not promoted again.
	c.deploys("commit-3", 40)
	p := c.isPromoted(42, "commit-3")
	c.compiles(p, true)
	get(c.s.RollBack(t.Context(), c.production.ID, 0, c.by(50)))(t)
	c.deploys("commit-4", 60)
	c.isPromoted(62, "commit-4")
	c.deploys("commit-3", 70) // a branch that was reset
	c.waits(72, "commit-3", "waits: the commit is blocked here: ida took it back: it is time")
	if _, err := c.s.Promote(t.Context(), c.production, c.staging, "commit-3", c.by(73)); !fault.Is(err,
		fault.Conflict) ||
		!strings.Contains(err.Error(), "blocked") {
		t.Errorf("a person promotes what is blocked: %v", err)
	}
	must(t, c.s.UnblockCommit(t.Context(), c.production.ID, "commit-3", c.by(74)))
	c.isPromoted(75, "commit-3")
	for name, change := range map[string]func(*intent.Provenance){
		"no commit": func(p *intent.Provenance) { p.Commit = "" },
		"of a part": func(p *intent.Provenance) { p.Commit, p.PartialBase = "commit-5", 1 },
	} {
		v := version(c.staging.ID, c.rs)
		change(&v.Provenance)
		n := get(c.s.StoreVersion(t.Context(), v, epoch))(t)
		must(t, c.s.ReleaseVersion(t.Context(), c.staging.ID, n, after(80)))
		if p := c.judge(90); p != nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// compiles simulates the compile of a promotion in production, and the release of its version.
func (c *chain) compiles(p intent.Promotion, released bool) {
	c.t.Helper()
	run := get(c.s.StartCompile(c.t.Context(), c.production.ID, after(2000)))(c.t)
	for run != nil && run.ID != *p.Compile { // what was promoted before
		must(c.t, c.s.FinishCompile(c.t.Context(), run.ID, intent.CompileEnd{Success: true, At: after(2000)}))
		run = get(c.s.StartCompile(c.t.Context(), c.production.ID, after(2000)))(c.t)
	}
	must(c.t, c.s.SetCompileRevision(c.t.Context(), *p.Compile, intent.Revision{Commit: p.Commit, Branch: p.Branch}))
	if n := get(c.s.ActiveVersion(c.t.Context(), c.production.ID))(c.t); n == nil { // something to go back to
		must(c.t, c.s.ReleaseVersion(c.t.Context(), c.production.ID, c.version(c.production.ID, "commit-0"), after(1)))
	}
	n := c.version(c.production.ID, p.Commit)
	if released {
		must(c.t, c.s.ReleaseVersion(c.t.Context(), c.production.ID, n, after(45)))
	}
	must(c.t,
		c.s.FinishCompile(c.t.Context(), *p.Compile, intent.CompileEnd{Success: true, Version: &n, At: after(2000)}))
}

// A promotion shows its outcome, also when its commit compiles only at the second try.
func TestAPromotionShowsItsOutcome(t *testing.T) {
	t.Parallel()
	c := newChain(t, map[string]any{})
	c.deploys("commit-1", 0)
	p := c.isPromoted(10, "commit-1")
	newest := func() intent.Promotion { return get(c.s.Promotions(t.Context(), c.production.ID, 1))(t)[0] }
	run := get(c.s.StartCompile(t.Context(), c.production.ID, after(20)))(t)
	must(t, c.s.SetCompileRevision(t.Context(), run.ID, intent.Revision{Commit: "commit-1"}))
	must(t, c.s.FinishCompile(t.Context(), run.ID, intent.CompileEnd{At: after(21)}))
	if got := newest(); promote.Text(got) != "promoted; its compile failed" || got.Made != 0 {
		t.Errorf("%s: %+v", promote.Text(got), got)
	}
	id := enqueue(t, c.s, c.production.ID, 30, nil)
	p.Compile = &id
	c.compiles(p, true)
	if got := newest(); got.Made != 2 || promote.Text(got) != "promoted; it is version 2" {
		t.Errorf("%s: %+v", promote.Text(got), got)
	}
	// A compile of another commit says nothing about it.
	other := enqueue(t, c.s, c.production.ID, 40, nil)
	c.compiles(intent.Promotion{Compile: &other, Commit: "commit-x"}, false)
	if got := newest(); got.Made != 2 {
		t.Errorf("%+v", got)
	}
}

// A person promotes without waiting, and pauses promotions; both are recorded. A halted environment stays halted.
func TestAPersonPromotesAndPauses(t *testing.T) {
	t.Parallel()
	c := newChain(t, map[string]any{"follow_soak": 3600, "follow_approval": true})
	c.deploys("commit-1", 0)
	c.judge(2)
	must(t, c.s.PausePromotions(t.Context(), c.production.ID, true, c.by(3)))
	must(
		t,
		c.s.PausePromotions(t.Context(), c.production.ID, true,
			intent.Actor{By: "bob", Reason: "me too", At: after(4)}),
	)
	if by := get(c.s.PromotionPause(t.Context(), c.production.ID))(t); by == nil || by.By != "ida" ||
		!by.At.Equal(after(3)) {
		t.Errorf("paused by %+v", by)
	}
	c.waits(5, "commit-1", "waits: ida paused promotions: it is time; soak until 13:00 UTC; approval of this commit")
	c.production.Halted = true
	if _, err := c.s.Promote(t.Context(), c.production, c.staging, "commit-1", c.by(6)); !fault.Is(err,
		fault.Conflict) ||
		!strings.Contains(err.Error(), "halted") {
		t.Errorf("halted: %v", err)
	}
	c.production.Halted = false
	if _, err := c.s.Promote(t.Context(), c.production, c.staging, "commit-2", c.by(7)); !fault.Is(
		err,
		fault.Conflict,
	) {
		t.Errorf("another commit: %v", err)
	}
	p := get(c.s.Promote(t.Context(), c.production, c.staging, "commit-1", c.by(8)))(t)
	if p.State != intent.PromotionPromoted || p.Overridden == nil || p.Overridden.By != "ida" || len(p.Held()) != 3 {
		t.Errorf("%+v", p)
	}
	must(t, c.s.PausePromotions(t.Context(), c.production.ID, false, c.by(9)))
	did := ""
	for _, i := range get(c.s.Interventions(t.Context(), c.production.ID, 10))(t) {
		did += fmt.Sprintf("%s by %s: %s\n", i.Kind, i.By, i.Reason)
	}
	if want := "resume_promotions by ida: it is time\n" +
		"promote by ida: commit commit-1 of staging, which waited: ida paused promotions: it is time; soak until " +
		"13:00 UTC; approval of this commit: it is time\n" +
		"pause_promotions by ida: it is time\n"; did != want {
		t.Errorf("%s\nwant\n%s", did, want)
	}
	if p := c.judge(10); p != nil {
		t.Errorf("promoted twice: %+v", p)
	}
}

// An environment that is renamed is followed under its new name; when it is no longer followed nothing is left
// waiting.
func TestFollowingANewName(t *testing.T) {
	t.Parallel()
	c := newChain(t, map[string]any{"follow_soak": 3600})
	c.deploys("commit-1", 0)
	c.judge(2)
	renamed := c.staging
	renamed.Name = "rehearsal"
	must(t, c.s.UpdateEnvironment(t.Context(), renamed))
	if e := get(c.s.Environment(t.Context(), c.production.ID))(t); e.Follows() != "rehearsal" {
		t.Errorf("it follows %q", e.Follows())
	}
	if p := get(c.s.JudgePromotion(t.Context(), c.production, nil, "rehearsal is no more", after(5)))(t); p != nil {
		t.Errorf("%+v", p)
	}
	if got := get(c.s.Promotions(t.Context(), c.production.ID,
		1))(t)[0]; promote.Text(got) != "superseded: rehearsal is no more" {
		t.Errorf("%+v", got)
	}
	must(t, c.s.ClearEnvironment(t.Context(), c.production.ID))
	if got := get(c.s.Promotions(t.Context(), c.production.ID, 1))(t); len(got) != 0 {
		t.Errorf("after a clear: %+v", got)
	}
}
