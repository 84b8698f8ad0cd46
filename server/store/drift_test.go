package store_test

import (
	"cmp"
	"fmt"
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

// drifting is an environment with one resource that is as intended.
type drifting struct {
	t       *testing.T
	s       *store.Store
	env     intent.EnvironmentID
	rs      []intent.Resource
	version int
}

func newDrifting(t *testing.T) *drifting {
	d := &drifting{t: t, s: storetest.Open(t), rs: resources(2)}
	d.env = newEnvironment(t, d.s)
	d.version = release(t, d.s, d.env, d.rs)
	for _, st := range states(t, d.s, d.env) {
		must(t, d.s.FinishActions(t.Context(), d.env, []intent.FinishedAction{deployed(st, d.version, 1)}))
	}
	return d
}

// finds records an action that reports drift of the first resource: attribute=found ….
func (d *drifting) finds(second int, r intent.DriftReport, found ...string) intent.FinishedAction {
	d.t.Helper()
	r.Found = map[string]intent.AttributeChange{}
	for _, pair := range found {
		name, value, _ := strings.Cut(pair, "=")
		r.Found[name] = intent.AttributeChange{Current: value, Desired: "right"}
	}
	st := states(d.t, d.s, d.env)[d.rs[0].ID]
	st.Drifted = r.Open && !r.Healed
	f := deployed(st, d.version, second)
	f.Drift = &r
	must(d.t, d.s.FinishActions(d.t.Context(), d.env, []intent.FinishedAction{f}))
	return f
}

// is compares the records, oldest first: "attribute found ending".
func (d *drifting) is(want ...string) {
	d.t.Helper()
	var got []string
	items := get(d.s.Drift(d.t.Context(), d.env, intent.ListQuery{Sort: "since"}))(d.t).Items
	slices.SortStableFunc(items, func(a, b intent.Drift) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Attribute, b.Attribute))
	})
	for _, x := range items {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", x.Attribute, x.Found, x.Ending)))
		if x.Version == 0 || string(x.Desired) != `"right"` || (x.Ended == nil) != (x.Ending == intent.DriftOpen) {
			d.t.Errorf("%+v", x)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		d.t.Errorf("got %v, want %v", got, want)
	}
}

// Drift is noticed, seen again, and ends in one of three ways; what is reported twice is recorded once.
func TestDriftFromNoticeToEnd(t *testing.T) {
	t.Parallel()
	d := newDrifting(t)
	reported := intent.DriftReport{Open: true, Complete: true}
	d.finds(10, reported, "mode=600", "owner=eve")
	d.is(`mode "600"`, `owner "eve"`)
	again := d.finds(20, reported, "mode=666")
	d.is(`mode "666"`, `owner "eve" gone`)
	must(t, d.s.FinishActions(t.Context(), d.env, []intent.FinishedAction{again})) // its answer was lost
	d.is(`mode "666"`, `owner "eve" gone`)
	first := get(d.s.Drift(t.Context(), d.env,
		intent.ListQuery{Filters: map[string][]string{"open": {"true"}}}))(t).Items[0]
	if !first.Since.Equal(after(9)) || !first.Seen.Equal(after(19)) {
		t.Errorf("since %s, seen %s", first.Since, first.Seen)
	}
	d.finds(30, intent.DriftReport{Healed: true, Complete: true}, "mode=666")
	d.is(`mode "666" healed`, `owner "eve" gone`)
	healed := d.finds(40, intent.DriftReport{Open: true, Healed: true, Complete: true}, "mode=777")
	must(t, d.s.FinishActions(t.Context(), d.env, []intent.FinishedAction{healed}))
	d.is(`mode "666" healed`, `owner "eve" gone`, `mode "777" healed`)
	d.finds(42, reported, "size=0")
	d.finds(44, intent.DriftReport{Healed: true, Complete: true}) // as intended again, nobody knows why
	d.is(`mode "666" healed`, `owner "eve" gone`, `mode "777" healed`, `size "0" gone`)
	if n := get(d.s.DeleteDriftBefore(t.Context(), d.env, after(45)))(t); n != 4 {
		t.Errorf("%d records were dropped", n)
	}
	d.finds(50, reported, "mode=\x00")
	d.version = release(t, d.s, d.env, changed(d.rs, 1, "another resource"))
	d.is(`mode "\ufffd"`)
	d.version = release(t, d.s, d.env, changed(d.rs, 0, "new"))
	d.is(`mode "\ufffd" superseded`)
	if st := states(t, d.s, d.env)[d.rs[0].ID]; st.Drifted {
		t.Error("the state still says that it drifted")
	}
}

