// Package locks is Ordain's lock manager: a process that works on something
// which only one may work on holds its lock. It uses PostgreSQL's session-level advisory
// locks, all of a process on one connection, and gives each holder a fencing number:
//
//	Take ──▶ pg_try_advisory_lock ──▶ wait for writes of the last holder ──▶ fence + 1 ──▶ Held
//	write: shared lock of the writes ─▶ is the fence in the database still ours? ─▶ write
//
// A lock is free as soon as its connection breaks, so a killed process blocks nobody. A
// process that was only paused, or lost only that connection, may go on sending for a
// while; what it writes carries an old fencing number and is refused. Since a new holder
// waits for the writes under way before it gets its number, a write of the last holder is
// either done when the new one begins to read, or refused.
//
// Between commands the manager listens on its connection, so it notices a break at once
// and closes the Lost channel of everything that it held.
package locks

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ordain.dev/ordain/internal/fault"
)

// Classes of advisory locks: the first of their two keys says what is locked. Replicas of
// different versions share them, so they never change.
const (
	Migrations   int32 = 0x6f726461 // the schema, while it is changed
	Environments int32 = 0x6f726462 // an environment, held by its owner
	Code         int32 = 0x6f726463 // the code table, while its unused rows are deleted
	Writes       int32 = 0x6f726464 // writes to what Environments locks, shared
	Named        int32 = 0x6f726465 // something with a name, of which there is one
	NamedWrites  int32 = 0x6f726466 // writes to that, shared
	Processes    int32 = 0x6f726467 // the processes of a resource, while one is scheduled, taken or ended
)

// Lock is something that one process at a time may hold.
type Lock struct {
	Class  int32 // Environments or Named
	Writes int32 // the class of the writes to it
	Key    int32
	// Next raises the fencing number and returns it, with Args. When it returns no row, the thing itself is gone, and
	// the holder needs no number.
	Next string
	Args []any
}

// Name returns the lock with a name, such as "bus".
func Name(name string) Lock {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return Lock{Class: Named, Writes: NamedWrites, Key: int32(h.Sum32()), Next: nextNamed, Args: []any{name}}
}

const (
	nextNamed = `INSERT INTO lock_fence (name, fence) VALUES ($1, 1)
ON CONFLICT (name) DO UPDATE SET fence = lock_fence.fence + 1 RETURNING fence`
	tryLock     = "SELECT pg_try_advisory_lock($1, $2)"
	unlock      = "SELECT pg_advisory_unlock($1, $2)"
	unlockAll   = "SELECT pg_advisory_unlock_all()"
	patience    = "SET LOCAL lock_timeout = '2s'"
	awaitWrites = "SELECT pg_advisory_xact_lock($1, $2)"
)

// Held is a lock that this process holds, until Release or until Lost is closed.
type Held struct {
	manager *Manager
	at      place
	lock    Lock
	lost    chan struct{}
	fence   int64
}

// Fence returns the fencing number: it grows from holder to holder. 0: the locked thing does not exist.
func (h *Held) Fence() int64 { return h.fence }

// Lost returns a channel that is closed when the connection that holds the lock breaks.
func (h *Held) Lost() <-chan struct{} { return h.lost }

// Release gives the lock back. It may be called more than once.
func (h *Held) Release() { h.manager.release(h) }

// place is what PostgreSQL knows a lock by.
type place struct{ class, key int32 }

// Manager holds the locks of this process. It is safe for concurrent use.
type Manager struct {
	cfg       *pgx.ConnConfig
	logger    *slog.Logger
	translate func(op string, err error) error

	mu     sync.Mutex // one command at a time; guards all below
	conn   *pgx.Conn
	pid    uint32 // backend process of conn, 0 without one
	held   map[place][]*Held
	count  int
	closed bool
	// fences holds the last fencing number of each lock that this process has or had.
	fences struct {
		sync.RWMutex
		of map[any]int64
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

// New makes a manager; it connects with the first lock, as the application with this name. translate turns errors of
// pgx into faults.
func New(
	cfg *pgx.ConnConfig, application string, logger *slog.Logger, translate func(op string, err error) error,
) *Manager {
	m := &Manager{cfg: cfg.Copy(), logger: logger, translate: translate, held: make(map[place][]*Held)}
	m.cfg.RuntimeParams["application_name"] = application
	m.fences.of = make(map[any]int64)
	return m
}

// Take takes a lock if nobody has it, this process included; otherwise it returns nil. It also returns nil when writes
// of the last holder do not end in time.
func (m *Manager) Take(ctx context.Context, l Lock) (*Held, error) {
	const op = "locks.Take"
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, fault.New(op, fault.Unavailable, "the store is closed")
	}
	m.pauseListening()
	defer m.listen()
	if m.conn != nil && m.conn.IsClosed() {
		m.lose()
	}
	at := place{l.Class, l.Key}
	for _, h := range m.held[at] {
		if h.lock.Args[0] == l.Args[0] {
			return nil, nil
		}
	}
	if m.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, m.cfg)
		if err != nil {
			return nil, m.translate(op, err)
		}
		m.conn, m.pid = conn, conn.PgConn().PID()
	}
	var got bool
	// PostgreSQL counts how often a session takes a lock: two environments with the same key can both be ours.
	if err := m.conn.QueryRow(ctx, tryLock, l.Class, l.Key).Scan(&got); err != nil {
		// The lock may be ours and the answer lost: give it up with the connection.
		m.lose()
		return nil, m.translate(op, err)
	}
	if !got {
		return nil, nil
	}
	h := &Held{manager: m, at: at, lock: l, lost: make(chan struct{})}
	switch free, err := m.takeOver(ctx, h); {
	case err != nil:
		m.lose()
		return nil, m.translate(op, err)
	case !free:
		if _, err := m.conn.Exec(ctx, unlock, l.Class, l.Key); err != nil {
			m.lose()
		}
		return nil, nil
	}
	m.held[at] = append(m.held[at], h)
	m.count++
	return h, nil
}

