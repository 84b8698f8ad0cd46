package worker

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/cluster/task"
)

// output takes what a plug-in prints. It masks secrets, keeps the last task.MaxOutput bytes for the result, and as
// much of what was not sent yet. A write never waits for anything but another write.
//
//	plug-in ── Write ──▶ masks ──┬──▶ tail     the end of everything
//	                             └──▶ pending  what print sends next; the oldest is left out if that is too slow
type output struct {
	mu      sync.Mutex
	mask    io.WriteCloser
	tail    []byte
	pending []byte
	missed  int64         // bytes that are left out before pending
	wake    chan struct{} // has a value when there is something pending
}

// pieceMax bounds how much is masked at a time, however much is written at once.
const pieceMax = 32 << 10

func newOutput(r *secret.Redactor) *output {
	o := &output{wake: make(chan struct{}, 1)}
	o.mask = r.Writer(sink{o})
	return o
}

// Write implements io.Writer. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := p; len(rest) > 0; {
		piece := rest[:min(len(rest), pieceMax)]
		_, _ = o.mask.Write(piece)
		rest = rest[len(piece):]
	}
	return len(p), nil
}

// sink is behind the masks. output.mu is held.
type sink struct{ o *output }

func (s sink) Write(p []byte) (int, error) {
	o := s.o
	o.tail = append(o.tail, p...)
	if len(o.tail) > 2*task.MaxOutput { // moved rarely, for a write is small in comparison
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-task.MaxOutput:]...)
	}
	o.pending = append(o.pending, p...)
	if over := len(o.pending) - task.MaxOutput; over > 0 {
		o.missed += int64(over)
		o.pending = append(o.pending[:0], o.pending[over:]...)
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// next returns what is to be sent, and forgets it. A character that is not complete waits for the rest of it, unless
// this is the last time.
func (o *output) next(last bool) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last {
		_ = o.mask.Close()
	}
	end := len(o.pending)
	if !last {
		end -= incomplete(o.pending)
	}
	if end == 0 && o.missed == 0 {
		return ""
	}
	text := string(o.pending[:end])
	if o.missed > 0 {
		text = fmt.Sprintf("\n[%d bytes of output are left out here]\n", o.missed) + text
		o.missed = 0
	}
	o.pending = append(o.pending[:0], o.pending[end:]...)
	return clean(text)
}

// lost adds to what was left out.
func (o *output) lost(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missed += int64(n)
}

// last returns the end of everything that was printed.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.mask.Close()
	tail := o.tail[max(0, len(o.tail)-task.MaxOutput):]
	for len(tail) > 0 && len(tail) == task.MaxOutput && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return string(tail)
}

// incomplete returns how many bytes at the end of p begin a character and do not complete it.
func incomplete(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if b := p[len(p)-n:]; utf8.RuneStart(b[0]) {
			if !utf8.FullRune(b) {
				return n
			}
			return 0
		}
	}
	return 0
}

// The pace of output, and how long the end of it may keep a result waiting.
const (
	printEvery   = 200 * time.Millisecond
	printLastFor = 2 * time.Second
)

// print sends output in batches until the attempt has ended. The returned function sends the rest, after further
// masks, and ends it. What a plug-in makes up and returns as a secret is known only then: printed before, it would be
// in what was sent already, but it is not in the result.
func (w *Worker) print(h *held, o *output) (end func(*secret.Redactor)) {
	ctx, cancel := context.WithCancel(h.ctx)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		pause := time.NewTimer(printEvery)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-stop:
				return
			case <-o.wake:
			}
			pause.Reset(printEvery) // before and not after: a short task sends all at its end
			select {
			case <-ctx.Done():
				return
			case <-stop:
				return
			case <-pause.C:
			}
			w.send(ctx, h, o, o.next(false))
		}
	}()
	return func(masks *secret.Redactor) {
		defer cancel()
		limit := time.AfterFunc(printLastFor, cancel)
		defer limit.Stop()
		close(stop)
		// What is on its way may arrive: if it were cut off, nobody could tell whether it did.
		<-ended
		if context.Cause(h.ctx) == nil { // else nobody wants to know any more, or there is no time
			w.send(ctx, h, o, masks.Text(o.next(true)))
		}
	}
}

// send sends a piece of output. If that fails, the piece is left out: the result has the end of the output in any case.
func (w *Worker) send(ctx context.Context, h *held, o *output, text string) {
	if text == "" {
		return
	}
	if err := w.c.Client.Output(ctx, task.Output{Lease: h.Lease, Text: text}); err != nil {
		o.lost(len(text))
		if ctx.Err() == nil {
			w.c.Logger.Debug("output of a task cannot be sent", "task", h.ID, "error", err)
		}
	}
}
