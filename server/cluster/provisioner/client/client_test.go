package client_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/client"
	"ordain.dev/ordain/server/cluster/task"
)

var quick = client.Backoff{First: time.Millisecond, Most: 5 * time.Millisecond}

// serve starts a desk that answers as f does.
func serve(t *testing.T, f http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{Base: s.URL, HTTP: s.Client(), Backoff: quick, Patience: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The server fails in several ways before it answers. What may be repeated is repeated.
func TestRepeat(t *testing.T) {
	var n atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3: // breaks off in the middle
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"gone":[`)
		default:
			_, _ = io.WriteString(w, `{}`)
		}
	})
	if _, err := c.Renew(t.Context(), task.Renew{}); err != nil || n.Load() != 4 {
		t.Errorf("%v after %d tries", err, n.Load())
	}
	n.Store(0)
	if _, err := c.Take(t.Context(), task.Take{}); !fault.Is(err, fault.Unavailable) || n.Load() != 1 {
		t.Errorf("%v after %d tries", err, n.Load())
	}
}

// Output that the desk may have seen is not sent again, for it would appear twice. Output that the desk said it did
// not take is.
func TestOutputOnce(t *testing.T) {
	var n atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1); strings.Contains(r.URL.Path, "output") && n.Load() == 1 {
			panic(http.ErrAbortHandler)
		}
		if n.Load() == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if err := c.Output(t.Context(), task.Output{}); err == nil || n.Load() != 1 {
		t.Errorf("%v after %d tries", err, n.Load())
	}
	if err := c.Output(t.Context(), task.Output{}); err != nil || n.Load() != 3 {
		t.Errorf("%v after %d tries", err, n.Load())
	}
}

// Refusals keep their kind and their words, and are not repeated.
func TestRefusals(t *testing.T) {
	var n atomic.Int32
	status := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(task.Refusal{Message: "this provisioner was removed"})
	})
	for code, kind := range map[int]fault.Kind{400: fault.Invalid, 401: fault.Unauthorized, 403: fault.Forbidden,
		404: fault.NotFound, 409: fault.Conflict, 302: fault.Invalid} {
		status = code
		n.Store(0)
		_, err := c.Hello(t.Context(), task.Hello{})
		if !fault.Is(err, kind) || !strings.Contains(err.Error(), "was removed") || n.Load() != 1 {
			t.Errorf("%d: %v after %d tries", code, err, n.Load())
		}
	}
}

// An answer that does not end, one that is no JSON, and more tasks than there is room for are refused.
func TestBadAnswers(t *testing.T) {
	body := ""
	endless := false
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, body)
		for endless && r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	for _, body = range []string{"<html>", `{"tasks":[{},{}]}`} {
		if _, err := c.Take(t.Context(), task.Take{Room: 1}); !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
	}
	endless = true
	if _, err := c.Take(t.Context(), task.Take{Room: 1}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
}

// Results are sent in as many requests as they need.
func TestFinishInParts(t *testing.T) {
	var sizes []int
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var f task.Finish
		text, _ := io.ReadAll(r.Body)
		if len(text) > task.MaxBody || json.Unmarshal(text, &f) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		sizes = append(sizes, len(f.Results))
		_ = json.NewEncoder(w).Encode(task.Finished{Dropped: []uuid.UUID{f.Results[0].ID}})
	})
	many := make([]task.Result, task.MaxFinish+10)
	dropped, err := c.Finish(t.Context(), many)
	if err != nil || len(dropped) != 2 || fmt.Sprint(sizes) != "[256 10]" {
		t.Errorf("%v, %v, %v", err, dropped, sizes)
	}
	sizes = nil
	large := make([]task.Result, 50)
	for i := range large {
		large[i].Output = strings.Repeat("\x01", task.MaxOutput) // six bytes each in JSON
	}
	if _, err := c.Finish(t.Context(), large); err != nil || len(sizes) != 2 {
		t.Errorf("%v, %v", err, sizes)
	}
}

// The context ends while the desk is asked to wait: Take returns at once.
func TestTakeEnds(t *testing.T) {
	asked := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := c.Take(ctx, task.Take{WaitMS: 60_000}); err != context.Canceled {
		t.Error(err)
	}
}

// The nodes of a cluster come once for all of its tasks, and each task has them for itself: a plug-in that changes them
// changes them for no other task.
func TestNodesOfATask(t *testing.T) {
	shop := uuid.New()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(task.Taken{
			Tasks: []task.Task{{Cluster: task.Cluster{ID: shop}}, {Cluster: task.Cluster{ID: shop}}},
			Nodes: map[uuid.UUID]map[int]task.Peer{shop: {1000: {
				Hostname: "shop-1000", Services: []string{"web"}, Addresses: map[string]string{"bind_v4": "10.0.0.1"},
			}}},
		})
	})
	taken, err := c.Take(t.Context(), task.Take{Room: 2})
	if err != nil || len(taken.Tasks) != 2 {
		t.Fatal(taken, err)
	}
	one, other := taken.Tasks[0].Nodes, taken.Tasks[1].Nodes
	one[1000].Services[0], one[1000].Addresses["bind_v4"] = "changed", "changed"
	delete(one, 1000)
	if peer := other[1000]; peer.Hostname != "shop-1000" || peer.Services[0] != "web" ||
		peer.Addresses["bind_v4"] != "10.0.0.1" {
		t.Errorf("the other task has %+v", other)
	}
}

// The desk is reached over TLS with a client certificate, or over a socket pair: that is up to the HTTP client.
func TestTransports(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(task.Welcome{Project: "p"})
	})
	t.Run("TLS", func(t *testing.T) {
		s := httptest.NewUnstartedServer(hello)
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
		s.StartTLS()
		defer s.Close()
		own := s.Client().Transport.(*http.Transport).Clone()
		own.TLSClientConfig.Certificates = s.TLS.Certificates
		without := s.Client().Transport.(*http.Transport)
		for with, transport := range map[bool]*http.Transport{true: own, false: without} {
			c, err := client.New(client.Config{Base: s.URL, HTTP: &http.Client{Transport: transport}, Backoff: quick,
				Patience: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if w, err := c.Hello(t.Context(), task.Hello{}); (err == nil) != with || with && w.Project != "p" {
				t.Errorf("with a certificate: %t; %+v, %v", with, w, err)
			}
		}
	})
	t.Run("socket pair", func(t *testing.T) {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		var ends [2]net.Conn
		for i := range pair {
			f := os.NewFile(uintptr(pair[i]), "pair")
			if ends[i], err = net.FileConn(f); err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
		}
		l := &one{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conns <- ends[0]
		s := &http.Server{Handler: hello}
		go func() { _ = s.Serve(l) }()
		defer s.Close()
		transport := &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return ends[1], nil },
		}
		c, err := client.New(client.Config{Base: "http://desk", HTTP: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if w, err := c.Hello(t.Context(), task.Hello{}); err != nil || w.Project != "p" {
				t.Errorf("%+v, %v", w, err)
			}
		}
	})
}

// one listens for one connection that is there already.
type one struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (o *one) Accept() (net.Conn, error) {
	select {
	case c := <-o.conns:
		return c, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

func (o *one) Close() error   { close(o.closed); return nil }
func (o *one) Addr() net.Addr { return &net.UnixAddr{} }

func TestNew(t *testing.T) {
	for _, base := range []string{"", "ordain.example:8443", "ftp://x", "://"} {
		if _, err := client.New(client.Config{Base: base, HTTP: http.DefaultClient}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// Pauses grow to their limit, and differ.
func TestBackoff(t *testing.T) {
	b := client.Backoff{First: 100 * time.Millisecond, Most: time.Second}
	seen := map[time.Duration]bool{}
	for n := range 100 {
		p := b.Pause(n)
		low, high := 50*time.Millisecond<<min(n, 4), 100*time.Millisecond<<min(n, 4)
		if p < min(low, 500*time.Millisecond) || p > min(high, time.Second) {
			t.Errorf("pause %d is %s", n, p)
		}
		seen[p] = true
	}
	if len(seen) < 50 {
		t.Error("there is no jitter")
	}
}
