package edge

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// bodyGrace is how long a client may take for a small body, and the start of a big one.
	bodyGrace = 10 * time.Second
	// bodyRate is how many bytes per second a client must send on average after that.
	bodyRate = 16 << 10
)

// limitBody ends a request whose body trickles in. It does not touch requests without a body, such as event streams.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return
	}
	control := http.NewResponseController(w)
	b := &timedBody{ReadCloser: r.Body, control: control, begun: time.Now()}
	if control.SetReadDeadline(b.begun.Add(bodyGrace)) != nil {
		return // the recorder of a test
	}
	r.Body = b
}

// timedBody sets the deadline of a connection by how much of the body has arrived. A body that the handler does not
// read to its end keeps the deadline, so that the server does not wait for the rest either.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	begun   time.Time
	read    int64
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	deadline := b.begun.Add(bodyGrace + time.Duration(b.read)*time.Second/bodyRate)
	if err == io.EOF {
		deadline = time.Time{} // what follows is the next request, and has its own
	}
	_ = b.control.SetReadDeadline(deadline) // it fails when the connection is closed, and so will the next read
	return n, err
}

// Bodies bounds the memory that the bodies of all requests take together. Ordinary requests share a budget, and one
// request at a time may be a large one, which takes more than a quarter of it:
//
//	│ ordinary ─▶ budget: 4 requests or many small ones │ large ─▶ one at a time, up to its limit │
//
// A large request needs nothing more from the budget, so requests that wait for each other's share end in the end.
type Bodies struct {
	quarter int64
	budget  *semaphore.Weighted
	large   *semaphore.Weighted
}

// Errors of reading a body.
var (
	ErrTooLarge = errors.New("the request body is too large")
	ErrBusy     = errors.New("the server is busy with other large requests; try again in a moment")
	ErrGzip     = errors.New("the body is not gzip")
)

const (
	// bodyWait is how long a request waits for its share of the budget.
	bodyWait = 5 * time.Second
	// largeWait is how long it waits for other large requests.
	largeWait = 20 * time.Second
)

// NewBodies makes a budget of so many bytes for ordinary requests.
func NewBodies(budget int64) *Bodies {
	return &Bodies{quarter: budget / 4, budget: semaphore.NewWeighted(budget), large: semaphore.NewWeighted(1)}
}

// Share is what one request holds.
type Share struct {
	bodies *Bodies
	held   int64 // of the budget
	large  bool
}

// Share returns an empty share. The caller must call Release.
func (b *Bodies) Share() *Share { return &Share{bodies: b} }

// Take makes the share n bytes larger. It waits for other requests to end, but not for long, and returns ErrBusy
// when that did not help.
func (s *Share) Take(ctx context.Context, n int64) error {
	if s.large {
		return nil
	}
	from, wait := s.bodies.budget, bodyWait
	large := s.held+n > s.bodies.quarter
	if large {
		from, wait, n = s.bodies.large, largeWait, 1
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if from.Acquire(ctx, n) != nil {
		return ErrBusy
	}
	if large {
		s.large = true
		runtime.GC() // what the large body before this one left
		return nil
	}
	s.held += n
	return nil
}

// Release returns what the share holds.
func (s *Share) Release() {
	s.bodies.budget.Release(s.held)
	if s.large {
		s.bodies.large.Release(1)
	}
	*s = Share{bodies: s.bodies}
}

// free is the size in bytes up to which a body needs no share of the budget: most bodies are small, and there are
// never more of them than connections.
const free = 16 << 10

// Read reads a body, which may be in gzip, of at most limit bytes before and after decompression. It reads no faster
// than the share grows.
func (s *Share) Read(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	if r.ContentLength > limit {
		return nil, ErrTooLarge
	}
	var in io.Reader = http.MaxBytesReader(nil, r.Body, limit)
	size := r.ContentLength
	if strings.EqualFold(r.Header.Get("Content-Encoding"), "gzip") {
		gz, err := gzip.NewReader(in)
		if err == io.EOF {
			return nil, nil // an empty body
		}
		if err != nil {
			return nil, bodyError(ErrGzip, err)
		}
		in, size = gz, -1
	}
	buffer := make([]byte, 0, 4<<10)
	if size > 0 && size <= free {
		buffer = make([]byte, 0, size+1)
	}
	for {
		if len(buffer) == cap(buffer) {
			next := int64(2 * cap(buffer))
			if size > 0 && next < size && next >= 1<<20 {
				next = size + 1 // a client that has sent a megabyte will send the rest
			}
			if next > 16<<20 {
				next = limit // what is not written to takes no memory, and copying would leave garbage
			}
			next = min(next, limit) + 1
			if next > free {
				if err := s.Take(r.Context(), next-int64(cap(buffer))); err != nil {
					return nil, err
				}
			}
			bigger := make([]byte, len(buffer), next)
			copy(bigger, buffer)
			buffer = bigger
		}
		n, err := in.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		switch {
		case int64(len(buffer)) > limit:
			return nil, ErrTooLarge
		case err == io.EOF:
			return buffer, nil
		case err != nil:
			return nil, bodyError(errors.New("the body cannot be read"), err)
		}
	}
}

// bodyError returns ErrTooLarge when that is the cause of an error, and else says what failed.
func bodyError(what, err error) error {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return ErrTooLarge
	}
	return fmt.Errorf("%w: %w", what, err)
}
