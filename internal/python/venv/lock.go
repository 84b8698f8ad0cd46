package venv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// lockset holds a lock per name. A channel excludes goroutines of this process, a
// file other processes.
type lockset struct {
	dir string

	mu   sync.Mutex
	held map[string]chan struct{} // holds a token while the lock is free
}

// lock waits for the lock of a name. The caller calls unlock once.
func (l *lockset) lock(ctx context.Context, name string) (unlock func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]chan struct{}{}
	}
	token, ok := l.held[name]
	if !ok {
		token = make(chan struct{}, 1)
		token <- struct{}{}
		l.held[name] = token
	}
	l.mu.Unlock()
	select {
	case <-token:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release := func() { token <- struct{}{} }

	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		release()
		return nil, err
	}
	sum := sha256.Sum256([]byte(name))
	file, err := os.OpenFile(filepath.Join(l.dir, hex.EncodeToString(sum[:10])+".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		release()
		return nil, err
	}
	// Another process holds the file. A context cannot end the wait of flock, so poll.
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close(); release() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			release()
			return nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			_ = file.Close()
			release()
			return nil, ctx.Err()
		}
	}
}
