package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/locks"
)

// BusLock is the name of the lock of the process that runs the server of the event bus.
const BusLock = "bus"

type busRow struct {
	Address     string
	Host        string
	Certificate []byte
	Credentials []byte
}

// BusServer returns where the server of the event bus is.
func (s *Store) BusServer(ctx context.Context) (b intent.BusServer, err error) {
	err = s.read(ctx, "store.BusServer", func(q querier) error {
		r, err := one[busRow](ctx, q, statements.BusGet)
		b = intent.BusServer(r)
		return err
	})
	return b, err
}

// SetBusServer records where the server of the event bus is, which this process started under the lock held. It fails
// with Unavailable when another process has that lock by now.
func (s *Store) SetBusServer(ctx context.Context, held *locks.Held, b intent.BusServer) error {
	const op = "store.SetBusServer"
	lock := locks.Name(BusLock)
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.OwnWriting, lock.Writes, lock.Key); err != nil {
			return err
		}
		done, err := tx.Exec(ctx, statements.BusSet, BusLock, held.Fence(), b.Address, b.Host, b.Certificate,
			b.Credentials)
		if err == nil && done.RowsAffected() == 0 {
			return fault.New(op, fault.Unavailable, "another server runs the event bus by now")
		}
		return err
	})
}
