package worker

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// quiet is the reading end of a pipe whose writer wakes nobody while what it
// wrote before is still being read.
//
// What the runtime watches tells of every write, and a worker writes ten
// thousand replies a second. So the runtime watches another thing that watches
// the pipe, and that one tells of one write and then of none until it is armed
// again, which is when there is nothing left to read:
//
//	worker ─▶ pipe ─▶ watch (epoll, once) ─▶ the runtime's poller ─▶ Read
type quiet struct {
	pipe  *os.File // does not block, and is not known to the runtime's poller
	watch *os.File
}

// quietPipe makes a pipe with such an end, and the other one for the worker.
func quietPipe() (*quiet, *os.File, error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	// The order matters: what does not block when it becomes a file is given to the poller.
	q := &quiet{pipe: os.NewFile(uintptr(ends[0]), "replies")}
	theirs := os.NewFile(uintptr(ends[1]), "replies")
	err := syscall.SetNonblock(ends[0], true)
	if err == nil {
		q.watch, err = newWatch(ends[0])
	}
	if err != nil {
		closeAll(q.pipe, theirs)
		return nil, nil, err
	}
	return q, theirs, nil
}

func newWatch(pipe int) (*os.File, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	err = syscall.EpollCtl(fd, syscall.EPOLL_CTL_ADD, pipe, &syscall.EpollEvent{Events: syscall.EPOLLONESHOT})
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("watch a pipe: %w", err)
	}
	return os.NewFile(uintptr(fd), "watch"), nil
}

// Read implements io.Reader: it waits until there is something.
func (q *quiet) Read(b []byte) (int, error) {
	for {
		n, err := q.pipe.Read(b)
		if !errors.Is(err, syscall.EAGAIN) {
			return n, err
		}
		if err := q.wait(); err != nil {
			return 0, err
		}
	}
}

func (q *quiet) wait() error {
	pipe, err := q.pipe.SyscallConn()
	if err != nil {
		return err
	}
	watch, err := q.watch.SyscallConn()
	if err != nil {
		return err
	}
	armed, failed := false, error(nil)
	err = watch.Read(func(epoll uintptr) (there bool) {
		if !armed {
			armed = true
			err := pipe.Control(func(fd uintptr) {
				once := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLONESHOT}
				failed = syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_MOD, int(fd), &once)
			})
			if failed = errors.Join(failed, err); failed != nil {
				return true
			}
		}
		var events [1]syscall.EpollEvent
		n, err := syscall.EpollWait(int(epoll), events[:], 0)
		return n > 0 || err != nil && err != syscall.EINTR
	})
	return errors.Join(err, failed)
}

// SetReadDeadline implements replies.
func (q *quiet) SetReadDeadline(t time.Time) error { return q.watch.SetReadDeadline(t) }

// Close implements io.Closer.
func (q *quiet) Close() error { return errors.Join(q.watch.Close(), q.pipe.Close()) }

// pause waits a moment. A timer of the runtime takes a millisecond where nothing else is to do.
func (q *quiet) pause(d time.Duration) {
	span := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&span, nil)
}
