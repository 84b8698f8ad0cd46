package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/protocol"
)

const (
	headerTime  = 15 * time.Second
	maxHeader   = 16 << 10
	maxJoinBody = 64 << 10
	sendBuffer  = 256 << 10 // bytes in the kernel
)

// newServer makes the HTTPS server. It asks clients for a certificate and does not insist on one: joining needs none,
// and a client with a wrong one is told so in words, which a failed handshake could not do.
func (g *Gateway) newServer() (*http.Server, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if g.c.TLS != nil {
		settings = g.c.TLS.Clone()
	} else {
		own := &ownCertificate{g: g}
		if _, err := own.current(nil); err != nil {
			return nil, err
		}
		settings.GetCertificate = own.current
	}
	settings.ClientAuth = tls.RequestClientCert // a client that shows one has proved that it has its key
	settings.NextProtos = []string{"http/1.1"}
	routes := http.NewServeMux()
	routes.HandleFunc("GET "+protocol.AuthorityPath, g.serveAuthority)
	routes.HandleFunc("POST "+protocol.JoinPath, g.serveJoin)
	routes.HandleFunc("GET "+protocol.SubscribePath, g.serveSubscribe)
	routes.HandleFunc("/provisioner/", g.serveProvisioner)
	routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	routes.HandleFunc("GET /readyz", g.serveReady)
	return &http.Server{
		Handler: routes, TLSConfig: settings, ReadHeaderTimeout: headerTime, ReadTimeout: 2 * headerTime,
		WriteTimeout: 2 * headerTime, IdleTimeout: headerTime, MaxHeaderBytes: maxHeader,
		ErrorLog:     slog.NewLogLogger(g.c.Logger.Handler(), slog.LevelDebug),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2: it has no WebSockets here
	}, nil
}

// ownCertificate is the certificate that the authority makes, for a process that may run for years.
type ownCertificate struct {
	g       *Gateway
	mu      sync.Mutex
	made    time.Time
	present *tls.Certificate
}

const renewOwn = 30 * 24 * time.Hour

func (o *ownCertificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.present != nil && time.Since(o.made) < renewOwn {
		return o.present, nil
	}
	fresh, err := o.g.c.Authority.ServerCertificate(o.g.c.Hosts)
	if err != nil {
		return nil, err
	}
	o.made, o.present = time.Now(), &fresh
	return o.present, nil
}

// limit closes connections that are too many.
func (g *Gateway) limit(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, most: int64(g.c.MaxAgents) + 256 + provisionerConnections}
}

type limitedListener struct {
	net.Listener
	open atomic.Int64
	most int64
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) > l.most {
			l.open.Add(-1)
			_ = c.Close()
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok { // so that a ping is not long behind what was written before it
			_ = tcp.SetWriteBuffer(sendBuffer)
		}
		return &countedConn{Conn: c, open: &l.open}, nil
	}
}

type countedConn struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

func refuse(w http.ResponseWriter, err error) {
	var refused *authority.Refused
	if !errors.As(err, &refused) {
		refused = &authority.Refused{Code: http.StatusInternalServerError, Refusal: protocol.Refusal{
			Message: "the server failed", Reason: "unavailable",
		}}
	}
	if refused.Code == http.StatusServiceUnavailable || refused.Code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
	answer(w, refused.Code, refused.Refusal)
}

var busy = &authority.Refused{Code: http.StatusTooManyRequests, Refusal: protocol.Refusal{
	Message: "the agent server is busy; try again", Reason: "busy",
}}

func (g *Gateway) serveAuthority(w http.ResponseWriter, _ *http.Request) {
	trust := g.c.Authority.Trust()
	if trust == "" {
		answer(w, http.StatusNotFound, protocol.Refusal{Reason: "authority",
			Message: "this server's certificate is from an authority that machines know"})
		return
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	_, _ = io.WriteString(w, trust) // the client may be gone
}

// addressOf returns the address of the client, without the port.
func addressOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

func (g *Gateway) serveJoin(w http.ResponseWriter, r *http.Request) {
	if !g.joins.TryAcquire(1) {
		refuse(w, busy)
		return
	}
	defer g.joins.Release(1)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJoinBody))
	if err != nil {
		answer(
			w,
			http.StatusRequestEntityTooLarge,
			protocol.Refusal{Reason: "request", Message: "the request is too large"},
		)
		return
	}
	var request protocol.JoinRequest
	if err := json.Unmarshal(body, &request); err != nil || len(request.Request) > protocol.MaxRequest {
		answer(w, http.StatusBadRequest, protocol.Refusal{
			Reason: "request", Message: "the body is not the JSON object of a request to join",
		})
		return
	}
	joined, err := g.c.Authority.Join(r.Context(), request, addressOf(r))
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusCreated, joined)
}

func (g *Gateway) serveSubscribe(w http.ResponseWriter, r *http.Request) {
	who, err := g.c.Authority.Identify(r.Context(), r.TLS.PeerCertificates)
	if err != nil {
		g.c.Logger.Info("an agent may not connect", "address", addressOf(r), "reason", err.Error())
		refuse(w, err)
		return
	}
	if !g.admit() {
		refuse(w, busy)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol.Subprotocol}})
	if err != nil {
		g.all.Done()
		return // Accept has answered
	}
	l := newLink(g, ws, who, addressOf(r))
	go func() { // with a stack of its own, and without the request
		defer g.all.Done()
		l.serve()
	}()
}

// admit reports whether there is room for another link, which is then one of those that drain waits for.
func (g *Gateway) admit() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining || len(g.links) >= g.c.MaxAgents {
		return false
	}
	g.all.Add(1)
	return true
}

// serveReady says whether agents can be served, and what is missing for more than that.
func (g *Gateway) serveReady(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
	defer cancel()
	state := struct {
		Ready  bool     `json:"ready"`
		Agents int      `json:"agents"`
		Lacks  []string `json:"lacks"`
	}{Ready: true, Agents: g.Agents(), Lacks: []string{}}
	g.mu.Lock()
	if g.draining {
		state.Ready, state.Lacks = false, append(state.Lacks, "this server stops")
	}
	g.mu.Unlock()
	replicas, err := g.c.Store.Replicas(ctx, 15*time.Second)
	if err != nil {
		state.Ready, state.Lacks = false, append(state.Lacks, "the database does not answer")
	} else if !hasRole(replicas, "process") {
		state.Lacks = append(state.Lacks, "no server with the role process runs: nobody asks agents for anything")
	}
	code := http.StatusOK
	if !state.Ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, state)
}
