package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// take takes the work of an environment that is due.
func take(t *testing.T, s *store.Store, env intent.EnvironmentID, now time.Time) *intent.Outbox {
	t.Helper()
	work, _, err := s.TakeOutbox(t.Context(), env, now, now.Add(time.Minute))
	must(t, err)
	return work
}

// The status of a commit is sent only with a token, the newest one only, again after a failure, and not for ever.
func TestCommitStatuses(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	compiled := func(success bool) {
		t.Helper()
		c := intent.Compile{
			ID:          uuid.New(),
			Environment: env,
			Requested:   epoch,
			Update:      true,
			Export:      true,
			Trigger:     intent.Trigger{Type: "api"},
		}
		must(t, s.EnqueueCompile(ctx, c))
		get(s.StartCompile(ctx, env, epoch))(t)
		must(
			t,
			s.SetCompileRevision(ctx, c.ID,
				intent.Revision{Commit: strings.Repeat("c", 40), Branch: "main", Time: epoch}),
		)
		must(t, s.FinishCompile(ctx, c.ID, intent.CompileEnd{Success: success, At: epoch}))
	}
	compiled(true)
	if got := get(s.Outbox(ctx, env, 10))(t); len(got) != 0 {
		t.Fatalf("without a token: %+v", got)
	}
	must(t, s.SetSecret(ctx, env, "forge-token", []byte("sealed")))
	compiled(true)
	compiled(false)
	all := get(s.Outbox(ctx, env, 10))(t)
	if len(all) != 1 || all[0].Payload.State != intent.CommitFailure ||
		!strings.HasPrefix(all[0].Payload.Context, "ordain/") ||
		!strings.Contains(all[0].Payload.Path, "/runs/") {
		t.Fatalf("%+v", all)
	}
	now := time.Now().Add(time.Hour)
	work := take(t, s, env, now)
	if work == nil {
		t.Fatal("nothing is due")
	}
	if left := take(t, s, env, now); left == nil || left.ID != work.ID {
		t.Fatalf("the next process does not find what a worker that vanished had taken: %+v", left)
	}
	compiled(true) // meanwhile
	must(t, s.OutboxSent(ctx, *work, now))
	if again := take(t, s, env, now); again == nil || again.Payload.State != intent.CommitSuccess {
		t.Fatalf("what is newer is lost: %+v", again)
	} else {
		must(t, s.OutboxFailed(ctx, *again, "away\x00", now.Add(time.Minute), false, now))
	}
	if take(t, s, env, now) != nil {
		t.Error("it is tried again at once")
	}
	must(t, s.DelayOutbox(ctx, env, now.Add(time.Hour)))
	if take(t, s, env, now.Add(30*time.Minute)) != nil {
		t.Error("the forge was not left alone")
	}
	last := take(t, s, env, now.Add(2*time.Hour))
	must(t, s.OutboxFailed(ctx, *last, "no such token", now, true, now))
	dead := get(s.Outbox(ctx, env, 10))(t)[0]
	if dead.State != intent.OutboxDead || dead.Attempts != 2 || get(s.UnreadNotifications(ctx, env))(t) != 1 {
		t.Errorf("%+v", dead)
	}
	must(t, s.RetryOutbox(ctx, env, dead.ID, now))
	want(t, s.RetryOutbox(ctx, env, dead.ID, now), fault.Conflict)
	must(t, s.SetSetting(ctx, env, "forge_statuses", false))
	must(t, s.OutboxSent(ctx, *take(t, s, env, now.Add(3*time.Hour)), now))
	compiled(true)
	if take(t, s, env, now.Add(9*time.Hour)) != nil {
		t.Error("it was told though forge_statuses is off")
	}
}

