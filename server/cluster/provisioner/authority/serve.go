package authority

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/task"
)

// Times for requests of provisioners that are identified. Those of the listener are for anyone, and too short for them:
// taking waits for half a minute, and results and resources are large.
const (
	bodyTime  = 2 * time.Minute // for a body to arrive, and an answer to leave
	waitTime  = 30 * time.Second
	stallTime = 30 * time.Second // without a byte of a resource that the provisioner has read
)

// Handler serves provisioners at the agent server, below /provisioner/: joining, renewing, and the desk for those whose
// certificate counts.
func (s *Service) Handler(d *desk.Desk) http.Handler {
	type key struct{}
	inner := d.Handler(func(r *http.Request) (desk.Who, error) { return r.Context().Value(key{}).(desk.Who), nil })
	routes := http.NewServeMux()
	routes.HandleFunc("POST "+task.JoinPath, s.serveJoin)
	routes.HandleFunc("POST "+task.CertificatePath, s.serveCertificate)
	routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		who, err := s.Identify(r.Context(), shown(r))
		if err != nil {
			s.c.Logger.Info("a provisioner is refused", "address", addressOf(r), "reason", err.Error())
			answerRefused(w, err)
			return
		}
		ctx, leave, ok := s.requests.enter(r.Context(), ca.Provisioner{Project: who.Project, Name: who.Name})
		if !ok {
			answerRefused(w, busy)
			return
		}
		defer leave()
		inner.ServeHTTP(s.prepare(w, r), r.WithContext(context.WithValue(ctx, key{}, who)))
	})
	return routes
}

// prepare gives a request its time, and what its answer goes through.
func (s *Service) prepare(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	control, now := http.NewResponseController(w), time.Now()
	limit := func(until time.Time) {
		// Reading ends later than the wait, because the connection is read while the request is served: to notice that
		// the provisioner is gone.
		_ = control.SetReadDeadline(until)
		_ = control.SetWriteDeadline(until)
	}
	switch {
	case r.URL.Path == task.TakePath:
		limit(now.Add(waitTime + bodyTime))
		return &checked{ResponseWriter: w, check: func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Second)
			defer cancel()
			_, err := s.Identify(ctx, shown(r))
			return err
		}}
	case strings.HasPrefix(r.URL.Path, task.ResourcePath+"/"):
		limit(now.Add(stallTime))
		return &flowing{ResponseWriter: w, extend: func() { limit(time.Now().Add(stallTime)) }}
	}
	limit(now.Add(bodyTime))
	return w
}

// checked identifies the provisioner again before the answer goes out: it may have been revoked while it waited, and
// tasks have secrets.
type checked struct {
	http.ResponseWriter
	check    func() error
	done, no bool
}

func (c *checked) may() bool {
	if !c.done {
		c.done = true
		if err := c.check(); err != nil {
			c.no = true
			answerRefused(c.ResponseWriter, err)
		}
	}
	return !c.no
}

func (c *checked) WriteHeader(code int) {
	if c.may() {
		c.ResponseWriter.WriteHeader(code)
	}
}

func (c *checked) Write(p []byte) (int, error) {
	if !c.may() {
		return len(p), nil
	}
	return c.ResponseWriter.Write(p)
}

// flowing is an answer that may take any time as long as it moves.
type flowing struct {
	http.ResponseWriter
	extend func()
}

func (f *flowing) Write(p []byte) (int, error) {
	f.extend()
	return f.ResponseWriter.Write(p)
}

var busy = refuse(http.StatusTooManyRequests, task.IsBusy,
	"the server is busy with requests of provisioners; try again")

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the provisioner may be gone
}

func answerRefused(w http.ResponseWriter, err error) {
	var refused *Refused
	if !errors.As(err, &refused) {
		refused = refuse(http.StatusInternalServerError, task.IsUnavailable, "the server failed")
	}
	if refused.Code == http.StatusServiceUnavailable || refused.Code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
	answer(w, refused.Code, refused.Refusal)
}

// shown returns the certificates that the client has shown, and has the keys of.
func shown(r *http.Request) []*x509.Certificate {
	if r.TLS == nil {
		return nil
	}
	return r.TLS.PeerCertificates
}

// addressOf returns the address of the client, without the port.
func addressOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// read reads a small request.
func read(w http.ResponseWriter, r *http.Request, into any, request *string) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, task.MaxJoinBody))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, task.IsBadRequest, "the request is too large, or broke off")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return refuse(http.StatusBadRequest, task.IsBadRequest, "the body is not the JSON object of this request")
	}
	if len(*request) > task.MaxRequest {
		return refuse(http.StatusBadRequest, task.IsBadRequest, "the certificate request is too large")
	}
	return nil
}

func (s *Service) serveJoin(w http.ResponseWriter, r *http.Request) {
	if !s.joins.TryAcquire(1) {
		answerRefused(w, busy)
		return
	}
	defer s.joins.Release(1)
	var j task.Join
	err := read(w, r, &j, &j.Request)
	var joined task.Joined
	if err == nil {
		joined, err = s.Join(r.Context(), j, addressOf(r))
	}
	if err != nil {
		answerRefused(w, err)
		return
	}
	answer(w, http.StatusCreated, joined)
}

func (s *Service) serveCertificate(w http.ResponseWriter, r *http.Request) {
	if !s.joins.TryAcquire(1) {
		answerRefused(w, busy)
		return
	}
	defer s.joins.Release(1)
	var q task.CertificateRequest
	err := read(w, r, &q, &q.Request)
	var issued ca.Issued
	if err == nil {
		issued, err = s.Renew(r.Context(), shown(r), q.Request)
	}
	if err != nil {
		answerRefused(w, err)
		return
	}
	answer(w, http.StatusOK, task.CertificateAnswer{Certificate: issued.PEM})
}

// Serving returns how many requests of a provisioner are being served by this process.
func (s *Service) Serving(project intent.ProjectID, name string) int {
	return s.requests.serving(ca.Provisioner{Project: project, Name: name})
}
