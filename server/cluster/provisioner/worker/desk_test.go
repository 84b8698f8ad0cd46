package worker_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/cluster/provisioner/client"
	"ordain.dev/ordain/server/cluster/provisioner/worker"
	"ordain.dev/ordain/server/cluster/task"
)

// patience is how long a test waits on a busy machine.
const patience = 30 * time.Second

// desk is the desk of a server in small: it keeps the rules of leases, and can be made to misbehave.
type desk struct {
	t     testing.TB
	lease time.Duration
	http  *httptest.Server

	mu       sync.Mutex
	changed  chan struct{} // closed when anything changes
	ready    []task.Task
	leased   map[uuid.UUID]*leased
	results  map[uuid.UUID]task.Result
	dropped  []task.Result
	output   map[uuid.UUID]string
	contents map[string][]byte
	asked    map[string]int // requests by path
	away     bool           // connections are cut off
	late     func()         // called between taking output and answering
	refuse   func(task.Result) bool
	project  string
}

type leased struct {
	task.Task
	until time.Time
}

func newDesk(t testing.TB, lease time.Duration) *desk {
	d := &desk{t: t, lease: lease, changed: make(chan struct{}), leased: map[uuid.UUID]*leased{},
		results: map[uuid.UUID]task.Result{}, output: map[uuid.UUID]string{}, contents: map[string][]byte{},
		asked: map[string]int{}, project: "p"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+task.HelloPath, handle(d, func(r *http.Request, hello task.Hello) any {
		return task.Welcome{Project: d.project, Name: "one", LeaseMS: lease.Milliseconds()}
	}))
	mux.HandleFunc("POST "+task.TakePath, handle(d, d.take))
	mux.HandleFunc("POST "+task.RenewPath, handle(d, d.renew))
	takeOutput := handle(d, func(_ *http.Request, o task.Output) any {
		if l := d.leased[o.ID]; l != nil && l.Fence == o.Fence {
			d.output[o.ID] += o.Text
		}
		return nil
	})
	mux.HandleFunc("POST "+task.OutputPath, func(w http.ResponseWriter, r *http.Request) {
		takeOutput(w, r)
		if d.late != nil {
			d.late()
		}
	})
	mux.HandleFunc("POST "+task.FinishPath, handle(d, d.finish))
	mux.HandleFunc("GET "+task.ResourcePath+"/{hash}", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.asked[task.ResourcePath]++
		content, ok := d.contents[r.PathValue("hash")]
		d.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	})
	d.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		away := d.away
		d.asked[r.URL.Path]++
		d.mu.Unlock()
		if away {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(d.http.Close)
	return d
}

// count returns how often a path was asked for, printed what a task printed, and got its result.
func (d *desk) count(path string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[path]
}

func (d *desk) printed(id uuid.UUID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.output[id]
}

func (d *desk) got(id uuid.UUID) task.Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.results[id]
}

// handle decodes a request and calls f with the lock held.
func handle[T any](d *desk, f func(*http.Request, T) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request T
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, task.MaxBody)).Decode(&request); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		d.mu.Lock()
		answer := f(r, request)
		d.mu.Unlock()
		if refusal, ok := answer.(task.Refusal); ok {
			w.WriteHeader(http.StatusBadRequest)
			answer = refusal
		} else if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// take waits for tasks. A task whose lease is over is ready again, with the next fence.
func (d *desk) take(r *http.Request, take task.Take) any {
	wait := time.NewTimer(time.Duration(take.WaitMS) * time.Millisecond)
	defer wait.Stop()
	for {
		next := time.Hour
		for id, l := range d.leased {
			if left := time.Until(l.until); left > 0 {
				next = min(next, left)
				continue
			}
			delete(d.leased, id)
			l.Fence++
			l.Attempt++
			d.ready = append(d.ready, l.Task)
		}
		n := min(take.Room, len(d.ready))
		if n > 0 && !d.away {
			taken := task.Taken{Tasks: append([]task.Task{}, d.ready[:n]...)}
			d.ready = d.ready[n:]
			for _, t := range taken.Tasks {
				d.leased[t.ID] = &leased{t, time.Now().Add(d.lease)}
			}
			return taken
		}
		changed := d.changed
		d.mu.Unlock()
		over := false
		select {
		case <-changed:
		case <-time.After(next):
		case <-wait.C:
			over = true
		case <-r.Context().Done():
			over = true
		}
		d.mu.Lock()
		if over {
			return task.Taken{}
		}
	}
}