// A deployment is reported as pending when it is released, and again when it ends; a version that is overtaken is
// reported as cancelled.
func TestDeploymentStatuses(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	project := get(s.Environment(ctx, env))(t).ProjectID
	must(t, s.SetProjectSecret(ctx, project, "forge-token", []byte("sealed"))) // the project's token serves as well
	told := func() (out []string) {
		for _, w := range get(s.Outbox(ctx, env, 20))(t) {
			if strings.HasSuffix(w.Payload.Context, "/deploy") {
				out = append(out, w.Payload.Commit[:1]+" "+string(w.Payload.State)+" "+w.Payload.Description)
			}
		}
		return out
	}
	put := func(commit string) int {
		v := version(env, resources(3))
		v.Provenance.Commit = strings.Repeat(commit, 40)
		n := get(s.StoreVersion(ctx, v, epoch))(t)
		must(t, s.ReleaseVersion(ctx, env, n, epoch))
		return n
	}
	put("a")
	must(t, s.TellDeployment(ctx, env, epoch))
	if got := told(); len(got) != 1 || got[0] != "a pending Deploying" {
		t.Fatalf("%q", got)
	}
	put("b")
	got := strings.Join(told(), "\n")
	if !strings.Contains(got, "a cancelled Version 2 took its place") || !strings.Contains(got, "b pending Deploying") {
		t.Errorf("%s", got)
	}
}

// A commit that was reported as deployed no longer is when something else keeps changing one of its resources.
func TestAContestedResourceFailsTheDeploymentStatus(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	project := get(s.Environment(ctx, env))(t).ProjectID
	must(t, s.SetProjectSecret(ctx, project, "forge-token", []byte("sealed")))
	rs := resources(3)
	v := version(env, rs)
	v.Provenance.Commit = strings.Repeat("a", 40)
	n := get(s.StoreVersion(ctx, v, epoch))(t)
	must(t, s.ReleaseVersion(ctx, env, n, epoch))
	told := func(want string) {
		t.Helper()
		must(t, s.TellDeployment(ctx, env, epoch))
		for _, w := range get(s.Outbox(ctx, env, 20))(t) {
			if strings.HasSuffix(w.Payload.Context, "/deploy") {
				if got := string(w.Payload.State) + " " + w.Payload.Description; got != want {
					t.Errorf("%q, want %q", got, want)
				}
				return
			}
		}
		t.Error("nothing was reported")
	}
	ends := func(second int, r intent.Resource, change func(*intent.ResourceState)) {
		t.Helper()
		f := deployed(states(t, s, env)[r.ID], n, second)
		change(&f.State)
		must(t, s.FinishActions(ctx, env, []intent.FinishedAction{f}))
	}
	for i, r := range rs {
		ends(i, r, func(*intent.ResourceState) {})
	}
	told("success All 3 resources are deployed")
	at := after(9)
	ends(9, rs[1], func(st *intent.ResourceState) {
		st.Compliance, st.Drifted, st.DeployedHash = intent.NonCompliant, true, ""
		st.Parked, st.ParkedAt = intent.ParkedContested, &at
	})
	told("failure 2 of 3 resources are deployed: 1 non compliant")
	if freed := get(s.Unpark(ctx, env, nil))(t); len(freed) != 1 {
		t.Errorf("unparked %v", freed)
	}
	if got := states(t, s, env)[rs[1].ID].Status(); got != intent.StatusAvailable {
		t.Errorf("unparked, it is %s", got)
	}
	told("pending Deploying")
	ends(12, rs[1], func(st *intent.ResourceState) { st.Drifted = false })
	told("success All 3 resources are deployed")
}

