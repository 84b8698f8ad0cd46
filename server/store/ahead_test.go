package store_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// What is ahead counts as being deployed until the log has the end of its action, and no longer once another list
// replaces the one that it was in. The next owner of a killed server's environment sees it once.
func TestWhatIsAheadCountsAsDeploying(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env, other := newEnvironment(t, s), newEnvironment(t, s)
	rs := resources(4)
	n := release(t, s, env, rs)
	release(t, s, other, rs)
	deploying := func(wanted ...intent.ResourceID) {
		t.Helper()
		all := states(t, s, env)
		for _, id := range wanted {
			if !all[id].IsDeploying {
				t.Errorf("%s is not deploying", id)
			}
			delete(all, id)
		}
		for id, st := range all {
			if st.IsDeploying {
				t.Errorf("%s is deploying", id)
			}
		}
		for id, st := range states(t, s, other) {
			if st.IsDeploying {
				t.Errorf("%s of another environment is deploying", id)
			}
		}
	}
	a, b, c := intent.Ahead{
		Resource: rs[0].ID,
		Action:   uuid.New(),
	}, intent.Ahead{
		Resource: rs[1].ID,
		Action:   uuid.New(),
	}, intent.Ahead{
		Resource: rs[2].ID,
		Action:   uuid.New(),
	}
	must(t, s.SetAhead(ctx, env, []intent.Ahead{a, b}))
	deploying(a.Resource, b.Resource)
	end := deployed(states(t, s, env)[a.Resource], n, 5)
	end.Action.ID = a.Action
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{end}))
	deploying(b.Resource)
	must(t, s.SetAhead(ctx, env, []intent.Ahead{a, c})) // the next list still has the one that ended
	deploying(c.Resource)
	if n := get(s.ResetDeploying(ctx, env, after(9), false))(t); n != 0 {
		t.Errorf("%d open entries", n)
	}
	deploying()
	must(t, s.SetAhead(ctx, env, []intent.Ahead{c}))
	must(t, s.SetAhead(ctx, env, nil))
	deploying()
}

// The intent goes back to what is deployed while something else is ahead: that may spoil it, so the resource is
// deployed again. Once the action has ended, the resource is compliant at once.
func TestGoingBackUnderWhatIsAhead(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(2)
	n := release(t, s, env, rs)
	var ends []intent.FinishedAction
	for _, st := range states(t, s, env) {
		ends = append(ends, deployed(st, n, 2))
	}
	must(t, s.FinishActions(ctx, env, ends))
	release(t, s, env, changed(changed(rs, 0, "other"), 1, "other"))
	must(t, s.SetAhead(ctx, env, []intent.Ahead{
		{
			Resource: rs[0].ID,
			Action:   uuid.New(),
		}, {Resource: rs[1].ID, Action: ends[0].Action.ID}, // which ended long ago
	}))
	release(t, s, env, rs)
	got := states(t, s, env)
	if c := got[rs[0].ID].Compliance; c != intent.HasUpdate {
		t.Errorf("what is ahead can spoil it: %s", c)
	}
	if c := got[rs[1].ID].Compliance; c != intent.Compliant {
		t.Errorf("nothing is ahead of it any more: %s", c)
	}
}

// A deployer whose environment another server took leaves no list behind, and neither does one whose environment was
// deleted.
func TestTheListOfAFormerOwnerIsRefused(t *testing.T) {
	t.Parallel()
	url, ctx := storetest.URL(t), t.Context()
	open := func() *store.Store {
		s := get(store.Open(ctx, store.Config{URL: url, Logger: storetest.Logger(t)}))(t)
		t.Cleanup(s.Close)
		return s
	}
	a, b := open(), open()
	env := newEnvironment(t, a)
	rs := resources(1)
	release(t, a, env, rs)
	for _, s := range []*store.Store{a, b} {
		held, err := s.Own(ctx, env)
		must(t, err)
		if held == nil {
			t.Fatal("nobody owns it")
		}
		if s == a {
			held.Release()
		}
	}
	list := []intent.Ahead{{Resource: rs[0].ID, Action: uuid.New()}}
	want(t, a.SetAhead(ctx, env, list), fault.Unavailable)
	if states(t, b, env)[rs[0].ID].IsDeploying {
		t.Error("the list was kept")
	}
	must(t, b.SetAhead(ctx, env, list))
	must(t, b.DeleteEnvironment(ctx, env))
	want(t, b.SetAhead(ctx, env, list), fault.NotFound)
	want(t, open().SetAhead(ctx, env, list), fault.NotFound)
}

// An environment is deleted while the end of a deployment is being recorded. No entry of the log outlives it, and
// none comes later.
func TestNoEntryOutlivesItsEnvironment(t *testing.T) {
	t.Parallel()
	url, ctx := storetest.URL(t), t.Context()
	s := get(store.Open(ctx, store.Config{URL: url, Logger: storetest.Logger(t)}))(t)
	defer s.Close()
	env := newEnvironment(t, s)
	rs := resources(1)
	n := release(t, s, env, rs)
	end := deployed(states(t, s, env)[rs[0].ID], n, 2)

	holder, watcher := get(pgx.Connect(ctx, url))(t), get(pgx.Connect(ctx, url))(t)
	defer func() { must(t, holder.Close(ctx)); must(t, watcher.Close(ctx)) }()
	waiting := func(wanted int) {
		t.Helper()
		for n := -1; n != wanted; {
			must(
				t,
				watcher.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "+
					"AND wait_event_type = 'Lock'").
					Scan(&n),
			)
		}
	}
	tx := get(holder.Begin(ctx))(t)
	get(tx.Exec(ctx, "SELECT FROM resource_state WHERE environment = $1 FOR UPDATE", env))(t)
	recorded, deleted := make(chan error, 1), make(chan error, 1)
	go func() { recorded <- s.FinishActions(ctx, env, []intent.FinishedAction{end}) }()
	waiting(1) // it has written the entry, and waits for the state
	if _, err := watcher.Exec(ctx, "SELECT FROM environment WHERE id = $1 FOR UPDATE NOWAIT", env); err == nil {
		t.Error("the environment can be deleted under it")
	}
	go func() { deleted <- s.DeleteEnvironment(ctx, env) }()
	waiting(2) // it has emptied the log, and waits for the state too
	must(t, tx.Rollback(ctx))
	must(t, <-recorded)
	must(t, <-deleted)
	var left int
	must(t, watcher.QueryRow(ctx, "SELECT count(*) FROM action WHERE environment = $1", env).Scan(&left))
	if left != 0 {
		t.Errorf("%d entries are left", left)
	}
	end.Action.ID = uuid.New()
	want(t, s.FinishActions(ctx, env, []intent.FinishedAction{end}), fault.NotFound)
}
