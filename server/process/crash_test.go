package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/process"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/postgres"
	"ordain.dev/ordain/server/store/storetest"
)

// urls are the databases of stores that tests look into.
var urls sync.Map

// open opens a second store on the database of a test.
func open(t testing.TB, url string) *store.Store {
	t.Helper()
	s := get(store.Open(t.Context(), store.Config{URL: url, Logger: storetest.Logger(t)}))(t)
	t.Cleanup(s.Close)
	urls.Store(s, url)
	return s
}

// exec runs a statement on the database of a store.
func exec(t testing.TB, s *store.Store, sql string) {
	t.Helper()
	url, known := urls.Load(s)
	if !known {
		t.Fatal("the store was not opened with open")
	}
	conn := get(pgx.Connect(t.Context(), url.(string)))(t)
	_, err := conn.Exec(t.Context(), sql)
	must(t, err)
	must(t, conn.Close(t.Context()))
}

const childVariable = "ORDAIN_PROCESS_TEST_CHILD"

// child is a server of its own that runs thing.create and stays in the middle of its second handler. It says what it
// does on its output, and goes on when it reads a line.
func child() {
	s, err := store.Open(context.Background(), store.Config{
		URL: os.Getenv(childVariable), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	input := bufio.NewReader(os.Stdin)
	e, err := process.New(process.Config{
		Record: s, Bus: &bus.Bus{}, Logger: slog.New(slog.DiscardHandler), Worker: "child", Lease: time.Second,
		Sweep: 50 * time.Millisecond, Definitions: []process.Definition{
			create(step("first", func(context.Context, *process.Run) error { return nil }),
				step("second", func(ctx context.Context, r *process.Run) error {
					fmt.Println("begun")
					if _, err := input.ReadString('\n'); err != nil {
						os.Exit(0)
					}
					_, err := r.Holding(s).Schedule(context.WithoutCancel(ctx), intent.NewProcess{
						Name: "thing.late", Resource: intent.ProcessResource{Type: "thing", ID: "late"},
					})
					fmt.Println(errors.Is(err, store.ErrProcessTaken), err)
					return nil
				})),
		},
	})
	if err == nil {
		err = e.Start(context.Background())
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// startChild starts a server, and returns it once its handler runs.
func startChild(t *testing.T, url string) (pid int, input io.Writer, output *bufio.Reader) {
	t.Helper()
	self := get(os.Executable())(t)
	cmd := osexec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+url)
	cmd.Stderr = os.Stderr
	input = get(cmd.StdinPipe())(t)
	output = bufio.NewReader(get(cmd.StdoutPipe())(t))
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead already
		_ = cmd.Wait()
	})
	if line, err := output.ReadString('\n'); line != "begun\n" {
		t.Fatal(line, err)
	}
	return cmd.Process.Pid, input, output
}

// elsewhere makes an engine that finishes what the child leaves behind, and counts what it runs.
func elsewhere(t *testing.T, s *store.Store, ran *[]string) *process.Engine {
	note := func(name string) process.Handler {
		return step(name, func(context.Context, *process.Run) error { *ran = append(*ran, name); return nil })
	}
	return quick(t, s, create(note("first"), note("second")))
}

// A server is killed in the middle of a handler: another one continues with that handler as soon as the lease is over.
func TestAKilledWorkersProcessContinuesElsewhere(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := open(t, url)
	var ran []string
	e := elsewhere(t, s, &ran)
	id := begin(t, e, "thing.create", "a")
	pid, _, _ := startChild(t, url)
	must(t, e.Start(t.Context()))
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	killed := time.Now()
	p := awaitState(t, s, id, intent.ProcessDone)
	t.Logf("continued %v after the kill, with a lease of 1 s", time.Since(killed).Round(time.Millisecond))
	if strings.Join(ran, " ") != "second" || p.Attempts != 2 || p.Worker == "child" || stateOf(t, s, "a") != "active" {
		t.Errorf("%q %+v", ran, p)
	}
}

// A server is paused in the middle of a handler, and wakes up when another one has long done its work: what it writes
// for the process is refused.
func TestAPausedWorkerWritesNothingLater(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := open(t, url)
	var ran []string
	e := elsewhere(t, s, &ran)
	id := begin(t, e, "thing.create", "a")
	pid, input, output := startChild(t, url)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	must(t, e.Start(t.Context()))
	done := awaitState(t, s, id, intent.ProcessDone)
	must(t, syscall.Kill(pid, syscall.SIGCONT))
	get(io.WriteString(input, "go\n"))(t)
	if line := get(output.ReadString('\n'))(t); !strings.HasPrefix(line, "true ") {
		t.Errorf("it wrote: %s", line)
	}
	if p := get(s.Process(t.Context(), server, id))(t); p.Fence != done.Fence || p.State != intent.ProcessDone {
		t.Errorf("%+v", p)
	}
	if all := get(s.Processes(t.Context(), server, intent.ListQuery{}))(t); len(all.Items) != 1 {
		t.Errorf("%+v", all.Items)
	}
}

// The server dies between the commit and the work, and even the job is gone: the process runs.
func TestAProcessWithoutAJobRuns(t *testing.T) {
	t.Parallel()
	s := open(t, storetest.URL(t))
	e := quick(t, s, create(step("make", nil)))
	id := begin(t, e, "thing.create", "a")
	exec(t, s, "DELETE FROM river_job")
	exec(t, s, "UPDATE process SET queued = queued - interval '1 minute'")
	must(t, e.Start(t.Context()))
	awaitState(t, s, id, intent.ProcessDone)
}

// A handler that does not end though its time is over loses its process.
func TestAHandlerThatHangsLosesItsProcess(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := open(t, url)
	hang, hung := make(chan bool), make(chan bool, 10)
	definition := create(step("hang", func(context.Context, *process.Run) error {
		hung <- true
		<-hang
		return nil
	}))
	definition.Attempts = 1000
	definition.Attempt = 50 * time.Millisecond
	stuck := quick(t, s, definition)
	must(t, stuck.Start(t.Context()))
	id := begin(t, stuck, "thing.create", "a")
	<-hung
	e := quick(t, open(t, url), create(step("hang", nil)))
	must(t, e.Start(t.Context()))
	awaitState(t, s, id, intent.ProcessDone)
	close(hang)
}

// A server that stops gives its processes away at once, and the attempt does not count.
func TestAServerThatStopsLetsGo(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := open(t, url)
	begun := make(chan bool)
	first := quick(t, s, create(step("wait", func(ctx context.Context, _ *process.Run) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})))
	must(t, first.Start(t.Context()))
	id := begin(t, first, "thing.create", "a")
	<-begun
	first.Stop()
	if p := get(s.Process(t.Context(), server, id))(t); p.State != intent.ProcessWaiting || p.Attempts != 0 ||
		p.Problem != "" {
		t.Errorf("%+v", p)
	}
	next := quick(t, open(t, url), create(step("wait", nil)))
	must(t, next.Start(t.Context()))
	awaitState(t, s, id, intent.ProcessDone)
}

