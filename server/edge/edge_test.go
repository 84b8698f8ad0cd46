package edge

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func alive(context.Context) error { return nil }

func guard(t *testing.T, change func(*Config)) *Guard {
	t.Helper()
	cfg := Config{BindAddress: "127.0.0.1", Logger: slog.New(slog.DiscardHandler), Ping: alive}
	if change != nil {
		change(&cfg)
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

// ask returns the status of a request with these headers.
func ask(g *Guard, method, target string, headers ...string) int {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	g.Handler(hello).ServeHTTP(w, r)
	return w.Code
}

// The server answers to loopback names, to its own address, to that of its public URL and to the names that the
// operator allows, with any port. It answers to no other name, except for health checks.
func TestHosts(t *testing.T) {
	g := guard(t, func(c *Config) {
		c.BindAddress, c.PublicURL = "192.0.2.7", "https://Ordain.example.org/base"
		c.AllowedHosts = []string{"ordain.lan", "second.lan:8443"}
	})
	for host, status := range map[string]int{
		"localhost": 200, "localhost:1234": 200, "LOCALHOST.": 200, "127.0.0.1": 200, "127.8.9.1:80": 200,
		"[::1]:8888": 200, "[::1]": 200, "[::ffff:127.0.0.1]": 200, "192.0.2.7:8888": 200,
		"ordain.example.org": 200, "ordain.example.org:8443": 200, "ordain.lan:99": 200, "second.lan": 200,
		"evil.example": 421, "evil.example:8888": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
		"192.0.2.8": 421, "x.ordain.lan": 421, "": 421, "[::2]": 421, "2130706433": 421, "<script>": 421,
	} {
		for _, path := range []string{"/", "/api/v2/project", "/e/1?live"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			g.Handler(hello).ServeHTTP(w, r)
			if w.Code != status {
				t.Errorf("%q: %s is answered %d, want %d", host, path, w.Code, status)
			}
			if strings.Contains(w.Body.String(), "<script>") && path != "/api/v2/project" {
				t.Errorf("the page for %q contains it as it is", host)
			}
		}
		r := httptest.NewRequest("GET", "/healthz", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if g.Handler(hello).ServeHTTP(w, r); w.Code != 200 {
			t.Errorf("%q: a health check is answered %d", host, w.Code)
		}
	}
	if _, err := New(Config{Logger: slog.Default(), Ping: alive, AllowedHosts: []string{"*"}}); err == nil {
		t.Error("any name can be allowed at once")
	}
}

// A page of another origin can send nothing that changes something, and of what only reads nothing but a link.
func TestOrigins(t *testing.T) {
	g := guard(t, func(c *Config) { c.PublicURL = "https://ordain.example.org" })
	const at = "http://localhost:8888/e/1/halt"
	for _, c := range []struct {
		method  string
		status  int
		headers []string
	}{
		{"POST", 200, nil}, // a program
		{"POST", 200, []string{"Sec-Fetch-Site", "same-origin"}},
		{"POST", 200, []string{"Origin", "http://localhost:8888"}},
		{"POST", 200, []string{"Origin", "https://ordain.example.org", "Sec-Fetch-Site", "cross-site"}},
		{"POST", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"POST", 403, []string{"Sec-Fetch-Site", "same-site"}},
		{"POST", 403, []string{"Origin", "http://localhost:9999"}},
		{"POST", 403, []string{"Origin", "null"}},
		{"PUT", 403, []string{"Origin", "https://evil.example"}},
		{"DELETE", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"PATCH", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"GET", 200, nil},
		{"GET", 200, []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{"GET", 200, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
			"document"}},
		{"GET", 403, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
			"iframe"}},
		{"GET", 403, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}},
		{"GET", 403, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}},
	} {
		if got := ask(g, c.method, at, c.headers...); got != c.status {
			t.Errorf("%s with %q is answered %d, want %d", c.method, c.headers, got, c.status)
		}
	}
}

