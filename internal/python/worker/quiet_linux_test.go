package worker

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

func newQuiet(t *testing.T) (*quiet, *os.File) {
	t.Helper()
	q, w, err := quietPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(q, w) })
	return q, w
}

// watched is whether the runtime would be woken by now.
func (q *quiet) watched(t *testing.T) bool {
	t.Helper()
	var events [1]syscall.EpollEvent
	n := 0
	raw, err := q.watch.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { n, _ = syscall.EpollWait(int(fd), events[:], 0) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// Who writes wakes the reader once, and not again before the reader has read
// all there is and waits.
func TestQuietPipeWakesOnce(t *testing.T) {
	q, w := newQuiet(t)
	write := func(text string) {
		if _, err := w.WriteString(text); err != nil {
			t.Error(err)
		}
	}
	read := func(want string) {
		t.Helper()
		b := make([]byte, 100)
		if n, err := q.Read(b); err != nil || string(b[:n]) != want {
			t.Fatalf("read %q, %v; want %q", b[:n], err, want)
		}
	}
	write("before anybody waits")
	if q.watched(t) {
		t.Error("nobody waits, and it would be woken")
	}
	read("before anybody waits")
	for range 100 {
		waits := make(chan struct{})
		go func() {
			<-waits
			write("a")
		}()
		close(waits)
		read("a")
		write("b")
		write("c")
		if q.watched(t) {
			t.Fatal("it reads, and would be woken")
		}
		read("bc")
	}
}

// All that is written comes, in pieces of any size, and then the end.
func TestQuietPipeCarriesAll(t *testing.T) {
	q, w := newQuiet(t)
	want := bytes.Repeat([]byte("0123456789"), 100_000)
	go func() {
		for rest, n := want, 1; len(rest) > 0; n = n*3%70_001 + 1 {
			piece := rest[:min(n, len(rest))]
			if _, err := w.Write(piece); err != nil {
				t.Error(err)
			}
			rest = rest[len(piece):]
		}
		_ = w.Close()
	}()
	got, err := io.ReadAll(q)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d: %v", len(got), len(want), err)
	}
}

// A reader that waits is let go by a deadline, and by closing; what was
// written before is read all the same.
func TestQuietPipeLetsGo(t *testing.T) {
	q, w := newQuiet(t)
	ended := make(chan error)
	read := func() {
		_, err := q.Read(make([]byte, 10))
		ended <- err
	}
	go read()
	if err := q.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a deadline gives %v", err)
	}
	if _, err := w.WriteString("late"); err != nil {
		t.Fatal(err)
	}
	go read()
	if err := <-ended; err != nil {
		t.Errorf("what was there is not read after the deadline: %v", err)
	}
	if err := q.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go read()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err == io.EOF {
		t.Errorf("closing gives %v", err)
	}
}