// Random work on a few resources by two servers, much of which fails at first: a resource has one process at a time,
// and its processes run in the order of their intentions.
func TestOneAtATimeAndInOrder(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	url := storetest.URL(t)
	s := open(t, url)
	const resources, count = 4, 60
	var mu sync.Mutex
	busy, order := map[string]bool{}, map[string][]int{}
	definition := process.Definition{
		Name: "thing.touch", Resource: "thing", Attempts: 100,
		Main: []process.Handler{step("touch", func(_ context.Context, r *process.Run) error {
			var n, failures int
			if err := errors.Join(r.Get("n", &n), r.Get("failures", &failures)); err != nil {
				return err
			}
			id := r.Process().Resource.ID
			mu.Lock()
			defer mu.Unlock()
			if busy[id] {
				t.Errorf("two processes of %s run", id)
			}
			busy[id] = true
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			busy[id] = false
			if r.Process().Attempts <= failures {
				return errors.New("not yet")
			}
			order[id] = append(order[id], n)
			return nil
		})},
	}
	engines := []*process.Engine{quick(t, s, definition), quick(t, open(t, url), definition)}
	want := map[string][]int{}
	var last []int64
	for n := range count {
		if n == count/3 {
			for _, e := range engines {
				must(t, e.Start(t.Context()))
			}
		}
		resource := fmt.Sprint(random.IntN(resources))
		failures := 0
		if random.IntN(3) == 0 {
			failures = 1 + random.IntN(2)
		}
		last = append(last, get(engines[n%2].Schedule(t.Context(), process.Intention{
			Process: "thing.touch", Resource: resource, Data: map[string]any{"n": n, "failures": failures},
		}))(t))
		want[resource] = append(want[resource], n)
	}
	for _, id := range last {
		awaitState(t, s, id, intent.ProcessDone)
	}
	mu.Lock()
	defer mu.Unlock()
	if got, wanted := get(json.Marshal(order))(t), get(json.Marshal(want))(t); string(got) != string(wanted) {
		t.Errorf("ran\n%s\nwant\n%s", got, wanted)
	}
}

