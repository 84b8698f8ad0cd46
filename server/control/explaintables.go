package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/store"
)

const (
	// maxTables is how many tables are kept, and tableTime how long after they were used last: that of 50,000 resources
	// takes some 40 MB, and half a second to unpack.
	maxTables = 3
	tableTime = 2 * time.Minute
)

// tables keeps the provenance tables of the versions that people look at. Tables do not change.
type tables struct {
	loading singleflight.Group

	mu    sync.Mutex
	known []*keptTable // the one that was used last is last
}

// tableKey names a table. The time tells apart versions with one number, of an environment that was cleared.
type tableKey struct {
	env     intent.EnvironmentID
	number  int
	created time.Time
}

type keptTable struct {
	key   tableKey
	table *provenance.Table // nil: the version has none
	end   *time.Timer       // forgets it
}

// get returns the table of a version; nil if it has none.
func (t *tables) get(ctx context.Context, s *store.Store, key tableKey) (*provenance.Table, error) {
	if k := t.find(key); k != nil {
		return k.table, nil
	}
	name := fmt.Sprintf("%s %d %d", key.env, key.number, key.created.UnixNano())
	done := t.loading.DoChan(name, func() (any, error) {
		packed, err := s.VersionOrigins(context.WithoutCancel(ctx), key.env, key.number)
		if err != nil {
			return nil, err
		}
		var table *provenance.Table
		if packed != nil {
			if table, err = provenance.Unpack(packed); err != nil {
				return nil, fault.Wrap("control.Explain", fault.Internal, err)
			}
		}
		t.keep(key, table)
		return table, nil
	})
	select {
	case r := <-done:
		table, _ := r.Val.(*provenance.Table)
		return table, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// find returns a table that is kept, and keeps it for longer.
func (t *tables) find(key tableKey) *keptTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, k := range t.known {
		if k.key == key {
			k.end.Reset(tableTime)
			t.known = append(append(t.known[:i:i], t.known[i+1:]...), k)
			return k
		}
	}
	return nil
}

func (t *tables) keep(key tableKey, table *provenance.Table) {
	k := &keptTable{key: key, table: table}
	t.mu.Lock()
	defer t.mu.Unlock()
	k.end = time.AfterFunc(tableTime, func() { t.forget(k) })
	t.known = append(t.known, k)
	if len(t.known) > maxTables {
		t.known[0].end.Stop()
		t.known = t.known[1:]
	}
}

func (t *tables) forget(gone *keptTable) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, k := range t.known {
		if k == gone {
			t.known = append(t.known[:i:i], t.known[i+1:]...)
			return
		}
	}
}