// A GET that does something is for programs, for people who type its address, and for pages of the server.
func TestActingGets(t *testing.T) {
	for _, c := range []struct {
		allowed bool
		headers []string
	}{
		{true, []string{"User-Agent", "curl/8"}},
		{true, nil},
		{true, []string{"User-Agent", "Mozilla/5.0", "Sec-Fetch-Site", "none"}},
		{true, []string{"User-Agent", "Mozilla/5.0", "Sec-Fetch-Site", "same-origin"}},
		{true, []string{"User-Agent", "Mozilla/5.0", "Referer", "http://localhost:8888/x"}},
		{false, []string{"User-Agent", "Mozilla/5.0", "Sec-Fetch-Site", "cross-site"}},
		{false, []string{"User-Agent", "Mozilla/5.0", "Sec-Fetch-Site", "same-site"}},
		{false, []string{"User-Agent", "Mozilla/5.0"}},
		{false, []string{"Referer", "http://evil.example/"}},
		{false, []string{"Origin", "null"}},
	} {
		r := httptest.NewRequest("GET", "http://localhost:8888/api/v1/notify/1", nil)
		for i := 0; i+1 < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		if err := CheckActingGet(r); (err == nil) != c.allowed {
			t.Errorf("%q: %v", c.headers, err)
		}
	}
}

// Bodies are JSON and say so. Clients of Inmanta, which are no browsers, need not.
func TestContentTypes(t *testing.T) {
	for _, c := range []struct {
		allowed bool
		media   string
		headers []string
	}{
		{true, "application/json", nil},
		{true, "application/json; charset=utf-8", []string{"Origin", "http://localhost"}},
		{true, "", nil}, // inmanta's PUT
		{true, "application/x-www-form-urlencoded", nil}, // inmanta's POST
		{false, "application/x-www-form-urlencoded", []string{"Origin", "http://localhost"}},
		{false, "", []string{"Sec-Fetch-Site", "same-origin"}},
		{false, "text/plain", nil},
		{false, "text/plain; application/json", nil},
		{false, "multipart/form-data; boundary=x", nil},
		{false, "application/jsonx", nil},
	} {
		r := httptest.NewRequest("PUT", "/", nil)
		r.Header.Set("Content-Type", c.media)
		for i := 0; i+1 < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		if err := CheckJSON(r); (err == nil) != c.allowed {
			t.Errorf("%q %q: %v", c.media, c.headers, err)
		}
	}
}

// serveOn serves a handler behind a guard on a port of its own.
func serveOn(t *testing.T, g *Guard, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := g.Server(h, slog.New(slog.DiscardHandler))
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(g.Listen(l)); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		_ = s.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

// Connections that wait for nothing make room for new ones. Those on which a request is being answered stay.
func TestConnectionsMakeRoom(t *testing.T) {
	const limit = 10
	g := guard(t, func(c *Config) { c.MaxConnections = limit })
	entered, leave := make(chan struct{}), make(chan struct{})
	address := serveOn(t, g, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-leave
		}
		_, _ = io.WriteString(w, "hello")
	}))
	slow := make(chan error)
	go func() {
		res, err := http.Get("http://" + address + "/slow")
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		slow <- err
	}()
	<-entered
	for range 5 * limit {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HT"); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Get("http://" + address + "/")
		if err != nil {
			t.Fatal("others do not get in: ", err)
		}
		res.Body.Close()
	}
	g.connections.mu.Lock()
	if n := len(g.connections.open); n > limit {
		t.Errorf("%d connections are open", n)
	}
	g.connections.mu.Unlock()
	close(leave)
	if err := <-slow; err != nil {
		t.Error("the request that was being answered ended: ", err)
	}
}

// When the server is busy with as many requests as it takes, further ones hear at once that they should come back, and
// health checks are answered.
func TestBusyServersSaySo(t *testing.T) {
	g := guard(t, func(c *Config) { c.MaxConnections = 4 })
	leave := make(chan struct{})
	var all sync.WaitGroup
	entered := make(chan struct{})
	h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	}))
	for range 3 {
		all.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost/", nil)) })
		<-entered
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more request is answered %d", w.Code)
	}
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/healthz", nil)); w.Code != http.StatusOK {
		t.Errorf("a health check is answered %d", w.Code)
	}
	close(leave)
	all.Wait()
}

// A server is ready while its database answers.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		away := false
		g := guard(t, func(c *Config) {
			c.Ping = func(ctx context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				if away {
					<-ctx.Done()
				}
				return ctx.Err()
			}
		})
		ready := func() int { return ask(g, "GET", "/readyz") }
		if got := ready(); got != 503 {
			t.Errorf("before it starts: %d", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { g.Run(ctx) })
		synctest.Wait()
		if got := ready(); got != 200 {
			t.Errorf("while the database answers: %d", got)
		}
		mu.Lock()
		away = true
		mu.Unlock()
		time.Sleep(4 * time.Second)
		if got := ready(); got != 503 {
			t.Errorf("while it does not: %d", got)
		}
		if got := ask(g, "GET", "/healthz"); got != 200 {
			t.Errorf("the process is alive: %d", got)
		}
		cancel()
		running.Wait()
	})
}