// takeOver raises the fencing number, after all writes of the last holder. It returns false when one of those does not
// end in time. The caller holds mu and the lock.
func (m *Manager) takeOver(ctx context.Context, h *Held) (bool, error) {
	err := pgx.BeginFunc(ctx, m.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, patience); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, awaitWrites, h.lock.Writes, h.lock.Key); err != nil {
			return err
		}
		return tx.QueryRow(ctx, h.lock.Next, h.lock.Args...).Scan(&h.fence)
	})
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "55P03": // lock_not_available
		m.logger.Warn("a lock cannot be taken yet: another server is still writing under it", "lock", h.lock.Args[0])
		return false, nil
	case errors.Is(err, pgx.ErrNoRows): // it was deleted
		return true, nil
	case err != nil:
		return false, err
	}
	m.fences.Lock()
	defer m.fences.Unlock()
	m.fences.of[h.lock.Args[0]] = h.fence
	return true, nil
}

// Fence returns the fencing number that this process got last with the first argument of a lock.
func (m *Manager) Fence(of any) (fence int64, had bool) {
	m.fences.RLock()
	defer m.fences.RUnlock()
	fence, had = m.fences.of[of]
	return fence, had
}

// Backend returns the backend process of the connection that holds our locks, 0 when there is none.
func (m *Manager) Backend() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pid
}

func (m *Manager) release(h *Held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.forget(h) {
		return // it was lost or released in the meantime
	}
	m.pauseListening()
	defer m.listen()
	if m.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	if _, err := m.conn.Exec(ctx, unlock, h.lock.Class, h.lock.Key); err != nil {
		m.lose()
	}
}

// forget takes a lock off the list, and reports whether it was there.
func (m *Manager) forget(h *Held) bool {
	for i, other := range m.held[h.at] {
		if other != h {
			continue
		}
		if m.held[h.at] = append(m.held[h.at][:i], m.held[h.at][i+1:]...); len(m.held[h.at]) == 0 {
			delete(m.held, h.at)
		}
		m.count--
		return true
	}
	return false
}

// Close releases everything; nothing counts as lost.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.pauseListening()
	clear(m.held)
	m.count = 0
	if m.conn != nil {
		// Release explicitly: otherwise the server frees the locks only once it notices the end of the connection.
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		_, _ = m.conn.Exec(ctx, unlockAll) // the end of the connection does the same
	}
	m.disconnect()
}

// lose closes all lost channels and the connection, which frees the locks.
func (m *Manager) lose() {
	for _, all := range m.held {
		for _, h := range all {
			close(h.lost)
		}
	}
	clear(m.held)
	m.count = 0
	m.disconnect()
}

func (m *Manager) disconnect() {
	if m.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = m.conn.Close(ctx) // the connection is given up either way
		m.conn, m.pid = nil, 0
	}
}

// pauseListening ends the listener, so that the connection is free for a command.
func (m *Manager) pauseListening() {
	if m.stop != nil {
		m.stop()
		<-m.idle
		m.stop, m.idle = nil, nil
	}
}

// listen starts the listener when a lock is held.
func (m *Manager) listen() {
	if m.conn == nil || m.count == 0 || m.closed {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop, m.idle = cancel, make(chan struct{})
	go m.watch(ctx, m.conn, m.idle)
}

// watch waits until the connection breaks or ctx ends.
func (m *Manager) watch(ctx context.Context, conn *pgx.Conn, idle chan struct{}) {
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
		m.mu.Lock()
		if m.conn == conn {
			m.stop()
			m.stop, m.idle = nil, nil
			m.logger.Warn("the connection that holds the locks broke", "locks", m.count)
			m.lose()
		}
		m.mu.Unlock()
		return
	}
}
