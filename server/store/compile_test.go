package store_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

func enqueue(
	t testing.TB,
	s *store.Store,
	env intent.EnvironmentID,
	second int,
	change func(*intent.Compile),
) intent.CompileID {
	t.Helper()
	c := intent.Compile{
		ID:          uuid.New(),
		Environment: env,
		Requested:   after(second),
		Trigger:     intent.Trigger{Type: "api", Message: "m"},
		Export:      true,
	}
	if change != nil {
		change(&c)
	}
	must(t, s.EnqueueCompile(t.Context(), c))
	must(t, s.EnqueueCompile(t.Context(), c)) // as when the answer was lost
	return c.ID
}

// Requests that ask for nothing more than the run are answered by it; those that ask for more, or came later, wait
// for a run of their own.
func TestEqualRequestsAreAnsweredByOneRun(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	update := func(c *intent.Compile) { c.Update = true }
	first := enqueue(t, s, env, 0, update)
	weaker := enqueue(t, s, env, 1, nil)
	equal := enqueue(t, s, env, 2, update)
	reinstall := enqueue(t, s, env, 3, func(c *intent.Compile) { c.Update, c.Reinstall = true, true })
	variables := enqueue(t, s, env, 4, func(c *intent.Compile) { c.Variables = map[string]string{"A": "1"} })
	later := enqueue(t, s, env, 100, update)

	run := get(s.StartCompile(ctx, env, after(10)))(t)
	if run == nil || run.ID != first || !run.Started.Equal(after(10)) {
		t.Fatalf("the oldest request runs first: %+v", run)
	}
	open := get(s.OpenCompiles(ctx, env))(t)
	for i, id := range []uuid.UUID{first, weaker, equal, reinstall, variables, later} {
		if open[i].ID != id {
			t.Fatalf("open requests are not in order: %d", i)
		}
		answered := id == weaker || id == equal
		if (open[i].Substitute != nil) != answered {
			t.Errorf("request %d: substitute %v", i, open[i].Substitute)
		}
	}
	stage := intent.Stage{ID: uuid.New(), Compile: first, Name: intent.StageInit, Command: "init", Started: after(11)}
	must(t, s.StartStage(ctx, stage))
	must(t, s.AppendStage(ctx, stage.ID, "hello ", ""))
	must(t, s.AppendStage(ctx, stage.ID, "world\n", "oops\x00\xff"))
	must(t, s.FinishStage(ctx, stage.ID, "", 0, after(12)))
	rev := intent.Revision{Commit: "c0ffee", Branch: "main", Author: "A", Subject: "s", Time: epoch}
	must(t, s.SetCompileRevision(ctx, first, rev))
	number := 7
	for range 2 {
		must(
			t,
			s.FinishCompile(
				ctx,
				first,
				intent.CompileEnd{
					Success:     true,
					Version:     &number,
					Diagnostics: []byte(`[{"code":"x"}]`),
					At:          after(20),
				},
			),
		)
	}
	got, stages, err := s.Compile(ctx, weaker)
	must(t, err)
	if got.Success == nil || !*got.Success || *got.Version != 7 || !got.Completed.Equal(after(20)) ||
		!got.Started.Equal(after(10)) ||
		*got.Substitute != first {
		t.Errorf("the answered request: %+v", got)
	}
	if len(stages) != 1 || stages[0].Output != "hello world\n" || !strings.HasPrefix(stages[0].ErrOutput, "oops") ||
		*stages[0].ReturnCode != 0 {
		t.Errorf("its stages are those of the run: %+v", stages)
	}
	if last := get(s.LastCompile(ctx, env))(t); last == nil || last.ID != first || *last.Revision != rev ||
		string(last.Diagnostics) != `[{"code":"x"}]` {
		t.Errorf("the last compile: %+v", last)
	}
	for _, id := range []uuid.UUID{reinstall, variables, later} {
		run := get(s.StartCompile(ctx, env, after(30)))(t)
		if run == nil || run.ID != id {
			t.Fatalf("want %v next, got %+v", id, run)
		}
		must(t, s.FinishCompile(ctx, id, intent.CompileEnd{At: after(40)}))
	}
	if run := get(s.StartCompile(ctx, env, after(50)))(t); run != nil {
		t.Errorf("nothing waits, but %+v runs", run)
	}
	if n := get(s.DeleteCompilesBefore(ctx, after(30)))(t); n != 3 {
		t.Errorf("%d reports were dropped", n)
	}
	want(t, s.FinishCompile(ctx, first, intent.CompileEnd{Success: true, At: after(60)}), fault.NotFound)
	want(t, s.AppendStage(ctx, stage.ID, "x", ""), fault.NotFound)
}

