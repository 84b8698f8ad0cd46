package store

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/locks"
)

// environmentLock returns the lock of an environment. Two environments with the same key are owned one after another,
// or both by one process.
func environmentLock(id intent.EnvironmentID) locks.Lock {
	return locks.Lock{
		Class: locks.Environments, Writes: locks.Writes, Key: environmentKey(id),
		Next: statements.OwnNext, Args: []any{id},
	}
}

func environmentKey(id intent.EnvironmentID) int32 {
	return int32(binary.BigEndian.Uint32(id[12:]) ^ binary.BigEndian.Uint32(id[:4]))
}

// Own takes the environment for this process. It returns nil when a process, this one included, has it already.
func (s *Store) Own(ctx context.Context, id intent.EnvironmentID) (*locks.Held, error) {
	return s.locks.Take(ctx, environmentLock(id))
}

// Hold takes the lock with a name for this process. It returns nil when a process, this one included, has it already.
func (s *Store) Hold(ctx context.Context, name string) (*locks.Held, error) {
	return s.locks.Take(ctx, locks.Name(name))
}

// A server that was killed may have left a transaction that the database still carries out, and a server that lost
// only the connection with its locks may go on sending for a while. What they write must not come after the next
// owner has read the states:
//
//	owner's write: shared lock of the environment's writes ─▶ is the generation still ours? ─▶ write
//	next owner:    exclusive lock (waits for writes under way) ─▶ generation + 1 ─▶ read the states
//
// So a write either comes before the states are read, and is among them, or it is refused.

// writeOwned is write for what only the owner of an environment records. It fails with Unavailable when this process
// owned the environment and another has taken it since, and with NotFound when there is no environment. A process
// that never owned it (a tool, a test) is not checked.
//
// The statements that first queues are sent together with the question who owns the environment, in one round trip;
// they are rolled back when the answer is another process. Then f runs, if it is not nil.
func (s *Store) writeOwned(
	ctx context.Context,
	env intent.EnvironmentID,
	op string,
	first func(b *pgx.Batch),
	f func(tx pgx.Tx) error,
) error {
	ours, had := s.locks.Fence(env)
	return s.write(ctx, op, func(tx pgx.Tx) error {
		now, err := lockWriting(ctx, tx, env, first)
		switch {
		case isNoRows(err):
			return fault.New(op, fault.NotFound, "there is no such environment")
		case had && now != 0 && now != ours: // generations that somebody had begin with 1
			return fault.New(op, fault.Unavailable, "another server has taken this environment")
		case err != nil:
			return err
		case f == nil:
			return nil
		}
		return f(tx)
	})
}

// lockWriting keeps the next owner out until the transaction ends, returns the environment's generation, and runs the
// statements that queueMore adds. Each statement has a snapshot of its own, so the second sees what the first waited
// for. The environment's row is locked too, so that it cannot be deleted before what is written.
func lockWriting(
	ctx context.Context,
	tx pgx.Tx,
	env intent.EnvironmentID,
	queueMore func(b *pgx.Batch),
) (generation int64, err error) {
	var all pgx.Batch
	all.Queue(statements.OwnWriting, locks.Writes, environmentKey(env))
	all.Queue(statements.OwnGeneration, env)
	if queueMore != nil {
		queueMore(&all)
	}
	results := tx.SendBatch(ctx, &all)
	_, err = results.Exec()
	if err == nil {
		err = results.QueryRow().Scan(&generation)
	}
	for i := 2; err == nil && i < all.Len(); i++ {
		_, err = results.Exec()
	}
	if isNoRows(err) {
		_ = results.Close() // its error would only be a consequence
		return 0, err
	}
	return generation, errors.Join(err, results.Close())
}