// PostgreSQL stops while a process runs, and comes back: what the handler did is recorded then, and it runs once.
func TestTheDatabaseGoesAwayAndComesBack(t *testing.T) {
	tool.Heavy(t, "stops and starts a database")
	t.Parallel()
	dir := get(os.MkdirTemp("", "ordain-process-"))(t)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o711))
	pg := get(postgres.Start(t.Context(), postgres.Config{
		DataDir: filepath.Join(dir, "data"), SocketDir: filepath.Join(dir, "s"), CacheDir: filepath.Join(dir, "cache"),
		Throwaway: true, Settings: map[string]string{"synchronous_commit": "on"}, Logger: slog.New(slog.DiscardHandler),
	}))(t)
	t.Cleanup(func() { must(t, pg.Stop(context.Background())) })
	s := open(t, pg.URL())
	begun, goOn := make(chan bool), make(chan bool)
	ran := 0
	e := quick(t, s, create(step("first", func(context.Context, *process.Run) error {
		ran++
		begun <- true
		<-goOn
		return nil
	}), step("second", nil)))
	must(t, e.Start(t.Context()))
	id := begin(t, e, "thing.create", "a")
	<-begun
	ended := pg.Done()
	pid, _, _ := strings.Cut(string(get(os.ReadFile(filepath.Join(dir, "data", "postmaster.pid")))(t)), "\n")
	must(t, syscall.Kill(get(strconv.Atoi(pid))(t), syscall.SIGKILL))
	<-ended
	close(goOn)
	must(t, pg.Restart(t.Context()))
	awaitState(t, s, id, intent.ProcessDone)
	next := begin(t, e, "thing.create", "b")
	<-begun
	awaitState(t, s, next, intent.ProcessDone)
	if ran != 2 {
		t.Errorf("%d attempts", ran)
	}
}

// A process that its worker never ends, because it kills the worker, dies like one that fails; one that was to be
// cancelled is cancelled; and what the workers say later is refused.
func TestWorkersThatVanish(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, storetest.URL(t)), t.Context()
	e := quick(t, s, create(step("make", nil)))
	for _, story := range []struct {
		resource string
		cancel   bool
		attempts int
		want     intent.ProcessState
		state    string
	}{
		{"killer", false, 3, intent.ProcessDead, "error"},
		{"cancelled", true, 1, intent.ProcessCancelled, ""},
		{"unlucky", false, 2, intent.ProcessWaiting, "registering"},
	} {
		id := begin(t, e, "thing.create", story.resource)
		for range story.attempts {
			p := get(s.TakeProcess(ctx, id, "w", time.Hour, nil))(t)
			if p == nil {
				t.Fatalf("%s cannot be taken", story.resource)
			}
			if again := get(s.TakeProcess(ctx, id, "v", time.Hour, nil))(t); again != nil {
				t.Fatalf("%s is taken twice", story.resource)
			}
			if story.cancel {
				must(t, s.CancelProcess(ctx, server, id, "ida"))
			}
			exec(t, s, "UPDATE process SET lease = now() - interval '1 second' WHERE lease IS NOT NULL")
			get(s.SweepProcesses(ctx))(t)
			end := intent.ProcessEnd{State: intent.ProcessDone}
			if err := s.EndProcess(ctx, p.Claim(), end); !errors.Is(err, store.ErrProcessTaken) {
				t.Errorf("the end of %s: %v", story.resource, err)
			}
			if _, err := s.ProcessPhase(ctx, p.Claim(), "make", nil); !errors.Is(err, store.ErrProcessTaken) {
				t.Errorf("the phase of %s: %v", story.resource, err)
			}
			if kept := get(s.BeatProcesses(ctx, []intent.ProcessClaim{p.Claim()}, time.Hour))(t); len(kept) > 0 {
				t.Errorf("the lease of %s was renewed", story.resource)
			}
		}
		p := get(s.Process(ctx, server, id))(t)
		if p.State != story.want || stateOf(t, s, story.resource) != story.state {
			t.Errorf("%s: %+v, %q", story.resource, p, stateOf(t, s, story.resource))
		}
		if story.want != intent.ProcessCancelled && !strings.Contains(p.Problem, "the worker w vanished") {
			t.Errorf("%s: %q", story.resource, p.Problem)
		}
	}
}

// During an upgrade, a server that does not know a process yet leaves it to those that do.
func TestUnknownProcessesAreLeftToOthers(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := open(t, url)
	greet := process.Definition{Name: "thing.greet", Resource: "thing", Main: []process.Handler{step("greet", nil)}}
	old, young := quick(t, s, greet), quick(t, open(t, url), greet, create(step("make", nil)))
	must(t, old.Start(t.Context()))
	unknown := begin(t, young, "thing.create", "a")
	awaitState(t, s, begin(t, old, "thing.greet", "b"), intent.ProcessDone)
	if p := get(s.Process(t.Context(), server, unknown))(t); p.State != intent.ProcessWaiting || p.Attempts != 0 {
		t.Errorf("%+v", p)
	}
	must(t, young.Start(t.Context()))
	awaitState(t, s, unknown, intent.ProcessDone)
}
