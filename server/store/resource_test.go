package store_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

func start(t testing.TB, s *store.Store, env intent.EnvironmentID, id intent.ResourceID, second int) intent.Action {
	t.Helper()
	a := intent.Action{ID: uuid.New(), Kind: intent.ActionDeploy, Resource: id, Version: 1, Started: after(second)}
	must(t, s.StartActions(t.Context(), env, []intent.Action{a}))
	must(t, s.StartActions(t.Context(), env, []intent.Action{a})) // as when the answer was lost
	return a
}

// A deployment from its start to its end, as the pages of the resource show it.
func TestDeploymentIsRecorded(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(9)
	n := release(t, s, env, rs)
	id := rs[4].ID
	a := start(t, s, env, id, 5)
	if st := states(t, s, env)[id]; st.Status() != intent.StatusDeploying {
		t.Fatalf("it is being deployed: %+v", st)
	}
	if open := get(s.Actions(ctx, env, id, intent.ActionDeploy, 1))(t); len(open) != 1 || open[0].Finished != nil ||
		open[0].Status != intent.StatusDeploying {
		t.Fatalf("open action: %+v", open)
	}
	end := deployed(states(t, s, env)[id], n, 7)
	end.Action.ID, end.Action.Started = a.ID, a.Started
	end.Action.Messages = []intent.LogLine{
		{
			Level:     "DEBUG",
			Message:   "Calling read_resource",
			Time:      after(5),
			Arguments: json.RawMessage(`{"odd":"\u0000\ud83d\ude00\udead"}`),
		},
		{Level: "WARNING", Message: "zero \x00 and \xff", Time: after(6)},
		{Level: "ERROR", Message: "it Burns", Time: after(6)},
	}
	end.Facts = []intent.Parameter{{Name: "ip", Value: "10.0.0.1", Source: "fact", Updated: after(7), Expires: true}}
	for range 2 {
		must(t, s.FinishActions(ctx, env, []intent.FinishedAction{end}))
	}
	d := get(s.Resource(ctx, env, id))(t)
	if d.State.Status() != intent.StatusDeployed || !d.State.LastSuccess.Equal(after(7)) || d.State.LastDeployed != n ||
		!d.FirstGenerated.Equal(epoch) ||
		d.Resource.Version != n {
		t.Errorf("detail: %+v", d)
	}
	if !cmp.Equal(d.RequiresStatus, map[intent.ResourceID]intent.Status{rs[0].ID: intent.StatusAvailable}) ||
		!cmp.Equal(d.Provides, []intent.ResourceID{rs[8].ID}) {
		t.Errorf("requires %v, provides %v", d.RequiresStatus, d.Provides)
	}
	got := get(s.Actions(ctx, env, id, "", 10))(t)
	if len(got) != 1 || got[0].Status != intent.StatusDeployed || !got[0].Finished.Equal(after(7)) ||
		len(got[0].Messages) != 3 ||
		!cmp.Equal(got[0].Changes, end.Action.Changes) ||
		got[0].Messages[1].Message != "zero \uFFFD and \uFFFD" {
		t.Errorf("action: %+v", got)
	}
	for name, test := range map[string]struct {
		filters map[string][]string
		want    []string
	}{
		"all, newest first": {nil, []string{"it Burns", "zero \uFFFD and \uFFFD", "Calling read_resource"}},
		"minimal level": {map[string][]string{"minimal_log_level": {"warning"}},
			[]string{"it Burns", "zero \uFFFD and \uFFFD"}},
		"part of message": {map[string][]string{"message": {"BURN", "read_"}},
			[]string{"it Burns", "Calling read_resource"}},
		"time": {map[string][]string{"timestamp": {"ge:2026-11-21+12:00:05",
			"lt:2026-11-21 12:00:06+00:00"}}, []string{"Calling read_resource"}},
		"action": {map[string][]string{"action": {"dryrun"}}, nil},
	} {
		page := get(s.ResourceLogs(ctx, env, id, intent.ListQuery{Filters: test.filters}))(t)
		var texts []string
		for _, l := range page.Items {
			texts = append(texts, l.Message)
		}
		if !cmp.Equal(texts, test.want) || page.Total != len(test.want) {
			t.Errorf("%s: %q of %d", name, texts, page.Total)
		}
	}
	if f := get(s.Parameter(ctx, env, "ip", id))(t); f.Value != "10.0.0.1" || f.Resource != id {
		t.Errorf("fact: %+v", f)
	}
	_, err := s.Resource(ctx, env, file("nobody", 1))
	want(t, err, fault.NotFound)
}

