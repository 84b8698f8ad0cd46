package gitsync

import (
	"context"
	"os"
	"sync"
)

// lockFile takes an exclusive lock on a file or folder, across processes, and waits
// for it until ctx ends. The file must exist unless flag has os.O_CREATE. The lock
// ends with a call of unlock, or with the process.
func lockFile(ctx context.Context, path string, flag int) (unlock func(), err error) {
	for {
		f, err := lockOpened(ctx, path, flag)
		if err != nil {
			return nil, err
		}
		if flag&os.O_CREATE == 0 || inPlace(f, path) {
			return func() { f.Close() }, nil
		}
		f.Close() // it was removed while we waited, so others lock another file
	}
}

// inPlace reports whether an open file is still the one at that path.
func inPlace(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, now)
}

// lockOpened opens a file and locks it.
func lockOpened(ctx context.Context, path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	if ok, err := flock(f, false); ok || err != nil {
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	}
	// Somebody else holds the lock. A blocking flock cannot be interrupted, so it
	// runs in a goroutine, which unlocks at once if we have given up by then.
	got := make(chan error, 1)
	go func() {
		_, err := flock(f, true)
		got <- err
	}()
	select {
	case err := <-got:
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	case <-ctx.Done():
		go func() {
			<-got
			f.Close()
		}()
		return nil, ctx.Err()
	}
}

// keyed is a set of locks by name, within this process.
type keyed struct {
	mu    sync.Mutex
	locks map[string]*keyedLock
}

type keyedLock struct {
	held  chan struct{} // holds a value while locked
	users int
}

func (k *keyed) lock(ctx context.Context, name string) (unlock func(), err error) {
	k.mu.Lock()
	l := k.locks[name]
	if l == nil {
		if k.locks == nil {
			k.locks = map[string]*keyedLock{}
		}
		l = &keyedLock{held: make(chan struct{}, 1)}
		k.locks[name] = l
	}
	l.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, name)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
