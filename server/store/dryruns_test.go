package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// A dry run of a commit is open until its commit is compiled and every resource has a result; once it has ended
// nothing is added. Its version is a preview, which cannot be released.
func TestADryRunOfACommit(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(4)
	base := release(t, s, env, rs)
	compile := uuid.New()
	run := intent.DryRun{
		ID:          uuid.New(),
		Environment: env,
		Date:        epoch,
		Commit:      "feature",
		Compile:     &compile,
		Base:        base,
		Filter:      intent.DryRunFilter{Agents: []string{"*"}, Resources: []intent.ResourceID{rs[0].ID}},
	}
	must(t, s.CreateDryRun(ctx, run))
	preview := version(env, rs[:2])
	preview.Preview = true
	n := get(s.StoreVersion(ctx, preview, epoch))(t)
	want(t, s.ReleaseVersion(ctx, env, n, epoch), fault.Conflict)
	if open := get(s.OpenDryRuns(ctx, env))(t); len(open) != 1 || open[0].State() != "compiling" ||
		!open[0].Filter.Match(rs[0].ID) ||
		open[0].Filter.Match(rs[1].ID) {
		t.Fatalf("%+v", open)
	}
	must(t, s.SetDryRunVersion(ctx, env, run.ID, n, 1))
	must(t, s.SetDryRunVersion(ctx, env, run.ID, n, 1)) // as when the answer was lost
	must(
		t,
		s.AddDryRunDiffs(ctx, env, run.ID,
			[]intent.ResourceDiff{{ID: rs[0].ID, Kind: intent.DiffUnknown, Reason: "no such folder\x00"}}),
	)
	must(
		t,
		s.EndDryRun(ctx, env, run.ID, intent.DryRunDone, "",
			map[intent.ResourceID]intent.ResourceID{rs[0].ID: rs[1].ID}, epoch.Add(-time.Hour)),
	)
	want(t, s.EndDryRun(ctx, env, run.ID, intent.DryRunCancelled, "", nil, epoch), fault.Conflict)
	want(t, s.AddDryRunDiffs(ctx, env, run.ID, []intent.ResourceDiff{{ID: rs[1].ID, Kind: intent.DiffUnmodified}}),
		fault.Conflict)
	got, diffs, err := s.DryRun(ctx, env, run.ID)
	must(t, err)
	if got.State() != "done" || got.Unknown != 1 || got.Complete() || got.Ended.Before(got.Date) ||
		diffs[0].Behind != rs[1].ID ||
		diffs[0].Reason != "no such folder\uFFFD" {
		t.Errorf("%+v %+v", got, diffs)
	}
	gone := get(s.GoneResources(ctx, env, base, n))(t)
	if !slices.Equal(gone, []intent.ResourceID{rs[2].ID, rs[3].ID}) {
		t.Errorf("%v", gone)
	}
	want(
		t,
		s.CreateDryRun(ctx,
			intent.DryRun{ID: uuid.New(), Environment: uuid.New(), Date: epoch, Commit: "x", Compile: &compile}),
		fault.NotFound,
	)
	must(t, s.ClearEnvironment(ctx, env))
	_, _, err = s.DryRun(ctx, env, run.ID)
	want(t, err, fault.NotFound)
}

// Facts are due when they expire, by their oldest, and when the model waits for them, until they are known.
func TestFactsThatAreDue(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(3)
	v := version(env, rs)
	v.Unknowns = []intent.Unknown{
		{Parameter: "ip", Resource: rs[1].ID, Source: "fact"},
		{Parameter: "region", Source: "user"},
	}
	n := get(s.StoreVersion(ctx, v, epoch))(t)
	must(t, s.ReleaseVersion(ctx, env, n, epoch))
	set := func(name string, r intent.ResourceID, value string, at time.Time, expires bool) {
		t.Helper()
		must(
			t,
			s.SetParameter(ctx, env,
				intent.Parameter{Name: name, Value: value, Source: "fact", Resource: r, Updated: at, Expires: expires}),
		)
	}
	set("a", rs[0].ID, "1", after(20), true)
	set("b", rs[0].ID, "1", after(10), true)
	set("c", rs[2].ID, "1", after(10), false)
	due := get(s.FactsDue(ctx, env))(t)
	if len(due) != 2 || due[0].Resource != rs[0].ID || !due[0].Updated.Equal(after(10)) ||
		due[1].Resource != rs[1].ID ||
		!due[1].Unknown {
		t.Fatalf("%+v", due)
	}
	if known := get(s.UnknownsKnown(ctx, env))(t); len(known) != 0 {
		t.Fatalf("%+v", known)
	}
	set("ip", rs[1].ID, "::1", after(30), true)
	if known := get(s.UnknownsKnown(ctx, env))(t); len(known) != 1 || known[0].Parameter != "ip" ||
		known[0].Resource != rs[1].ID {
		t.Fatalf("%+v", known)
	}
	must(t, s.RequestFacts(ctx, env, []intent.ResourceID{rs[0].ID, rs[1].ID}, epoch))
	must(t, s.RequestFacts(ctx, env, []intent.ResourceID{rs[0].ID}, after(5)))
	must(t, s.FactsAnswered(ctx, env, []intent.ResourceID{rs[1].ID}))
	if asked := get(s.FactRequests(ctx, env))(t); !slices.Equal(asked, []intent.ResourceID{rs[0].ID}) {
		t.Errorf("%v", asked)
	}
}
