package console

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
)

// writeTimeout is how long a browser may not read before its stream ends.
const writeTimeout = 10 * time.Second

// stream sends the fragments of a page as they change. It begins with all of them, since a browser that reconnects has
// missed some; after every event that may concern the page, it sends those that changed. A burst of events becomes one
// update. It ends when the reader may not see the page any more: allowed says so at each heartbeat, and load at each
// event.
func (c *console) stream(w http.ResponseWriter, r *http.Request, load loader, allowed func() error) {
	select {
	case c.streams <- struct{}{}:
		defer func() { <-c.streams }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many live pages", http.StatusServiceUnavailable)
		return
	}
	// Subscribe before the first load, so that no event is missed in between.
	env, _ := uuid.Parse(r.PathValue("env"))
	sub := c.bus.Subscribe(func(e bus.Event) bool {
		return e.Topic != bus.Answered &&
			(env == uuid.Nil || e.Environment == env || e.Topic == bus.Lagged || e.Topic == bus.People)
	})
	defer sub.Close()
	s := &stream{w: w, control: http.NewResponseController(w), sent: map[string][32]byte{}}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s.write("retry: 2000\n\n")
	heartbeat := time.NewTicker(c.heartbeat)
	defer heartbeat.Stop()
	for s.err == nil {
		begun := time.Now()
		v, err := load(r)
		if err != nil {
			s.gone()
			return
		}
		if page, ok := v.data.(interface{ pageBell() *bell }); ok && page.pageBell() != nil {
			v.fragments = append(v.fragments, fragment{"bell", "bell", *page.pageBell()})
		}
		for _, f := range v.fragments {
			html, err := c.renderFragment(v, f)
			if err != nil {
				c.log.Error("a live page cannot be rendered", "path", r.URL.Path, "error", err)
				return
			}
			s.send(f.id, html)
		}
		s.flush()
		s.forget(v.fragments)
		// Rest for the pace at least, and longer when loading took long.
		if !rest(r, max(c.pace, v.pace, 3*time.Since(begun))) || !s.await(r, sub, heartbeat.C, allowed) {
			return
		}
	}
}

// rest waits, and reports whether the browser is still there.
func rest(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}

// stream is one open connection.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sent    map[string][32]byte
	serial  int
	err     error
}

// await waits for an event, takes the others that have arrived with it, and reports whether the stream goes on.
func (s *stream) await(
	r *http.Request, sub *bus.Subscription, heartbeat <-chan time.Time, allowed func() error,
) bool {
	for {
		select {
		case <-r.Context().Done():
			return false
		case <-heartbeat:
			if allowed() != nil {
				s.gone()
				return false
			}
			s.write(": still here\n\n")
			s.flush()
			if s.err != nil {
				return false
			}
		case _, open := <-sub.Events():
			if !open {
				return false
			}
			for {
				select {
				case <-sub.Events():
					continue
				default:
				}
				return true
			}
		}
	}
}

// gone has the browser load the page again, which then says what is the matter.
func (s *stream) gone() {
	s.write("event: gone\ndata: reload\n\n")
	s.flush()
}

// send writes a fragment, unless the browser already has it.
func (s *stream) send(id, html string) {
	sum := sha256.Sum256([]byte(html))
	if s.sent[id] == sum {
		return
	}
	s.sent[id] = sum
	s.serial++
	html = strings.NewReplacer("\r\n", "\ndata: ", "\r", "\ndata: ", "\n", "\ndata: ").Replace(html)
	s.write(fmt.Sprintf("event: fragment\nid: %d\ndata: %s\n\n", s.serial, html))
}

// forget drops what it knows of fragments that the page does not have any more, once they are many: the lines of a log
// come and go for as long as somebody looks.
func (s *stream) forget(now []fragment) {
	if len(s.sent) < 2*len(now)+100 {
		return
	}
	sent := make(map[string][32]byte, len(now))
	for _, f := range now {
		if sum, ok := s.sent[f.id]; ok {
			sent[f.id] = sum
		}
	}
	s.sent = sent
}

func (s *stream) write(text string) {
	if s.err != nil {
		return
	}
	// A connection that has no deadlines, such as the recorder of a test, will do.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, s.err = s.w.Write([]byte(text))
}

func (s *stream) flush() {
	if s.err == nil {
		s.err = s.control.Flush()
	}
}