// A person approves the commit that a pull request has, and no other; its preview is one dry run, whose end updates
// the comment.
func TestAPullRequest(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	p := intent.PullRequest{
		Environment: env,
		Number:      7,
		State:       intent.PullIsOpen,
		Title:       "x\x00",
		Author:      "mallory",
		Fork:        true,
		Base:        "main",
		Head:        one,
		Updated:     epoch,
	}
	must(t, s.SavePull(ctx, p, true, epoch))
	if got := get(s.PullRequest(ctx, env, 7))(t); got.PreviewState() != intent.PreviewApproval {
		t.Fatalf("%+v", got)
	}
	ida := intent.Actor{By: "ida", At: epoch}
	want(t, s.ApprovePull(ctx, env, 7, two, ida), fault.Conflict)
	want(t, s.ApprovePull(ctx, env, 8, one, ida), fault.NotFound)
	must(t, s.ApprovePull(ctx, env, 7, one, ida))
	compile := uuid.New()
	run := intent.DryRun{ID: uuid.New(), Environment: env, Date: epoch, Commit: one, Compile: &compile}
	if before, err := s.StartPullPreview(ctx, 7, run); err != nil || before != nil {
		t.Fatal(before, err)
	}
	if got := get(s.PullOfDryRun(ctx, env, run.ID))(t); got == nil || got.Number != 7 {
		t.Errorf("%+v", got)
	}
	for _, w := range get(s.Outbox(ctx, env, 10))(t) {
		must(t, s.OutboxSent(ctx, w, epoch))
	}
	must(t, s.EndDryRun(ctx, env, run.ID, intent.DryRunFailed, "the model has errors", nil, epoch))
	if w := take(t, s, env, epoch.Add(time.Hour)); w == nil || w.Topic != "comment/7" {
		t.Errorf("the end of a preview is not told: %+v", w)
	}
	if got := get(s.PullRequest(ctx, env, 7))(t); got.PreviewState() != intent.PreviewFailed ||
		got.Preview.Reason == "" {
		t.Errorf("%+v", got)
	}
	p.Head = two
	must(t, s.SavePull(ctx, p, true, epoch))
	if got := get(s.PullRequest(ctx, env, 7))(t); got.PreviewState() != intent.PreviewApproval || got.MayRun() {
		t.Errorf("a push kept the approval: %+v", got)
	}
	if _, err := s.StartPullPreview(ctx, 7, intent.DryRun{ID: uuid.New(), Environment: env, Date: epoch, Commit: one,
		Compile: &compile}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a preview of a commit that is no more: %v", err)
	}
	p.State = intent.PullIsClosed
	must(t, s.SavePull(ctx, p, false, epoch))
	want(t, s.ApprovePull(ctx, env, 7, two, ida), fault.Conflict)
	must(t, s.ClearEnvironment(ctx, env))
	if got := get(s.PullRequests(ctx, env))(t); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// Once another commit is deployed, previews that were compared with the one before are computed again, one after the
// other, the oldest first.
func TestStalePreviewsAreComputedAgain(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	at := epoch
	deploy := func(commit string) int {
		at = at.Add(time.Hour)
		v := version(env, nil)
		v.Provenance.Commit = strings.Repeat(commit, 40)
		n := get(s.StoreVersion(ctx, v, at))(t)
		must(t, s.ReleaseVersion(ctx, env, n, at))
		return n
	}
	head := strings.Repeat("1", 40)
	preview := func(number, base int) intent.ActionID {
		at = at.Add(time.Second)
		compile := uuid.New()
		run := intent.DryRun{ID: uuid.New(), Environment: env, Date: at, Commit: head, Compile: &compile, Base: base}
		get(s.StartPullPreview(ctx, number, run))(t)
		return run.ID
	}
	end := func(id intent.ActionID, how intent.DryRunEnding) {
		t.Helper()
		must(t, s.EndDryRun(ctx, env, id, how, "x", nil, at))
	}
	stale := func(want int) {
		t.Helper()
		if got := get(s.StalePull(ctx, env, at.Add(-5*time.Minute)))(t); got != want {
			t.Errorf("%d is to be computed again, want %d", got, want)
		}
	}
	for _, p := range []intent.PullRequest{
		{Number: 1, Trusted: true}, {Number: 2, Trusted: true}, {Number: 3, Trusted: true,
			State: intent.PullIsClosed}, {Number: 4}, {Number: 5, Trusted: true, Problem: "the environment is halted"},
	} {
		p.Environment, p.Base, p.Head, p.Updated = env, "main", head, at
		if p.State == "" {
			p.State = intent.PullIsOpen
		}
		must(t, s.SavePull(ctx, p, false, at))
	}
	stale(0) // nothing is deployed
	first := deploy("a")
	stale(5)
	end(preview(5, first), intent.DryRunCancelled) // by a person, who is left alone
	end(preview(2, first), intent.DryRunFailed)
	end(preview(1, first), intent.DryRunFailed)
	stale(0)
	deploy("a") // the same commit, with other facts
	stale(0)
	second := deploy("b")
	stale(2)
	running := preview(2, second)
	stale(0) // one at a time
	end(running, intent.DryRunFailed)
	stale(1)
	end(preview(1, second), intent.DryRunFailed)
	stale(0)
	v := version(env, resources(2))
	v.Provenance.Commit = strings.Repeat("c", 40)
	at = at.Add(time.Hour)
	must(t, s.ReleaseVersion(ctx, env, get(s.StoreVersion(ctx, v, at))(t), at))
	stale(0) // it is being deployed
	at = at.Add(6 * time.Minute)
	stale(2) // for too long
}
