package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/locks"
)

type replicaRow struct {
	ID      uuid.UUID
	Name    string
	Roles   []string
	Version string
	Address string
	Started time.Time
	Seen    time.Time
	Owned   int
	Wanted  int
}

func (r replicaRow) value() (intent.Replica, error) {
	r.Started, r.Seen = r.Started.UTC(), r.Seen.UTC()
	return intent.Replica(r), nil
}

// Beat records that a replica runs, as whose ID it takes Replica(), and returns all that were seen in the time before.
func (s *Store) Beat(ctx context.Context, r intent.Replica, within time.Duration) (live []intent.Replica, err error) {
	err = s.state(ctx, "store.Beat", func(q querier) error {
		_, err := q.Exec(ctx, statements.ReplicaBeat,
			s.replica, r.Name, r.Roles, r.Version, r.Address, r.Started, r.Owned, r.Wanted)
		if err != nil {
			return err
		}
		live, err = collect(ctx, q, replicaRow.value, statements.ReplicaList, within.Seconds())
		return err
	})
	return live, err
}

// Replica returns the id of this process among the replicas.
func (s *Store) Replica() uuid.UUID { return s.replica }

// Replicas lists the replicas that were seen in the time before now.
func (s *Store) Replicas(ctx context.Context, within time.Duration) ([]intent.Replica, error) {
	return listed(ctx, s, "store.Replicas", replicaRow.value, statements.ReplicaList, within.Seconds())
}

// LeaveReplicas forgets this process, which ends.
func (s *Store) LeaveReplicas(ctx context.Context) error {
	return s.state(ctx, "store.LeaveReplicas", func(q querier) error {
		_, err := q.Exec(ctx, statements.ReplicaGone, s.replica)
		return err
	})
}

// EndStale ends the connections with the locks of replicas that were not seen for a while: they were paused, or cannot
// reach the database through their other connections. It returns their names.
func (s *Store) EndStale(ctx context.Context, unseen time.Duration) (names []string, err error) {
	err = s.state(ctx, "store.EndStale", func(q querier) error {
		type ended struct {
			Name  string
			Ended int
		}
		rows, err := many[ended](ctx, q, statements.ReplicaEndStale, unseen.Seconds())
		for _, r := range rows {
			names = append(names, r.Name)
		}
		return err
	})
	return names, err
}

// FreeEnvironments lists all environments, and those of them that no process owns.
func (s *Store) FreeEnvironments(ctx context.Context) (all, free []intent.EnvironmentID, err error) {
	err = s.read(ctx, "store.FreeEnvironments", func(q querier) error {
		rows, err := q.Query(ctx, statements.EnvironmentIDs)
		if err != nil {
			return err
		}
		if all, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
			return err
		}
		if rows, err = q.Query(ctx, statements.LocksHeld, int64(locks.Environments)); err != nil {
			return err
		}
		keys, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		held := make(map[int32]bool, len(keys))
		for _, key := range keys {
			held[int32(uint32(key))] = true
		}
		free = nil
		for _, env := range all {
			if !held[environmentKey(env)] {
				free = append(free, env)
			}
		}
		return err
	})
	return all, free, err
}

// Installation returns the id that all processes with this database share. key is the fingerprint of this process's
// secret key: Conflict when other processes live that have another one. replaced reports that the key is another one
// than before, so that what the old one sealed cannot be opened.
func (s *Store) Installation(
	ctx context.Context, key string, alive time.Duration,
) (id uuid.UUID, replaced bool, err error) {
	const op = "store.Installation"
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		var before, now string
		if err := tx.QueryRow(ctx, statements.InstallationKey).Scan(&before); err != nil && !isNoRows(err) {
			return err
		}
		if err := tx.QueryRow(ctx, statements.InstallationSet, key, alive.Seconds()).Scan(&id, &now); err != nil {
			return err
		}
		if now != key {
			return fault.New(op, fault.Conflict, "the processes that use this database have another secret key").
				Hint("copy their key file server/.secret.key here, and name it with [server] secret-key-file")
		}
		replaced = before != "" && before != key
		return nil
	})
	return id, replaced, err
}
