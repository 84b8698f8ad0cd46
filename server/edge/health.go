package edge

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// health answers /healthz and /readyz from memory, so that the answer does not wait for anything.
type health struct {
	ping func(context.Context) error
	// answered is when the database last answered, in nanoseconds; 0: never, or the last ping failed.
	answered atomic.Int64
}

const (
	pingEvery   = time.Second
	pingTimeout = 2 * time.Second
	// readyFor is how long the server counts as ready after the database has answered.
	readyFor = 5 * time.Second
)

func newHealth(ping func(context.Context) error) *health { return &health{ping: ping} }

func (h *health) run(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		asked, cancel := context.WithTimeout(ctx, pingTimeout)
		if h.ping(asked) == nil {
			h.answered.Store(time.Now().UnixNano())
		} else {
			h.answered.Store(0)
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *health) ready() bool { return time.Since(time.Unix(0, h.answered.Load())) < readyFor }

// serve answers a health check, and reports whether the request was one. Probes send any Host; there is nothing to
// learn or to change here.
func (h *health) serve(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
		return false
	}
	status, text := http.StatusOK, "ok\n"
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		status, text = http.StatusMethodNotAllowed, "use GET\n"
	case r.URL.Path == "/readyz" && !h.ready():
		status, text = http.StatusServiceUnavailable, "the database does not answer\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, text) // it fails when the client went away
	}
	return true
}
