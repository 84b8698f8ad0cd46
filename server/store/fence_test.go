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

// A server loses the connection that holds its locks, as a killed one does, while the database is still recording the
// end of a deployment for it. The next owner gets the environment once that is recorded, not before, and what the
// first one sends after that is refused.
func TestTheNextOwnerWaitsForTheWritesOfTheLast(t *testing.T) {
	t.Parallel()
	url, ctx := storetest.URL(t), t.Context()
	open := func() *store.Store {
		s, err := store.Open(ctx, store.Config{URL: url, Logger: storetest.Logger(t)})
		must(t, err)
		t.Cleanup(s.Close)
		return s
	}
	a, b := open(), open()
	env := newEnvironment(t, a)
	rs := resources(2)
	n := release(t, a, env, rs)
	id := rs[0].ID
	held, err := a.Own(ctx, env)
	must(t, err)
	if held == nil {
		t.Fatal("nobody else owns it")
	}
	action := start(t, a, env, id, 1)

	other := get(pgx.Connect(ctx, url))(t)
	defer func() { must(t, other.Close(ctx)) }()
	tx := get(other.Begin(ctx))(t)
	get(tx.Exec(ctx, "SELECT FROM resource_state WHERE environment = $1 FOR UPDATE", env))(t)
	watcher := get(pgx.Connect(ctx, url))(t)
	defer func() { must(t, watcher.Close(ctx)) }()
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
	end := deployed(states(t, a, env)[id], n, 2)
	end.Action.ID, end.Action.Started = action.ID, action.Started
	recorded := make(chan error, 1)
	go func() { recorded <- a.FinishActions(ctx, env, []intent.FinishedAction{end}) }()
	waiting(1)
	get(
		watcher.Exec(
			ctx,
			"SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = "+
				"x'6f726462'::int::oid AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
		),
	)(t)
	<-held.Lost()
	owned := make(chan bool, 1)
	go func() { // as a server does: who is told that it has an owner tries again
		for {
			if held, err := b.Own(ctx, env); held != nil || err != nil {
				owned <- held != nil
				return
			}
		}
	}()
	waiting(2)
	select {
	case <-owned:
		t.Fatal("it was taken while the first server's record is under way")
	default:
	}
	must(t, tx.Rollback(ctx))
	must(t, <-recorded)
	if !<-owned {
		t.Fatal("it was not taken")
	}
	if st := states(t, b, env)[id]; st.Status() != intent.StatusDeployed {
		t.Errorf("the new owner reads %s", st.Status())
	}
	late := intent.Action{ID: uuid.New(), Kind: intent.ActionDeploy, Resource: rs[1].ID, Version: n, Started: after(3)}
	want(t, a.StartActions(ctx, env, []intent.Action{late}), fault.Unavailable)
	must(t, b.StartActions(ctx, env, []intent.Action{late}))
}

// A write that does not end keeps the environment from the next owner, who learns that and may try again.
func TestAStuckWriteKeepsTheEnvironment(t *testing.T) {
	t.Parallel()
	url, ctx := storetest.URL(t), t.Context()
	s, err := store.Open(ctx, store.Config{URL: url, Logger: storetest.Logger(t)})
	must(t, err)
	defer s.Close()
	env := newEnvironment(t, s)
	held, err := s.Own(ctx, env)
	must(t, err)
	if held == nil {
		t.Fatal("nobody else owns it")
	}
	held.Release()
	other := get(pgx.Connect(ctx, url))(t)
	defer func() { must(t, other.Close(ctx)) }()
	tx := get(other.Begin(ctx))(t)
	get(tx.Exec(ctx, "SELECT pg_advisory_xact_lock_shared(x'6f726464'::int, $1)", store.EnvironmentKey(env)))(t)
	if held, err := s.Own(ctx, env); held != nil || err != nil {
		t.Errorf("%v, %v", held, err)
	}
	must(t, tx.Rollback(ctx))
	if held, err := s.Own(ctx, env); held == nil || err != nil {
		t.Errorf("afterwards: %v, %v", held, err)
	}
}