// What a run found about an outdated intent opens no record; the records of a resource that leaves the model end.
func TestDriftOfAnOldIntent(t *testing.T) {
	t.Parallel()
	d := newDrifting(t)
	st := states(t, d.s, d.env)[d.rs[0].ID]
	late := deployed(st, d.version, 10)
	late.Drift = &intent.DriftReport{
		Open:  true,
		Found: map[string]intent.AttributeChange{"mode": {Current: "600", Desired: "right"}},
	}
	d.version = release(t, d.s, d.env, changed(d.rs, 0, "new"))
	must(t, d.s.FinishActions(t.Context(), d.env, []intent.FinishedAction{late}))
	d.is()
	d.finds(20, intent.DriftReport{Open: true}, "mode=600")
	release(t, d.s, d.env, d.rs[1:])
	d.is(`mode "600" superseded`)
	must(t, d.s.ClearEnvironment(t.Context(), d.env))
	d.is()
}

// Drift is listed by resource, and the list refuses what it does not know.
func TestDriftIsPaged(t *testing.T) {
	t.Parallel()
	d := newDrifting(t)
	var found []string
	for i := range 25 {
		found = append(found, fmt.Sprintf("a%02d=x", i))
	}
	d.finds(10, intent.DriftReport{Open: true}, found...)
	q, seen := intent.ListQuery{Limit: 10, Sort: "resource_id"}, 0
	for {
		page := get(d.s.Drift(t.Context(), d.env, q))(t)
		seen += len(page.Items)
		if page.Total != 25 {
			t.Fatalf("%d in all", page.Total)
		}
		if page.After == 0 {
			break
		}
		last := page.Items[len(page.Items)-1]
		name := last.Resource.String()
		q.After = &intent.Bound{Value: &name, ID: last.ID.String()}
	}
	if seen != 25 {
		t.Errorf("%d seen", seen)
	}
	_, err := d.s.Drift(t.Context(), d.env, intent.ListQuery{Filters: map[string][]string{"secret": {"x"}}})
	want(t, err, fault.Invalid)
}

// Parked resources are stored, listed, and freed by name or all together.
func TestParkedResourcesAreStoredAndFreed(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(3)
	n := release(t, s, env, rs)
	at := after(5)
	for i, r := range rs[:2] {
		f := deployed(states(t, s, env)[r.ID], n, 5+i)
		f.State.Compliance, f.State.LastRun, f.State.Attempts = intent.NonCompliant, intent.RunFailed, 20
		f.State.Parked, f.State.ParkedAt, f.State.FailedCode = intent.ParkedAttempts, &at, "code"
		f.State.Heals = []intent.Heal{{Of: "mode", At: at}}
		must(t, s.FinishActions(ctx, env, []intent.FinishedAction{f}))
		if st := states(t, s, env)[r.ID]; st.Parked != intent.ParkedAttempts || !st.ParkedAt.Equal(at) ||
			st.FailedCode != "code" ||
			len(st.Heals) != 1 ||
			!st.Heals[0].At.Equal(at) {
			t.Errorf("%+v", st)
		}
	}
	parked := func() int {
		return get(s.Resources(ctx, env, intent.ListQuery{Filters: map[string][]string{"parked": {"true"}}}))(t).Total
	}
	if parked() != 2 {
		t.Errorf("%d are listed", parked())
	}
	if freed := get(s.Unpark(ctx, env, []intent.ResourceID{rs[0].ID, rs[2].ID}))(t); len(freed) != 1 ||
		freed[0] != rs[0].ID ||
		parked() != 1 {
		t.Errorf("freed %v", freed)
	}
	if st := states(t, s, env)[rs[0].ID]; st.Attempts != 0 || st.FailedCode != "" || st.Heals != nil ||
		st.ParkedAt != nil {
		t.Errorf("%+v", st)
	}
	if freed := get(s.Unpark(ctx, env, nil))(t); len(freed) != 1 || parked() != 0 {
		t.Errorf("freed %v", freed)
	}
	_, err := s.Unpark(ctx, uuid.New(), nil)
	want(t, err, fault.NotFound)
	// A wrong program cannot write an impossible state.
	f := deployed(states(t, s, env)[rs[0].ID], n, 9)
	f.State.Parked = intent.ParkedAttempts
	want(t, s.FinishActions(ctx, env, []intent.FinishedAction{f}), fault.Conflict)
	f.Action.ID, f.State.ParkedAt, f.State.RetryAt = uuid.New(), &at, &at
	want(t, s.FinishActions(ctx, env, []intent.FinishedAction{f}), fault.Conflict)
	f.Action.ID, f.State.RetryAt = uuid.New(), nil // it is compliant, and parked all the same
	want(t, s.FinishActions(ctx, env, []intent.FinishedAction{f}), fault.Conflict)
}

