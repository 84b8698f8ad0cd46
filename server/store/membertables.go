package store

import (
	"context"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/shared"
	"ordain.dev/ordain/server/store/members"
)

const (
	// memberMemory is about how many bytes the remembered tables may take together. A single one may take more, for as
	// long as somebody looks at it.
	memberMemory = 32 << 20
	// memberRest is how long a table is remembered that nobody looks at.
	memberRest = 10 * time.Minute
)

// versionKey names a version.
type versionKey struct {
	env    intent.EnvironmentID
	number int
}

// memberTables remembers the tables of versions that somebody looks at. A table is good for as long as the row of its
// version has the same mark, which the database gives anew to each write.
type memberTables struct {
	loads shared.Loads[versionKey, *members.Table]

	mu    sync.Mutex
	kept  map[versionKey]*keptTable
	bytes int
}

type keptTable struct {
	mark   string
	table  *members.Table
	used   time.Time
	forget *time.Timer
}

type markRow struct {
	Mark  string
	Total int
}

type markedRow struct {
	Mark      string
	Contents  []int64
	Lowerable bool
}

// get returns the table of a version.
func (t *memberTables) get(ctx context.Context, s *Store, key versionKey) (*members.Table, error) {
	table, err := t.remembered(ctx, s, key)
	if table != nil || err != nil {
		return table, err
	}
	return t.loads.Get(ctx, key, func(ctx context.Context, key versionKey) (*members.Table, error) {
		if table, err := t.remembered(ctx, s, key); table != nil || err != nil {
			return table, err // another request has loaded it
		}
		return t.load(ctx, s, key)
	})
}

// remembered returns the table of a version if it is remembered and the version exists as it was.
func (t *memberTables) remembered(ctx context.Context, s *Store, key versionKey) (*members.Table, error) {
	const op = "store.VersionNow"
	var row markRow
	err := s.read(ctx, op, func(q querier) (err error) {
		if row, err = one[markRow](ctx, q, statements.VersionMark, key.env, key.number); isNoRows(err) {
			err = fault.New(op, fault.NotFound, "there is no such version")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.kept[key]
	if kept == nil || kept.mark != row.Mark {
		return nil, nil
	}
	kept.used = time.Now()
	kept.forget.Reset(memberRest)
	return kept.table, nil
}

func (t *memberTables) load(ctx context.Context, s *Store, key versionKey) (table *members.Table, err error) {
	var version markedRow
	err = s.read(ctx, "store.VersionNow", func(q querier) (err error) {
		if version, err = one[markedRow](ctx, q, statements.VersionMarked, key.env, key.number); err != nil {
			if isNoRows(err) {
				err = fault.New("store.VersionNow", fault.NotFound, "there is no such version")
			}
			return err
		}
		rows, err := many[members.Row](ctx, q, statements.VersionMemberNames, plannedAnew, key.env, version.Contents)
		if err == nil {
			table = members.NewTable(rows, version.Lowerable)
		}
		return err
	})
	if err == nil && table.Len() == len(version.Contents) { // or the version was deleted meanwhile
		t.keep(key, version.Mark, table)
	}
	return table, err
}

// keep remembers a table, and forgets those that nobody has looked at for longest.
func (t *memberTables) keep(key versionKey, mark string, table *members.Table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(key)
	if t.kept == nil {
		t.kept = map[versionKey]*keptTable{}
	}
	for t.bytes+table.Bytes() > memberMemory && len(t.kept) > 0 {
		var oldest versionKey
		for k, kept := range t.kept {
			if old := t.kept[oldest]; old == nil || kept.used.Before(old.used) {
				oldest = k
			}
		}
		t.drop(oldest)
	}
	kept := &keptTable{mark: mark, table: table, used: time.Now()}
	kept.forget = time.AfterFunc(memberRest, func() { t.rest(key, kept) })
	t.kept[key] = kept
	t.bytes += table.Bytes()
}

// rest forgets a table that nobody looks at.
func (t *memberTables) rest(key versionKey, kept *keptTable) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept[key] == kept && time.Since(kept.used) >= memberRest {
		t.drop(key)
	}
}

func (t *memberTables) drop(key versionKey) {
	if kept := t.kept[key]; kept != nil {
		kept.forget.Stop()
		t.bytes -= kept.table.Bytes()
		delete(t.kept, key)
	}
}
