package deployer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// stage is an environment with its record, an executor that misbehaves on
// request, and the deployer under test.
type stage struct {
	t    *testing.T
	env  intent.Environment
	rec  recorder
	exec *actor
	d    *Deployer
	log  *syncBuffer // resource action log
	evts chan Event
	told chan intent.Notice
	// ahead, if set, gets the length of the list of what is ahead whenever that is recorded.
	ahead chan int
}

// listed is a store that reports how many tasks are recorded ahead.
type listed struct {
	Store
	ahead chan<- int
}

func (l listed) SetAhead(ctx context.Context, env intent.EnvironmentID, tasks []intent.Ahead) error {
	if err := l.Store.SetAhead(ctx, env, tasks); err != nil {
		return err
	}
	l.ahead <- len(tasks)
	return nil
}

// onEach tells a story on a record in memory and on PostgreSQL.
func onEach(t *testing.T, story func(t *testing.T, s *stage)) {
	t.Run("memory", func(t *testing.T) { t.Parallel(); story(t, inMemory(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); story(t, inPostgres(t)) })
}

func inMemory(t *testing.T) *stage {
	s := &stage{t: t, rec: newMemory(), env: intent.Environment{ID: testEnv, Name: "test", Settings: map[string]any{}}}
	return s.ready()
}

func inPostgres(t *testing.T) *stage {
	t.Helper()
	db := storetest.Open(t)
	return (&stage{t: t, rec: db, env: newEnvironment(t, db)}).ready()
}

type tenancy interface {
	CreateProject(ctx context.Context, p intent.Project) error
	CreateEnvironment(ctx context.Context, e intent.Environment, secrets map[string][]byte) error
}

func newEnvironment(t testing.TB, db tenancy) intent.Environment {
	t.Helper()
	p := intent.Project{ID: uuid.New(), Name: "p"}
	e := intent.Environment{
		ID:        uuid.New(),
		ProjectID: p.ID,
		Name:      "test",
		Settings:  map[string]any{},
		Created:   time.Now(),
	}
	if err := db.CreateProject(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := db.CreateEnvironment(t.Context(), e, nil); err != nil {
		t.Fatal(err)
	}
	return e
}

func (s *stage) ready() *stage {
	s.exec = &actor{
		t:     s.t,
		rec:   s.rec,
		env:   s.env.ID,
		plays: map[string]play{},
		busy:  map[string]string{},
		lines: map[string][]*sent{},
		seen:  map[string]bool{},
		began: make(chan string, 10_000),
	}
	s.log = &syncBuffer{}
	s.evts = make(chan Event, 100_000)
	s.told = make(chan intent.Notice, 1000)
	return s
}

// start begins a deployer; it is stopped with the test.
func (s *stage) start() {
	s.t.Helper()
	var record Store = s.rec
	if s.ahead != nil {
		record = listed{s.rec, s.ahead}
	}
	d, err := New(Config{
		Environment: s.env, Store: record, Executor: s.exec, Logger: slog.New(slog.DiscardHandler), ActionLog: s.log,
		OnChange: func(e Event) { s.evts <- e }, OnNotice: func(n intent.Notice) { s.told <- n },
		PythonVersion: "3.13", Libc: "glibc-2.36",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := d.Start(context.WithoutCancel(s.t.Context())); err != nil {
		s.t.Fatal(err)
	}
	s.d = d
	s.t.Cleanup(d.Stop)
}

// release stores a version of "agent/name hash needs flags" lines and makes it the intent.
func (s *stage) release(lines ...string) int {
	s.t.Helper()
	v := intent.NewVersion{Environment: s.env.ID}
	types := map[string]bool{}
	for _, line := range lines {
		r := resource(line)
		v.Resources = append(v.Resources, r)
		types[r.ID.Type] = true
	}
	for _, t := range []string{"t::R"} {
		v.Code = append(
			v.Code,
			intent.ResourceCode{Type: t, Requirements: []string{"pkg>=1"}, Sources: []intent.SourceFile{{
				Module: "inmanta_plugins.t", Path: "inmanta_plugins/t/__init__.py", Hash: strings.Repeat("0", 40),
			}}},
		)
	}
	if files, ok := s.rec.(interface {
		PutFile(context.Context, []byte) (string, error)
	}); ok {
		hash, err := files.PutFile(s.t.Context(), []byte("# t\n"))
		if err != nil {
			s.t.Fatal(err)
		}
		v.Code[0].Sources[0].Hash = hash
	}
	number, err := s.rec.StoreVersion(s.t.Context(), v, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.rec.ReleaseVersion(s.t.Context(), s.env.ID, number, time.Now()); err != nil {
		s.t.Fatal(err)
	}
	if s.d != nil {
		s.d.VersionReleased(number)
	}
	return number
}

func resource(line string) intent.Resource {
	parts := strings.Split(line, " ")
	sum := sha256.Sum256([]byte(line))
	r := intent.Resource{
		ID:            rid(parts[0]),
		AttributeHash: hex.EncodeToString(sum[:]),
		Attributes:    fmt.Appendf(nil, `{"hash": %q}`, parts[1]),
	}
	if len(parts) > 2 && parts[2] != "-" {
		for need := range strings.SplitSeq(parts[2], ",") {
			r.Requires = append(r.Requires, rid(need))
		}
	}
	if len(parts) > 3 {
		r.SendEvent = strings.Contains(parts[3], "s")
		r.ReceiveEvents = strings.Contains(parts[3], "r")
		if strings.Contains(parts[3], "u") {
			r.Undefined = []string{"value"}
		}
	}
	return r
}

func rid(name string) intent.ResourceID {
	agent, value, _ := strings.Cut(name, "/")
	return intent.ResourceID{Type: "t::R", Agent: agent, Attribute: "name", Value: value}
}

func short(id intent.ResourceID) string { return id.Agent + "/" + id.Value }

// wait lets everything end.
func (s *stage) wait() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 60*time.Second)
	defer cancel()
	if err := s.d.Wait(ctx); err != nil {
		s.t.Fatalf("%v; %+v", err, s.d.Snapshot())
	}
}

// ran compares what ran since the last call, in any order when sorted is set.
func (s *stage) ran(want ...string) {
	s.t.Helper()
	got := s.exec.taken()
	if !slices.Equal(got, want) {
		s.t.Fatalf("ran %v, want %v", got, want)
	}
}

func (s *stage) state(name string) intent.ResourceState {
	s.t.Helper()
	states, err := s.rec.States(s.t.Context(), s.env.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, st := range states {
		if st.ID == rid(name) {
			return st
		}
	}
	s.t.Fatalf("%s has no state", name)
	return intent.ResourceState{}
}

func (s *stage) status(name string, want intent.Status) {
	s.t.Helper()
	if st := s.state(name); st.Status() != want {
		s.t.Fatalf("%s is %s in the record, want %s: %+v", name, st.Status(), want, st)
	}
}

func (s *stage) actions(name string) []intent.Action {
	s.t.Helper()
	list, err := s.rec.Actions(s.t.Context(), s.env.ID, rid(name), intent.ActionDeploy, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// play is what an actor does with a resource.
type play func(ctx context.Context, t executor.Task) executor.Result

// actor is an executor. Resources without a play are deployed successfully. It holds the deployer to its contract:
// what is running is recorded as running, and nothing else is running on that agent.
type actor struct {
	t      *testing.T
	rec    recorder
	env    intent.EnvironmentID
	active sync.RWMutex // read-locked by each task that runs
	mu     sync.Mutex
	plays  map[string]play
	busy   map[string]string
	log    []string
	tasks  []executor.Task
	began  chan string
	seen   map[string]bool    // began, as far as the test took note
	lines  map[string][]*sent // what was sent to an agent and has not ended
	behind int                // how many were sent behind another one
	back   []string           // what was given back
}

// sent is a task that an actor was sent.
type sent struct {
	task  executor.Task
	done  func(executor.Result)
	begun bool
}

func (a *actor) Run(ctx context.Context, t executor.Task) executor.Result {
	a.active.RLock()
	defer a.active.RUnlock()
	name := short(t.Resource.ID)
	if ctx.Err() != nil {
		return executor.Result{Status: intent.StatusFailed}
	}
	if t.Action == executor.Deploy {
		a.mu.Lock()
		if other := a.busy[t.Resource.ID.Agent]; other != "" {
			a.t.Errorf("%s runs beside %s", name, other)
		}
		a.busy[t.Resource.ID.Agent] = name
		a.log = append(a.log, name)
		a.mu.Unlock()
		defer func() {
			a.mu.Lock()
			a.busy[t.Resource.ID.Agent] = ""
			a.mu.Unlock()
		}()
		states, err := a.rec.States(ctx, a.env)
		marked := func(st intent.ResourceState) bool { return st.ID == t.Resource.ID && st.IsDeploying }
		if err == nil && ctx.Err() == nil && !slices.ContainsFunc(states, marked) {
			a.t.Errorf("%s runs before the record says so", name)
		}
	}
	a.mu.Lock()
	act := a.plays[name]
	a.tasks = append(a.tasks, t)
	a.mu.Unlock()
	a.began <- name
	if act == nil {
		act = deploys
	}
	return act(ctx, t)
}

// Begin does what is behind another task after it, as an executor does.
func (a *actor) Begin(ctx context.Context, tasks []executor.Task, done func(executor.Result)) {
	for _, t := range tasks {
		agent := t.Resource.ID.Agent
		one := &sent{task: t, done: done, begun: !t.Behind}
		a.mu.Lock()
		alone := len(a.lines[agent]) == 0
		if !t.Behind || !alone {
			a.lines[agent] = append(a.lines[agent], one)
		}
		if t.Behind {
			a.behind++
		}
		a.mu.Unlock()
		switch {
		case !t.Behind:
			go a.do(ctx, one)
		case alone:
			done(executor.Result{Task: t.ID, Withdrawn: true})
		}
	}
}

func (a *actor) do(ctx context.Context, one *sent) {
	agent := one.task.Resource.ID.Agent
	began := time.Now()
	r := a.Run(ctx, one.task)
	r.Task, r.Started = one.task.ID, began
	a.mu.Lock()
	line := slices.DeleteFunc(a.lines[agent], func(o *sent) bool { return o == one })
	a.lines[agent] = line
	if len(line) > 0 && !line[0].begun {
		line[0].begun = true
		go a.do(ctx, line[0])
	}
	a.mu.Unlock()
	one.done(r)
}

// Recall returns what has not begun.
func (a *actor) Recall(tasks []intent.ActionID) {
	a.mu.Lock()
	var back []*sent
	for agent, line := range a.lines {
		a.lines[agent] = slices.DeleteFunc(line, func(o *sent) bool {
			is := !o.begun && slices.Contains(tasks, o.task.ID)
			if is {
				back = append(back, o)
				a.back = append(a.back, short(o.task.Resource.ID))
			}
			return is
		})
	}
	a.mu.Unlock()
	for _, o := range back {
		o.done(executor.Result{Task: o.task.ID, Withdrawn: true})
	}
}

func (a *actor) misbehave(name string, p play) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.plays[name] = p
}

func (a *actor) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.log
	a.log = nil
	clear(a.seen)
	for len(a.began) > 0 {
		<-a.began
	}
	return out
}

// awaits returns when a resource has begun, since what ran was last taken.
func (a *actor) awaits(name string) {
	a.t.Helper()
	for !a.seen[name] {
		select {
		case got := <-a.began:
			a.seen[got] = true
		case <-time.After(60 * time.Second):
			a.t.Fatalf("%s never began", name)
		}
	}
}

func deploys(_ context.Context, t executor.Task) executor.Result {
	return executor.Result{Task: t.ID, Resource: t.Resource.ID, Status: intent.StatusDeployed, Change: intent.Updated,
		Changes:  map[string]intent.AttributeChange{"hash": {Current: "old", Desired: "new"}},
		Messages: []intent.LogLine{{Level: "INFO", Message: "it is done\nwell", Time: time.Now().UTC()}}}
}

func fails(context.Context, executor.Task) executor.Result {
	return executor.Result{
		Status:   intent.StatusFailed,
		Messages: []intent.LogLine{{Level: "ERROR", Message: "no such host", Time: time.Now().UTC()}},
	}
}

func panics(context.Context, executor.Task) executor.Result { panic("out of cheese") }

// hangs until it is cancelled.
func hangs(ctx context.Context, _ executor.Task) executor.Result {
	<-ctx.Done()
	return executor.Result{Status: intent.StatusFailed}
}

// until deploys when gate is closed.
func until(gate <-chan struct{}) play {
	return func(ctx context.Context, t executor.Task) executor.Result {
		select {
		case <-gate:
			return deploys(ctx, t)
		case <-ctx.Done():
			return executor.Result{Status: intent.StatusFailed}
		}
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