// A breaker is recorded with the end of the deployment that opened it, and closes with one that reached the target.
func TestBreakersAreStored(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(1)
	n := release(t, s, env, rs)
	breaker := func() intent.Breaker { return get(s.Agents(ctx, env, intent.ListQuery{}))(t).Items[0].Breaker }
	since, probe := after(5), after(65)
	open := deployed(states(t, s, env)[rs[0].ID], n, 5)
	open.Breaker = &intent.Breaker{Since: &since, ProbeAt: &probe, Pause: time.Minute, Failures: 5}
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{open}))
	if b := breaker(); !b.Open() || !b.Since.Equal(since) || !b.ProbeAt.Equal(probe) || b.Pause != time.Minute ||
		b.Failures != 5 {
		t.Errorf("%+v", b)
	}
	closed := deployed(states(t, s, env)[rs[0].ID], n, 6)
	closed.Breaker = &intent.Breaker{}
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{closed}))
	if b := breaker(); b != (intent.Breaker{}) {
		t.Errorf("%+v", b)
	}
}

// In a database of an older server a contested resource counts as compliant. The newer one shows it as it is, with the
// drift that was reversed last.
func TestContestedResourcesOfAnOlderServer(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(2)
	n := release(t, s, env, rs)
	for i, r := range rs {
		for second := range 2 {
			at := after(5 + 10*second)
			f := deployed(states(t, s, env)[r.ID], n, 5+10*second)
			f.Drift = &intent.DriftReport{
				Found: map[string]intent.AttributeChange{"mode": {Current: second, Desired: 644}},
				Open:  true, Healed: i == 1 || second == 0,
			}
			if i == 0 && second == 1 {
				f.State.Compliance, f.State.Drifted, f.State.DeployedHash = intent.NonCompliant, true, ""
				f.State.Parked, f.State.ParkedAt = intent.ParkedContested, &at
			}
			must(t, s.FinishActions(ctx, env, []intent.FinishedAction{f}))
		}
	}
	must(t, store.BeforeParkedIsNotCompliant(ctx, s))
	all := states(t, s, env)
	if st := all[rs[0].ID]; st.Status() != intent.StatusNonCompliant || !st.Drifted || st.DeployedHash != "" {
		t.Errorf("%+v", st)
	}
	if st := all[rs[1].ID]; st.Status() != intent.StatusDeployed || st.Drifted {
		t.Errorf("%+v", st)
	}
	open := get(s.Drift(ctx, env, intent.ListQuery{Filters: map[string][]string{"open": {"true"}}}))(t)
	if len(open.Items) != 1 || open.Items[0].Resource != rs[0].ID || string(open.Items[0].Found) != "1" {
		t.Errorf("%+v", open.Items)
	}
}
