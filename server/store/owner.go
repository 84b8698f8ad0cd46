package store

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// owner holds the advisory locks of the environments that this process owns, all on one connection of its own.
// Between commands it listens on that connection, so that it notices a break at once:
//
//	Own ──command──▶ loop ──▶ pg_try_advisory_lock
//	                  └─ listens; broken ──▶ every lost channel is closed
type owner struct {
	cfg    *pgx.ConnConfig
	logger *slog.Logger

	mu     sync.Mutex // one command at a time; guards all below
	conn   *pgx.Conn
	pid    uint32                                 // backend process of conn, 0 without one
	held   map[intent.EnvironmentID]chan struct{} // the lost channels
	closed bool
	// generations holds the last generation of each environment that this process has or had.
	generations struct {
		sync.RWMutex
		of map[intent.EnvironmentID]int64
	}
	// The listener runs between commands: stop ends it, and idle is closed when it has ended.
	stop context.CancelFunc
	idle chan struct{}
}

// probeEvery is how often a silent connection is tested: a host that vanished sends nothing.
const (
	probeEvery   = 10 * time.Second
	probeTimeout = 5 * time.Second
)

func newOwner(cfg *pgx.ConnConfig, logger *slog.Logger) *owner {
	o := &owner{cfg: cfg.Copy(), logger: logger, held: make(map[intent.EnvironmentID]chan struct{})}
	o.generations.of = make(map[intent.EnvironmentID]int64)
	return o
}

// environmentLock is the second key of an environment's advisory lock.
func environmentLock(id intent.EnvironmentID) int32 {
	return int32(binary.BigEndian.Uint32(id[12:]) ^ binary.BigEndian.Uint32(id[:4]))
}

// Own takes the environment for this process, by a session-level advisory lock. ok is false when a process has it
// already. lost is closed when the connection that holds the lock breaks. release may be called once.
func (s *Store) Own(
	ctx context.Context,
	id intent.EnvironmentID,
) (release func(), lost <-chan struct{}, ok bool, err error) {
	return s.owner.own(ctx, id)
}

func (o *owner) own(ctx context.Context, id intent.EnvironmentID) (func(), <-chan struct{}, bool, error) {
	const op = "store.Own"
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, nil, false, fault.New(op, fault.Unavailable, "the store is closed")
	}
	o.pauseListening()
	defer o.listen()
	if o.conn != nil && o.conn.IsClosed() {
		o.lose()
	}
	if _, mine := o.held[id]; mine {
		return nil, nil, false, nil
	}
	if o.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, o.cfg)
		if err != nil {
			return nil, nil, false, translate(op, err)
		}
		o.conn, o.pid = conn, conn.PgConn().PID()
	}
	var got bool
	if err := o.conn.QueryRow(ctx, statements.OwnTry, lockEnvironments, environmentLock(id)).Scan(&got); err != nil {
		// The lock may be ours and the answer lost: give it up with the connection.
		o.lose()
		return nil, nil, false, translate(op, err)
	}
	if !got {
		return nil, nil, false, nil
	}
	switch free, err := o.takeOver(ctx, id); {
	case err != nil:
		o.lose()
		return nil, nil, false, translate(op, err)
	case !free:
		if _, err := o.conn.Exec(ctx, statements.OwnRelease, lockEnvironments, environmentLock(id)); err != nil {
			o.lose()
		}
		return nil, nil, false, nil
	}
	lost := make(chan struct{})
	o.held[id] = lost
	return func() { o.release(id, lost) }, lost, true, nil
}

// backend returns the backend process of the connection that holds our locks, 0 when there is none.
func (o *owner) backend() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pid
}

func (o *owner) release(id uuid.UUID, lost chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held[id] != lost {
		return // it was lost in the meantime
	}
	o.pauseListening()
	defer o.listen()
	delete(o.held, id)
	if o.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	if _, err := o.conn.Exec(ctx, statements.OwnRelease, lockEnvironments, environmentLock(id)); err != nil {
		o.lose()
	}
}

// close releases everything; nothing counts as lost.
func (o *owner) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.pauseListening()
	clear(o.held)
	if o.conn != nil {
		// Release explicitly: otherwise the server frees the locks only once it notices the end of the connection.
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		_, _ = o.conn.Exec(ctx, statements.OwnReleaseAll) // the end of the connection does the same
	}
	o.disconnect()
}

// lose closes all lost channels and the connection, which frees the locks.
func (o *owner) lose() {
	for id, lost := range o.held {
		close(lost)
		delete(o.held, id)
	}
	o.disconnect()
}

func (o *owner) disconnect() {
	if o.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = o.conn.Close(ctx) // the connection is given up either way
		o.conn, o.pid = nil, 0
	}
}

// pauseListening ends the listener, so that the connection is free for a command.
func (o *owner) pauseListening() {
	if o.stop != nil {
		o.stop()
		<-o.idle
		o.stop, o.idle = nil, nil
	}
}

// listen starts the listener when an environment is held.
func (o *owner) listen() {
	if o.conn == nil || len(o.held) == 0 || o.closed {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.stop, o.idle = cancel, make(chan struct{})
	go o.watch(ctx, o.conn, o.idle)
}

// watch waits until the connection breaks or ctx ends.
func (o *owner) watch(ctx context.Context, conn *pgx.Conn, idle chan struct{}) {
	for {
		round, cancel := context.WithTimeout(ctx, probeEvery)
		_, err := conn.WaitForNotification(round)
		cancel()
		if ctx.Err() == nil && (err == nil || !conn.IsClosed()) {
			probe, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
			err = conn.Ping(probe)
			cancel()
			if err == nil {
				continue
			}
		}
		close(idle)
		if ctx.Err() != nil {
			return
		}
		o.mu.Lock()
		if o.conn == conn {
			o.stop()
			o.stop, o.idle = nil, nil
			o.logger.Warn("the connection that holds the environments broke", "environments", len(o.held))
			o.lose()
		}
		o.mu.Unlock()
		return
	}
}
