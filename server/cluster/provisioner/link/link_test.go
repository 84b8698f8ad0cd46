package link_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/server/cluster/provisioner/link"
)

const patience = 20 * time.Second

// connected is both ends of a connection in one process.
type connected struct {
	*testing.T
	link   *link.Link
	child  int // a copy of the child's descriptor
	client *http.Client
	lost   <-chan struct{}
	served chan struct{}
	stop   context.CancelFunc
}

func connect(t *testing.T, handler http.HandlerFunc) *connected {
	t.Helper()
	l, err := link.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	// As the child has it: a descriptor without an owner.
	inherited, err := syscall.Dup(int(l.Child.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	c := &connected{T: t, link: l, served: make(chan struct{})}
	if c.child, err = syscall.Dup(inherited); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(c.child) })
	_ = l.Child.Close()
	if c.client, c.lost, err = link.Connect(inherited); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	go func() {
		defer close(c.served)
		l.Serve(ctx, handler)
	}()
	t.Cleanup(func() { stop(); c.await("the end of Serve", c.served) })
	return c
}

func (c *connected) await(what string, signal <-chan struct{}) {
	c.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		c.Fatal("waited in vain for " + what)
	}
}

func (c *connected) get(ctx context.Context, path string) (string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, link.Base+path, nil)
	if err != nil {
		return "", err
	}
	a, err := c.client.Do(q)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return string(text), err
}

// A request that waits does not keep others from their answers, and one that is given up does not end the connection.
func TestRequestsShareTheConnection(t *testing.T) {
	waiting, goOn := make(chan struct{}), make(chan struct{})
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			close(waiting)
			select {
			case <-goOn:
			case <-r.Context().Done():
			}
			return
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.get(ctx, "/wait")
	}()
	c.await("the first request", waiting)
	var all sync.WaitGroup
	for range 300 { // more than HTTP/2 allows at a time by default
		all.Go(func() {
			if text, err := c.get(t.Context(), "/other"); text != "/other" {
				t.Errorf("%q %v", text, err)
			}
		})
	}
	all.Wait()
	giveUp()
	c.await("the end of the request", ended)
	if text, err := c.get(t.Context(), "/again"); text != "/again" {
		t.Errorf("%q %v", text, err)
	}
}

// When the server's end is closed, the provisioner learns it without asking, requests that wait end, and there is no
// second connection.
func TestServerGoes(t *testing.T) {
	waiting := make(chan struct{})
	c := connect(t, func(_ http.ResponseWriter, r *http.Request) {
		close(waiting)
		<-r.Context().Done()
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.get(t.Context(), "/")
	}()
	c.await("the request", waiting)
	c.stop()
	c.await("the end of the connection", c.lost)
	c.await("the end of the request", ended)
	c.await("the end of Serve", c.served)
	if _, err := c.get(t.Context(), "/"); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a request after the end: %v", err)
	}
}

// When the provisioner is gone, Serve ends, and so does a request that it waits for.
func TestProvisionerGoes(t *testing.T) {
	waiting, over := make(chan struct{}), make(chan struct{})
	c := connect(t, func(_ http.ResponseWriter, r *http.Request) {
		close(waiting)
		<-r.Context().Done()
		close(over)
	})
	go func() { _, _ = c.get(t.Context(), "/") }()
	c.await("the request", waiting)
	c.client.CloseIdleConnections() // the connection is in use, so it stays
	select {
	case <-c.lost:
		t.Fatal("the connection has ended")
	default:
	}
	// What the kernel does when the process dies.
	if err := syscall.Shutdown(c.child, syscall.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	c.await("the end of the request at the server", over)
	c.await("the end of Serve", c.served)
}

// A child that ends before it asks for anything ends Serve as well.
func TestProvisionerNeverAsks(t *testing.T) {
	l, err := link.New()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		l.Serve(t.Context(), http.NotFoundHandler())
	}()
	_ = l.Child.Close()
	select {
	case <-served:
	case <-time.After(patience):
		t.Fatal("Serve goes on")
	}
}

// A descriptor that is no socket is refused with a hint.
func TestNoConnection(t *testing.T) {
	if _, _, err := link.Connect(1); err == nil {
		t.Error("standard output is taken for a connection")
	}
	if _, _, err := link.Connect(987_654); err == nil {
		t.Error("a closed descriptor is taken for a connection")
	}
}