// The server was killed while a compile ran: the same compile starts over before anything else, and the requests that
// it answers go with it.
func TestInterruptedCompileStartsOverFirst(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	open := func() *store.Store {
		s, err := store.Open(t.Context(), store.Config{URL: url, Logger: storetest.Logger(t)})
		must(t, err)
		return s
	}
	s, ctx := open(), t.Context()
	env := newEnvironment(t, s)
	held, err := s.Own(ctx, env)
	must(t, err)
	if held == nil {
		t.Fatal("nobody else owns it")
	}
	first := enqueue(t, s, env, 0, nil)
	answered := enqueue(t, s, env, 1, nil)
	get(s.StartCompile(ctx, env, after(10)))(t)
	must(t, s.StartStage(ctx, intent.Stage{ID: uuid.New(), Compile: first, Name: intent.StageInit, Started: after(10)}))
	other := enqueue(t, s, env, 11, func(c *intent.Compile) { c.Reinstall = true })
	s.Close()

	s = open()
	defer s.Close()
	run := get(s.StartCompile(ctx, env, after(20)))(t)
	if run == nil || run.ID != first || !run.Started.Equal(after(20)) {
		t.Fatalf("the interrupted one starts over: %+v", run)
	}
	must(t, s.StartStage(ctx, intent.Stage{ID: uuid.New(), Compile: first, Name: intent.StageInit, Started: after(20)}))
	must(t, s.FinishCompile(ctx, first, intent.CompileEnd{Success: true, At: after(21)}))
	got, stages, err := s.Compile(ctx, answered)
	must(t, err)
	if !got.Started.Equal(after(20)) || got.Completed == nil || len(stages) != 2 || stages[0].ReturnCode != nil {
		t.Errorf("what it answers: %+v %+v", got, stages)
	}
	if run := get(s.StartCompile(ctx, env, after(30)))(t); run == nil || run.ID != other {
		t.Errorf("then the next: %+v", run)
	}
}

// Two servers want to compile the same environment: only its owner does.
func TestTwoServersStartOneRun(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	var servers []*store.Store
	for range 2 {
		s, err := store.Open(t.Context(), store.Config{URL: url, Logger: storetest.Logger(t)})
		must(t, err)
		t.Cleanup(s.Close)
		servers = append(servers, s)
	}
	env := newEnvironment(t, servers[0])
	enqueue(t, servers[0], env, 0, nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	owners, runs := 0, 0
	begin := make(chan struct{})
	owned := make(chan struct{}, 2)
	for _, s := range servers {
		wg.Go(func() {
			<-begin
			held, err := s.Own(t.Context(), env)
			if err != nil {
				t.Error(err)
			}
			owned <- struct{}{}
			for len(owned) < 2 { // until both tried
				if err := s.Ping(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
			run, err := s.StartCompile(t.Context(), env, after(1))
			mu.Lock()
			defer mu.Unlock()
			if held != nil {
				owners++
			} else if !fault.Is(err, fault.Conflict) {
				t.Errorf("who does not own it got %v, %v", run, err)
			}
			if run != nil {
				runs++
			}
		})
	}
	close(begin)
	wg.Wait()
	if owners != 1 || runs != 1 {
		t.Errorf("%d owners, %d runs", owners, runs)
	}
}

// A stage prints far too much: the beginning and the end are kept, and a line says how much is missing.
func TestLongOutputKeepsItsBeginningAndEnd(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	id := enqueue(t, s, env, 0, nil)
	get(s.StartCompile(ctx, env, after(1)))(t)
	for name, pieces := range map[string][]string{
		"at once":   {"BEGIN" + strings.Repeat("0123456789abcdef", 300_000) + "END"},
		"in pieces": append(append([]string{"BEGIN"}, repeat(strings.Repeat("x", 70_000), 40)...), "END"),
	} {
		stage := intent.Stage{ID: uuid.New(), Compile: id, Name: name, Started: after(2)}
		must(t, s.StartStage(ctx, stage))
		total := 0
		for _, p := range pieces {
			must(t, s.AppendStage(ctx, stage.ID, "", p))
			total += len(p)
		}
		_, stages, err := s.Compile(ctx, id)
		must(t, err)
		for _, got := range stages {
			if got.Name != name {
				continue
			}
			text := got.ErrOutput
			if !strings.HasPrefix(text, "BEGIN") || !strings.HasSuffix(text, "END") ||
				!strings.Contains(text, "bytes left out") {
				t.Errorf("%s: %d bytes: %.40q … %q", name, len(text), text, text[max(0, len(text)-40):])
			}
			if len(text) > 1<<20+100 || len(text) < 900<<10 {
				t.Errorf("%s: %d of %d bytes are kept", name, len(text), total)
			}
		}
	}
}

func repeat(s string, n int) (out []string) {
	for range n {
		out = append(out, s)
	}
	return out
}
