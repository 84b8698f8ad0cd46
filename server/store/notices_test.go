package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// titles lists the titles of all notices, oldest first.
func titles(t *testing.T, s *store.Store, env intent.EnvironmentID) (out []string) {
	t.Helper()
	for _, n := range get(s.Notifications(t.Context(), env, intent.ListQuery{Sort: "created"}))(t).Items {
		out = append(out, n.Title)
	}
	return out
}

// A server may be killed at any moment: a notice is recorded in the transaction of what it is about, so that either
// both are there or neither is. Recorded a second time, because the answer was lost, it counts once.
func TestANoticeIsRecordedWithItsCause(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(3)
	number := release(t, s, env, rs)
	end := deployed(states(t, s, env)[rs[0].ID], number, 3)
	end.Notices = []intent.Notice{
		{Severity: intent.SeverityError, Title: "parked", URI: "/x"},
		{Severity: intent.SeverityError, Title: "breaker", URI: "/y"},
	}
	bad := deployed(states(t, s, env)[rs[1].ID], number, 3)
	bad.State.Compliance = "sideways"
	want(t, s.FinishActions(ctx, env, []intent.FinishedAction{end, bad}), fault.Conflict)
	if got := titles(t, s, env); len(got) != 0 {
		t.Fatalf("told of what was not recorded: %q", got)
	}
	for range 2 {
		must(t, s.FinishActions(ctx, env, []intent.FinishedAction{end}))
	}
	all := get(s.Notifications(ctx, env, intent.ListQuery{}))(t).Items
	if len(all) != 2 || all[0].Times != 1 || all[1].Times != 1 {
		t.Errorf("%+v", all)
	}
}

// Many equal notices at the same time become one that counts them all.
func TestNoticesAtTheSameTime(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	failed := make(chan error)
	for i := range 8 {
		go func() {
			failed <- store.AddNotice(ctx, s, env, intent.Notice{Severity: intent.SeverityInfo, Title: "same",
				URI: "/x"}, after(i))
		}()
	}
	for range 8 {
		must(t, <-failed)
	}
	all := get(s.Notifications(ctx, env, intent.ListQuery{}))(t).Items
	if len(all) != 1 || all[0].Times != 8 {
		t.Errorf("%+v", all)
	}
}

// A notice says who lets changes through, and another that this ended.
func TestOverridesAreNotified(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	now := time.Now().UTC().Truncate(time.Microsecond)
	o := intent.Override{
		ID:      uuid.New(),
		By:      "ann",
		Reason:  "the fix cannot wait",
		Agents:  []string{"web*"},
		Created: now,
		Until:   now.Add(time.Hour),
	}
	must(t, s.AddOverride(ctx, env, o))
	n := get(s.Notifications(ctx, env, intent.ListQuery{}))(t).Items[0]
	if n.Title != "ann lets changes through" || n.Severity != intent.SeverityWarning ||
		!strings.Contains(n.Message, "of web*: the fix cannot wait") {
		t.Errorf("%+v", n)
	}
	must(t, s.EndOverride(ctx, env, o.ID, intent.Actor{By: "bob", At: now.Add(time.Minute)}))
	want(t, s.EndOverride(ctx, env, o.ID, intent.Actor{By: "bob", At: now.Add(time.Minute)}), fault.Conflict)
	if got := titles(t, s, env); !slices.Equal(got, []string{"ann lets changes through", "bob ended an override"}) {
		t.Errorf("%q", got)
	}
}

// The end of a dry run is notified, with what it found or why it failed; that somebody cancelled it is not.
func TestTheEndOfADryRunIsNotified(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(3)
	number := release(t, s, env, rs)
	start := func(commit string) intent.ActionID {
		run := intent.DryRun{ID: uuid.New(), Environment: env, Date: epoch, Commit: commit}
		if compile := uuid.New(); commit != "" {
			run.Compile = &compile
		} else {
			run.Version, run.Total, run.Todo = number, 3, 3
		}
		must(t, s.CreateDryRun(ctx, run))
		return run.ID
	}
	ready := start("")
	must(
		t,
		s.AddDryRunDiffs(
			ctx,
			env,
			ready,
			[]intent.ResourceDiff{
				{ID: rs[0].ID, Kind: intent.DiffUnmodified},
				{ID: rs[1].ID, Kind: intent.DiffUnknown},
				{ID: rs[2].ID, Kind: intent.DiffUnknown},
			},
		),
	)
	must(t, s.EndDryRun(ctx, env, ready, intent.DryRunDone, "", nil, after(1)))
	must(t, s.EndDryRun(ctx, env, start("feature"), intent.DryRunFailed, "the model has errors", nil, after(2)))
	must(t, s.EndDryRun(ctx, env, start("other"), intent.DryRunCancelled, "", nil, after(3)))
	all := get(s.Notifications(ctx, env, intent.ListQuery{Sort: "created"}))(t).Items
	if len(all) != 2 || all[0].Title != "Dry run of version 1 ready" ||
		all[0].Message != "3 resources looked at: 2 unknown, 1 unchanged." ||
		all[0].URI != "/api/v2/dryrun/1/"+ready.String() ||
		all[1].Title != "Dry run of feature failed" ||
		all[1].Message != "the model has errors" || !all[0].Read || !all[1].Read {
		t.Errorf("%+v", all)
	}
}