func (d *desk) renew(_ *http.Request, renew task.Renew) any {
	var out task.Renewed
	for _, lease := range renew.Leases {
		if l := d.leased[lease.ID]; l != nil && l.Fence == lease.Fence && time.Now().Before(l.until) {
			l.until = time.Now().Add(d.lease)
		} else {
			out.Gone = append(out.Gone, lease.ID)
		}
	}
	return out
}

func (d *desk) finish(_ *http.Request, finish task.Finish) any {
	var out task.Finished
	for _, r := range finish.Results {
		if d.refuse != nil && d.refuse(r) {
			return task.Refusal{Message: "a result is bad"}
		}
	}
	for _, r := range finish.Results {
		if l := d.leased[r.ID]; l != nil && l.Fence == r.Fence {
			d.results[r.ID] = r
			delete(d.leased, r.ID)
		} else if was, ok := d.results[r.ID]; !ok || was.Fence != r.Fence {
			d.dropped = append(d.dropped, r)
			out.Dropped = append(out.Dropped, r.ID)
		}
	}
	d.tell()
	return out
}

func (d *desk) tell() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// change changes the desk, and wakes those who wait for it.
func (d *desk) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	d.tell()
}

// add makes tasks ready.
func (d *desk) add(tasks ...task.Task) {
	d.change(func() { d.ready = append(d.ready, tasks...) })
}

// takeAway gives a task a new lease that nobody has, as if it were with another provisioner, or makes it ready again.
func (d *desk) takeAway(id uuid.UUID, ready bool) {
	d.change(func() {
		l := d.leased[id]
		l.Fence++
		l.Attempt++
		if ready {
			delete(d.leased, id)
			d.ready = append(d.ready, l.Task)
		} else {
			l.until = time.Now().Add(time.Hour)
		}
	})
}

// until waits until a condition on the desk holds.
func (d *desk) until(what string, condition func() bool) {
	d.t.Helper()
	over := time.After(patience)
	for {
		d.mu.Lock()
		ok, changed := condition(), d.changed
		d.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-over:
			d.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// result waits for the result of a task.
func (d *desk) result(id uuid.UUID) task.Result {
	d.t.Helper()
	d.until("there is a result", func() bool { _, ok := d.results[id]; return ok })
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.results[id]
}

// store keeps a content.
func (d *desk) store(content string) (hash string, size int64) {
	sum := sha256.Sum256([]byte(content))
	hash = hex.EncodeToString(sum[:])
	d.change(func() { d.contents[hash] = []byte(content) })
	return hash, int64(len(content))
}

// log collects what the worker logs, and shows it if the test fails.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// newWorker makes a worker for the desk.
func (d *desk) newWorker(plugins worker.Plugins, room int, set func(*worker.Config)) (*worker.Worker, *log) {
	d.t.Helper()
	quick := client.Backoff{First: 5 * time.Millisecond, Most: 50 * time.Millisecond}
	c, err := client.New(client.Config{Base: d.http.URL, HTTP: d.http.Client(), Backoff: quick})
	if err != nil {
		d.t.Fatal(err)
	}
	l := &log{}
	d.t.Cleanup(func() {
		if d.t.Failed() {
			d.t.Log(l.text.String())
		}
	})
	config := worker.Config{Client: c, Plugins: plugins, Folder: d.t.TempDir(), Room: room, Backoff: quick,
		Logger: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if set != nil {
		set(&config)
	}
	w, err := worker.New(config)
	if err != nil {
		d.t.Fatal(err)
	}
	return w, l
}

// start starts a worker that the test stops.
func (d *desk) start(plugins worker.Plugins, room int, set func(*worker.Config)) *log {
	d.t.Helper()
	w, l := d.newWorker(plugins, room, set)
	if err := w.Start(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(w.Stop)
	return l
}
