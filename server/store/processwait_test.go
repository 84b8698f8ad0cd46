package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// While a message for a forge is being recorded, the process that sends messages finds that it has to wait until a
// forge takes more. Both would wait then, which the record does not allow: the process ends in favour of the newer one,
// and nobody sees an error. The same happens when a person retries a dead one at that moment.
func TestTwoOfAKindDoNotWait(t *testing.T) {
	t.Parallel()
	url, ctx := storetest.URL(t), t.Context()
	s := get(store.Open(ctx, store.Config{URL: url, Logger: storetest.Logger(t)}))(t)
	t.Cleanup(s.Close)
	other, watcher := get(pgx.Connect(ctx, url))(t), get(pgx.Connect(ctx, url))(t)
	defer func() { must(t, other.Close(ctx)); must(t, watcher.Close(ctx)) }()
	for n, end := range []intent.ProcessState{intent.ProcessWaiting, intent.ProcessDead} {
		single := intent.NewProcess{
			Name: "thing.look", Resource: intent.ProcessResource{Type: "thing", ID: fmt.Sprint(n)}, Single: true,
		}
		id := get(s.Schedule(ctx, single))(t)
		taken := get(s.TakeProcess(ctx, id, "here", time.Minute, nil))(t)
		if end == intent.ProcessDead {
			must(t, s.EndProcess(ctx, taken.Claim(), intent.ProcessEnd{State: end}))
		}
		// What another transaction scheduled, and has not committed yet.
		var newer int64
		tx := get(other.Begin(ctx))(t)
		must(t, tx.QueryRow(ctx, `INSERT INTO process
			(name, resource_type, resource_id, most, priority, queue, single, next)
			VALUES ('thing.look', 'thing', $1, 1, 1, 'default', true, now()) RETURNING id`, fmt.Sprint(n)).Scan(&newer))
		ended := make(chan error, 1)
		go func() {
			if end == intent.ProcessDead {
				ended <- s.RetryProcess(ctx, intent.EnvironmentID{}, id)
			} else {
				ended <- s.EndProcess(ctx, taken.Claim(), intent.ProcessEnd{State: end, After: time.Hour})
			}
		}()
		for blocked := 0; blocked == 0; {
			must(t, watcher.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "+
				"AND wait_event_type = 'Lock'").Scan(&blocked))
		}
		must(t, tx.Commit(ctx))
		err, goesOn := <-ended, fmt.Sprintf("process %d", newer)
		if end == intent.ProcessDead {
			if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), goesOn+" waits to do the same") {
				t.Errorf("retrying says %v", err)
			}
			continue
		}
		must(t, err)
		was := get(s.Process(ctx, intent.EnvironmentID{}, id))(t)
		if was.State != intent.ProcessDone || was.Reason != goesOn+" goes on" {
			t.Errorf("the first is %s (%s)", was.State, was.Reason)
		}
		if p := get(s.TakeProcess(ctx, newer, "here", time.Minute, nil))(t); p == nil {
			t.Error("the newer one cannot run")
		}
	}
}
