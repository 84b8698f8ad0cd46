package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/locks"
)

// ActionSearch chooses actions of the log of an environment. What is empty chooses all.
type ActionSearch struct {
	Type, Agent string
	// Attribute of the resource begins with Value.
	Attribute, Value string
	// Level is that of one of the messages.
	Level string
	// Without lists the kinds of changes that are left out.
	Without []string
	// After and Before are bounds of the time at which an action began; at most one is given. AtID is the id of an
	// action that began exactly then: those that follow it belong to the page, too.
	After, Before *time.Time
	AtID          uuid.UUID
	// Limit is at most 1,000, and so is 0.
	Limit int
}

// SearchActions searches the action log of an environment. The answer is sorted newest first; with After it is the
// page of the oldest that follow.
func (s *Store) SearchActions(
	ctx context.Context, env intent.EnvironmentID, q ActionSearch,
) ([]intent.Action, error) {
	if q.Limit <= 0 || q.Limit > mostActions {
		q.Limit = mostActions
	}
	sql, bound, at := statements.ActionsBefore, q.Before, q.AtID
	if q.After != nil {
		sql, bound = statements.ActionsAfter, q.After
	}
	var id *uuid.UUID // null: no action that began exactly at the bound belongs to the page
	if at != uuid.Nil {
		id = &at
	}
	without := q.Without
	if without == nil {
		without = []string{}
	}
	out, err := listed(ctx, s, "store.SearchActions", actionRow.value, sql, env, q.Type, q.Agent, q.Attribute, q.Value,
		strings.ToUpper(q.Level), bound, id, without, q.Limit)
	if q.After != nil {
		slices.Reverse(out)
	}
	return out, err
}

// ActionsOfRequirements lists the deployments of resources that began after a time, nil for ever, and changed
// something else than without; newest first.
func (s *Store) ActionsOfRequirements(
	ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID, since *time.Time, without intent.Change,
) ([]intent.Action, error) {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return listed(ctx, s, "store.ActionsOfRequirements", actionRow.value, statements.ActionsOfRequirements, env, texts,
		since, string(without))
}

// Owner is the process that owns an environment.
type Owner struct {
	Replica uuid.UUID
	Name    string // of the replica, for people
	Started time.Time
}

type ownerRow struct {
	Key     int64
	ID      uuid.UUID
	Name    string
	Started time.Time
}

// Owners finds the processes that own environments. One without an owner is not in the answer.
func (s *Store) Owners(
	ctx context.Context, environments []intent.Environment,
) (map[intent.EnvironmentID]Owner, error) {
	rows, err := listed(ctx, s, "store.Owners", func(r ownerRow) (ownerRow, error) { return r, nil },
		statements.EnvironmentOwners, int64(locks.Environments))
	byKey := make(map[int32]ownerRow, len(rows))
	for _, r := range rows {
		byKey[int32(uint32(r.Key))] = r
	}
	out := map[intent.EnvironmentID]Owner{}
	for _, e := range environments {
		if r, ok := byKey[environmentKey(e.ID)]; ok {
			out[e.ID] = Owner{Replica: r.ID, Name: r.Name, Started: r.Started.UTC()}
		}
	}
	return out, err
}

// ServerInfo describes the database server and the pool of connections to it.
type ServerInfo struct {
	Version, Database, Host string
	MaxConnections          int
	OpenConnections         int
	IdleConnections         int
	// Waited is for how long requests have waited for a connection since the start.
	Waited time.Duration
}

// ServerInfo asks the database for its version, and the pool for its connections.
func (s *Store) ServerInfo(ctx context.Context) (i ServerInfo, err error) {
	err = s.read(ctx, "store.ServerInfo", func(q querier) error {
		return q.QueryRow(ctx, statements.ServerVersionText).Scan(&i.Version, &i.Database, &i.Host)
	})
	stat := s.pool.Stat()
	i.MaxConnections, i.OpenConnections = int(stat.MaxConns()), int(stat.TotalConns())
	i.IdleConnections, i.Waited = int(stat.IdleConns()), stat.EmptyAcquireWaitTime()
	return i, err
}
