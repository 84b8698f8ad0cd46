package gateway

import (
	"net/http"

	"ordain.dev/ordain/server/agent/protocol"
)

// provisionerConnections is how many connections there may be beside those of agents.
const provisionerConnections = 2048

// serveProvisioner serves a provisioner that runs elsewhere.
func (g *Gateway) serveProvisioner(w http.ResponseWriter, r *http.Request) {
	if g.c.Provisioners == nil {
		answer(w, http.StatusNotFound, protocol.Refusal{Reason: "provisioner",
			Message: "this server has no tasks for provisioners: its cluster service does not run"})
		return
	}
	if !g.enter() {
		w.Header().Set("Retry-After", "5")
		answer(w, http.StatusServiceUnavailable, protocol.Refusal{Reason: "unavailable", Message: "this server stops"})
		return
	}
	defer g.all.Done()
	g.c.Provisioners.ServeHTTP(w, r) // its context ends when the gateway closes the connection
}

// enter reports whether the gateway still serves; then drain waits for one more.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return false
	}
	g.all.Add(1)
	return true
}