// A newer intent arrives while a resource is being deployed: the end of the older deployment does not count for the
// new intent.
func TestNewerIntentOutlivesTheEndOfAnOlderDeployment(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(1)
	id := rs[0].ID
	n := release(t, s, env, rs)
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{deployed(states(t, s, env)[id], n, 3)}))
	n = release(t, s, env, changed(rs, 0, "second"))
	start(t, s, env, id, 4)
	older := deployed(states(t, s, env)[id], n, 6)
	release(t, s, env, rs) // back to the first, while the second is on its way
	if st := states(t, s, env)[id]; st.Compliance != intent.HasUpdate {
		t.Fatalf("what runs spoils it: %+v", st)
	}
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{older}))
	st := states(t, s, env)[id]
	if st.Compliance != intent.HasUpdate || st.DeployedHash != "second" || st.IntentHash != rs[0].AttributeHash ||
		st.IsDeploying ||
		st.Status() != intent.StatusAvailable {
		t.Errorf("%+v", st)
	}
}

// The server was killed while something that was as intended was deployed again, and something else was about to be:
// their state is unknown, also when the server is killed again before it has deployed them, and when the intent goes
// back. With forget they stay as they were.
func TestCutOffIsNotAsIntended(t *testing.T) {
	t.Parallel()
	for _, forget := range []bool{false, true} {
		s, ctx := storetest.Open(t), t.Context()
		env := newEnvironment(t, s)
		rs := resources(3)
		n := release(t, s, env, rs)
		var ends []intent.FinishedAction
		for _, st := range states(t, s, env) {
			ends = append(ends, deployed(st, n, 2))
		}
		must(t, s.FinishActions(ctx, env, ends))
		start(t, s, env, rs[0].ID, 3)
		must(t, s.SetAhead(ctx, env, []intent.Ahead{{Resource: rs[1].ID, Action: uuid.New()}}))
		for range 2 {
			get(s.ResetDeploying(ctx, env, after(9), forget))(t)
		}
		release(t, s, env, changed(rs, 0, "second"))
		release(t, s, env, rs)
		for i, r := range rs {
			st := states(t, s, env)[r.ID]
			if known := forget || i == 2; st.IsDeploying || known != (st.Compliance == intent.Compliant) ||
				known != (st.DeployedHash != "") {
				t.Errorf("forget %t: %+v", forget, st)
			}
		}
	}
}

// The server was killed in the middle of deployments.
func TestOpenActionsOfAKilledServerAreCancelled(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(3)
	release(t, s, env, rs)
	a := start(t, s, env, rs[0].ID, 1)
	start(t, s, env, rs[1].ID, 1)
	if n := get(s.ResetDeploying(ctx, env, after(9), false))(t); n != 2 {
		t.Errorf("%d actions were open", n)
	}
	for id, st := range states(t, s, env) {
		if st.IsDeploying {
			t.Errorf("%s is still deploying", id)
		}
	}
	late := deployed(states(t, s, env)[rs[0].ID], 1, 20)
	late.Action.ID = a.ID
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{late}))
	if got := get(s.Actions(ctx, env, rs[0].ID, "", 1))(t); got[0].Status != intent.StatusCancelled ||
		!got[0].Finished.Equal(after(9)) {
		t.Errorf("what ended stays as it ended: %+v", got)
	}
	if n := get(s.DeleteActionsBefore(ctx, env, after(5)))(t); n != 2 {
		t.Errorf("%d actions were dropped", n)
	}
}