func zipped(t *testing.T, text string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if _, err := io.WriteString(zip, text); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// Bodies are read whole up to the limit, packed or not, and with or without a length.
func TestReadingBodies(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 16 << 10, 100_000, 1 << 20, 1<<20 + 1, 3 << 20} {
		text := strings.Repeat("x", size)
		for _, kind := range []string{"plain", "gzip", "chunked"} {
			bodies := NewBodies(2 << 20)
			r := httptest.NewRequest("PUT", "/", strings.NewReader(text))
			switch kind {
			case "gzip":
				r = httptest.NewRequest("PUT", "/", zipped(t, text))
				r.Header.Set("Content-Encoding", "gzip")
			case "chunked":
				r.ContentLength = -1
			}
			share := bodies.Share()
			got, err := share.Read(r, 1<<20)
			switch {
			case size > 1<<20 && !errors.Is(err, ErrTooLarge):
				t.Errorf("%s, %d bytes: %v", kind, size, err)
			case size <= 1<<20 && (err != nil || string(got) != text):
				t.Errorf("%s, %d bytes: got %d, %v", kind, size, len(got), err)
			}
			if size <= 1<<20 && share.large != (size > 1<<19) || size <= free/2 && share.held > 0 {
				t.Errorf("%s, %d bytes: %d are held, large: %v", kind, size, share.held, share.large)
			}
			share.Release()
			if !bodies.budget.TryAcquire(2<<20) || !bodies.large.TryAcquire(1) {
				t.Errorf("%s, %d bytes: the budget is not whole again", kind, size)
			}
		}
	}
	r := httptest.NewRequest("PUT", "/", strings.NewReader("plain"))
	r.Header.Set("Content-Encoding", "gzip")
	if _, err := NewBodies(1).Share().Read(r, 100); !errors.Is(err, ErrGzip) {
		t.Errorf("%v", err)
	}
}

// A request waits for its share of the budget, but not for long. Small bodies need none.
func TestTheBudgetOfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := NewBodies(1 << 20)
		var others [4]*Share
		for i := range others {
			others[i] = bodies.Share()
			if err := others[i].Take(t.Context(), 1<<18); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		body := httptest.NewRequest("PUT", "/", strings.NewReader(strings.Repeat("x", 1<<17)))
		if _, err := bodies.Share().Read(body, 1<<20); !errors.Is(err, ErrBusy) || time.Since(began) != bodyWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		body = httptest.NewRequest("PUT", "/", strings.NewReader("{}"))
		if _, err := bodies.Share().Read(body, 1<<20); err != nil {
			t.Errorf("a small body: %v", err)
		}
		var waiting sync.WaitGroup
		waiting.Go(func() {
			late := bodies.Share()
			if err := late.Take(t.Context(), 1000); err != nil {
				t.Errorf("after another has ended: %v", err)
			}
			late.Release()
		})
		synctest.Wait()
		others[0].Release()
		waiting.Wait()
	})
}

// Large bodies that arrive together take turns, and all of them arrive.
func TestLargeBodiesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := NewBodies(1 << 20)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				share := bodies.Share()
				defer share.Release()
				body := &repeated{left: 3 << 20, pause: time.Millisecond}
				got, err := share.Read(httptest.NewRequest("PUT", "/", body), 4<<20)
				if err != nil || len(got) != 3<<20 {
					t.Errorf("%d bytes arrived: %v", len(got), err)
				}
			})
		}
		all.Wait()
	})
}

// repeated is a body that arrives in pieces, with a pause before each.
type repeated struct {
	left  int
	pause time.Duration
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(r.pause)
	n := min(len(p), r.left, 16<<10)
	r.left -= n
	return n, nil
}

// A client that reads nothing of its answer does not hold the connection.
func TestClientsThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		c := newConnections(10, slog.New(slog.DiscardHandler)).admit(here)
		began := time.Now()
		n, err := c.Write(make([]byte, 1<<20))
		if timeout := net.Error(nil); n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("wrote %d: %v", n, err)
		}
		if took := time.Since(began); took != writeStall {
			t.Errorf("after %v", took)
		}
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		if _, err := c.Write([]byte("x")); err == nil || time.Since(began) != time.Second {
			t.Errorf("an earlier deadline of the server does not count: %v after %v", err, time.Since(began))
		}
	})
}