// The tables refuse impossible states, no matter which code writes them.
func TestConstraintsRefuseWrongStates(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(1)
	n := release(t, s, env, rs)
	good := deployed(states(t, s, env)[rs[0].ID], n, 3)
	for name, spoil := range map[string]func(*intent.FinishedAction){
		"undefined but not blocked": func(d *intent.FinishedAction) { d.State.Compliance = intent.Undefined },
		"no such compliance":        func(d *intent.FinishedAction) { d.State.Compliance = "fine" },
		"never ran, yet it did":     func(d *intent.FinishedAction) { d.State.LastRun = intent.RunNew },
		"deploying after its end":   func(d *intent.FinishedAction) { d.Action.Status = intent.StatusDeploying },
		"no such change":            func(d *intent.FinishedAction) { d.Action.Change = "melted" },
		"fewer than no attempts":    func(d *intent.FinishedAction) { d.State.Attempts = -1 },
	} {
		bad := good
		bad.Action.ID = uuid.New()
		spoil(&bad)
		if err := s.FinishActions(ctx, env, []intent.FinishedAction{bad}); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := good
	bad.Action.Finished = nil
	want(t, s.FinishActions(ctx, env, []intent.FinishedAction{bad}), fault.Invalid)
	c := enqueue(t, s, env, 1, nil)
	want(
		t,
		s.FinishCompile(ctx, c, intent.CompileEnd{Success: true, At: after(2)}),
		fault.Conflict,
	) // was never started
	if st := states(t, s, env)[rs[0].ID]; st.LastRun != intent.RunNew {
		t.Errorf("something was written: %+v", st)
	}
}

// The status that the database derives is the one that intent derives.
func TestStatusIsDerivedAlikeInSQLAndGo(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(81)
	release(t, s, env, rs)
	release(t, s, env, rs[:80]) // one orphan
	before := states(t, s, env)
	i := 0
	var done []intent.FinishedAction
	for _, compliance := range []intent.Compliance{intent.Compliant, intent.HasUpdate, intent.NonCompliant,
		intent.Undefined} {
		for _, last := range []intent.HandlerResult{intent.RunNew, intent.RunSuccessful, intent.RunFailed,
			intent.RunSkipped} {
			for _, blocked := range []intent.Blocked{intent.NotBlocked, intent.IsBlocked, intent.TemporarilyBlocked} {
				for _, deploying := range []bool{false, true} {
					if compliance == intent.Undefined && blocked != intent.IsBlocked || i == 80 {
						continue
					}
					d := deployed(before[rs[i].ID], 1, 3)
					d.State.Compliance, d.State.LastRun = compliance, last
					d.State.Blocked, d.State.IsDeploying = blocked, deploying
					if last == intent.RunNew {
						d.State.LastRunAt = nil
					}
					done = append(done, d)
					i++
				}
			}
		}
	}
	must(t, s.FinishActions(ctx, env, done))
	expected := map[intent.Status]int{}
	for _, st := range states(t, s, env) {
		expected[st.Status()]++
	}
	for status, n := range expected {
		page := get(s.Resources(ctx, env, intent.ListQuery{Filters: map[string][]string{"status": {string(status)}}}))(
			t,
		)
		if page.Total != n {
			t.Errorf("%s: %d in SQL, %d in Go", status, page.Total, n)
		}
		for _, r := range page.Items {
			if r.State.Status() != status {
				t.Errorf("%s is listed as %s", r.State.Status(), status)
			}
		}
	}
	if len(expected) != 9 {
		t.Errorf("the test covers only %v", expected)
	}
}

func TestHistoryShowsEachChangeOfIntent(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(2)
	for i, hash := range []string{"a", "a", "b", "a"} {
		n := get(s.StoreVersion(ctx, version(env, changed(rs, 0, hash)), after(i)))(t)
		must(t, s.ReleaseVersion(ctx, env, n, after(i)))
	}
	get(s.StoreVersion(ctx, version(env, changed(rs, 0, "candidate")), after(9)))(t)
	page := get(s.ResourceHistory(ctx, env, rs[0].ID, intent.ListQuery{}))(t)
	var got []string
	for _, h := range page.Items {
		got = append(got, fmt.Sprint(h.Version, h.AttributeHash))
	}
	if !cmp.Equal(got, []string{"4a", "3b", "1a"}) {
		t.Errorf("history: %v", got)
	}
}

func TestAgentsArePausedByNameOrAllTogether(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	release(t, s, env, resources(6))
	at := after(9)
	must(t, s.SetAgentPaused(ctx, env, "host1", true, intent.Actor{By: "ann", At: after(9)}))
	must(t, s.SetAgentPaused(ctx, env, "not yet there", true, intent.Actor{By: "ann", At: after(9)}))
	page := get(s.Agents(ctx, env, intent.ListQuery{}))(t)
	if expected := []intent.Agent{{Name: "host0", Resources: 2},
		{Name: "host1", Paused: true, PausedBy: "ann", PausedAt: &at, Resources: 2}, {Name: "host2", Resources: 1},
		{Name: "host3", Resources: 1}, {Name: "not yet there", Paused: true, PausedBy: "ann",
			PausedAt: &at}}; !cmp.Equal(page.Items, expected) {
		t.Error(cmp.Diff(expected, page.Items))
	}
	must(t, s.SetAgentPaused(ctx, env, "", true, intent.Actor{By: "ann", At: after(9)}))
	if p := get(s.Agents(ctx, env, intent.ListQuery{Filters: map[string][]string{"status": {"up"}}}))(t); p.Total != 0 {
		t.Errorf("not all are paused: %+v", p)
	}
	must(t, s.SetAgentPaused(ctx, env, "", false, intent.Actor{By: "ann", At: after(9)}))
	if p := get(s.Agents(ctx, env, intent.ListQuery{}))(t); p.Total != 4 {
		t.Errorf("agents: %+v", p)
	}
	want(t, s.SetAgentPaused(ctx, uuid.New(), "x", true, intent.Actor{By: "ann", At: after(9)}), fault.NotFound)
}

func TestDryRunCountsDown(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(3)
	n := get(s.StoreVersion(ctx, version(env, rs), epoch))(t)
	run := intent.DryRun{ID: uuid.New(), Environment: env, Version: n, Date: epoch, Total: 3, Todo: 3}
	must(t, s.CreateDryRun(ctx, run))
	missing := run
	missing.ID, missing.Version = uuid.New(), 9
	want(t, s.CreateDryRun(ctx, missing), fault.NotFound)
	one := intent.ResourceDiff{
		ID:         rs[0].ID,
		Kind:       intent.DiffModified,
		Attributes: map[string]intent.AttributeChange{"mode": {Current: "1", Desired: "2"}},
	}
	two := intent.ResourceDiff{
		ID:         rs[1].ID,
		Kind:       intent.DiffUnmodified,
		Attributes: map[string]intent.AttributeChange{},
	}
	must(t, s.AddDryRunDiffs(ctx, env, run.ID, []intent.ResourceDiff{one, one}))
	must(t, s.AddDryRunDiffs(ctx, env, run.ID, []intent.ResourceDiff{one, two}))
	got, diffs, err := s.DryRun(ctx, env, run.ID)
	must(t, err)
	if got.Todo != 1 || !cmp.Equal(diffs, []intent.ResourceDiff{one, two}) {
		t.Errorf("todo %d: %s", got.Todo, cmp.Diff([]intent.ResourceDiff{one, two}, diffs))
	}
	if all := get(s.DryRuns(ctx, env, n))(t); len(all) != 1 || all[0].ID != run.ID {
		t.Errorf("%+v", all)
	}
	want(t, s.AddDryRunDiffs(ctx, env, uuid.New(), nil), fault.NotFound)
	_, err = s.DryRuns(ctx, env, 5)
	want(t, err, fault.NotFound)
}

func TestParametersAndFacts(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	fact := intent.Parameter{
		ID:       uuid.New(),
		Name:     "ip",
		Value:    "1",
		Source:   "fact",
		Resource: file("a", 1),
		Updated:  epoch,
		Expires:  true,
	}
	parameter := intent.Parameter{
		ID:       uuid.New(),
		Name:     "ip",
		Value:    "2",
		Source:   "user",
		Updated:  epoch,
		Metadata: map[string]any{"k": "v"},
	}
	must(t, s.SetParameter(ctx, env, fact))
	must(t, s.SetParameter(ctx, env, parameter))
	again := parameter
	again.ID, again.Value = uuid.New(), "3"
	must(t, s.SetParameter(ctx, env, again))
	again.ID = parameter.ID // it keeps its id
	if got := get(s.Parameter(ctx, env, "ip", intent.ResourceID{}))(t); !cmp.Equal(got, again) {
		t.Error(cmp.Diff(again, got))
	}
	for facts, expected := range map[bool]string{false: "3", true: "1"} {
		if page := get(s.Parameters(ctx, env, facts, intent.ListQuery{}))(t); page.Total != 1 ||
			page.Items[0].Value != expected {
			t.Errorf("facts %v: %+v", facts, page)
		}
	}
	must(t, s.DeleteParameter(ctx, env, "ip", fact.Resource))
	want(t, s.DeleteParameter(ctx, env, "ip", fact.Resource), fault.NotFound)
	_, err := s.Parameter(ctx, env, "ip", fact.Resource)
	want(t, err, fault.NotFound)
	parameter.ID = uuid.New()
	want(t, s.SetParameter(ctx, uuid.New(), parameter), fault.NotFound)
}
