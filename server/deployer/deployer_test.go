package deployer

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// A first version deploys in order; a second one that changes one resource
// deploys this one only; the record has who did what, and why.
func TestIncremental(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.start()
		s.release("x/a 1", "x/b 1 x/a", "x/c 1 x/b")
		s.wait()
		s.ran("x/a", "x/b", "x/c")
		n := s.release("x/a 1", "x/b 2 x/a", "x/c 1 x/b")
		s.wait()
		s.ran("x/b")
		if n != 2 {
			t.Fatal(n)
		}
		list := s.actions("x/b")
		if len(list) != 2 || list[0].Version != 2 || list[0].Status != intent.StatusDeployed ||
			list[0].Change != intent.Updated {
			t.Fatalf("%+v", list)
		}
		var said []string
		for _, m := range list[0].Messages {
			said = append(said, m.Message)
		}
		if len(said) != 3 || said[0] != "Deployment starts: new version 2" || said[1] != "it is done\nwell" ||
			!strings.HasPrefix(said[2], "Deployment ended: deployed, updated, after ") {
			t.Fatalf("%q", said)
		}
		s.status("x/b", intent.StatusDeployed)
		if st := s.state("x/b"); st.LastDeployed != 2 || st.DeployedHash != st.IntentHash ||
			st.Compliance != intent.Compliant {
			t.Fatalf("%+v", st)
		}
		if st := s.state("x/a"); st.LastDeployed != 1 {
			t.Fatalf("%+v", st)
		}
	})
}

// The log file has one line per message, whatever the handler prints.
func TestActionLog(t *testing.T) {
	s := inMemory(t)
	s.start()
	s.release("x/a 1")
	s.wait()
	want := regexp.MustCompile(
		`^(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO     t::R\[x,name=a\],v=1 deploy [0-9a-f-]{36}: .*\n){3}$`,
	)
	if got := s.log.String(); !want.MatchString(got) || !strings.Contains(got, `it is done\nwell`) {
		t.Fatalf("%s", got)
	}
}

// a fails: what needs it is skipped and says why, what does not need it is deployed. A person repairs the target and
// deploys again: a, then b, then c.
func TestFailureSkipsAndRecovers(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.exec.misbehave("x/a", fails)
		s.start()
		s.release("x/a 1", "y/b 1 x/a", "y/c 1 y/b", "z/d 1")
		s.wait()
		s.status("x/a", intent.StatusFailed)
		s.status("y/b", intent.StatusSkipped)
		s.status("y/c", intent.StatusSkipped)
		s.status("z/d", intent.StatusDeployed)
		if st := s.state("x/a"); st.Attempts != 1 {
			t.Fatalf("%+v", st)
		}
		skip := s.actions("y/b")
		if len(skip) != 1 || skip[0].Status != intent.StatusSkippedForDependency || skip[0].Finished == nil ||
			!strings.Contains(skip[0].Messages[0].Message, "requires t::R[x,name=a]") {
			t.Fatalf("%+v", skip)
		}
		s.exec.taken()
		s.exec.misbehave("x/a", nil)
		s.d.Deploy(intent.Request{}, intent.DeployRequest{})
		s.wait()
		s.ran("x/a", "y/b", "y/c")
		s.status("y/c", intent.StatusDeployed)
		s.d.Deploy(intent.Request{}, intent.DeployRequest{})
		s.wait()
		s.ran()
		s.d.Deploy(intent.Request{}, intent.DeployRequest{Full: true, Agents: []string{"z"}})
		s.wait()
		s.ran("z/d")
	})
}

// An executor that reports an impossible end of a deployment fails that resource and nothing else.
func TestExecutorMisbehaves(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.exec.misbehave("y/b", func(context.Context, executor.Task) executor.Result {
			return executor.Result{Status: "splendid", Change: intent.NoChange}
		})
		s.start()
		s.release("x/a 1", "x/c 1", "y/b 1")
		s.wait()
		s.status("x/a", intent.StatusDeployed)
		s.status("y/b", intent.StatusFailed)
		s.status("x/c", intent.StatusDeployed)
	})
}

// An executor that panics while it looks at a resource fails that look and nothing else.
func TestExecutorPanics(t *testing.T) {
	s := inMemory(t)
	s.start()
	s.wait()
	s.exec.misbehave("x/a", panics)
	result := s.d.call(executor.Task{Action: executor.DryRun, Resource: resource("x/a 1")})
	if result.Status != intent.StatusFailed || !strings.Contains(result.Messages[0].Message, "out of cheese") {
		t.Fatalf("%+v", result)
	}
}

// The server is killed while a runs and b and c wait. Started again, it closes
// a's open entry, runs a again, then the others; what was deployed stays.
func TestKilledMidway(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.release("x/done 1", "x/a 1 x/done", "x/b 1 x/a", "y/c 1 x/b")
		s.exec.misbehave("x/a", hangs)
		s.start()
		s.exec.awaits("x/a")
		s.status("x/a", intent.StatusDeploying)
		s.d.Stop() // what it does to a is what a kill does: no end is recorded
		s.status("x/a", intent.StatusDeploying)
		s.ran("x/done", "x/a")

		s.exec.misbehave("x/a", nil)
		s.start()
		s.wait()
		s.ran("x/a", "x/b", "y/c")
		list := s.actions("x/a")
		if len(list) != 2 || list[0].Status != intent.StatusDeployed || list[1].Status != intent.StatusCancelled ||
			list[1].Finished == nil {
			t.Fatalf("%+v", list)
		}
		s.status("y/c", intent.StatusDeployed)
	})
}

// A repair of something that is as intended is cut off by a kill: what it left behind is unknown, so it runs again.
func TestKilledWhileRepairing(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.start()
		s.release("x/a 1", "y/b 1")
		s.wait()
		s.exec.taken()
		s.exec.misbehave("x/a", hangs)
		s.d.Deploy(intent.Request{}, intent.DeployRequest{Full: true, Agents: []string{"x"}})
		s.exec.awaits("x/a")
		s.d.Stop()
		s.exec.taken()
		s.exec.misbehave("x/a", nil)
		s.start()
		s.wait()
		s.ran("x/a")
	})
}

// A version arrives while a of the older one runs: a's end is recorded for
// version 1, a runs again for version 2, and b, which left, is an orphan.
func TestVersionMidDeploy(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		gate := make(chan struct{})
		s.exec.misbehave("x/a", until(gate))
		s.start()
		s.release("x/a 1", "x/b 1 x/a")
		s.exec.awaits("x/a")
		s.release("x/a 2")
		close(gate)
		s.wait()
		s.ran("x/a", "x/a")
		list := s.actions("x/a")
		if len(list) != 2 || list[1].Version != 1 || list[0].Version != 2 || list[1].Status != intent.StatusDeployed {
			t.Fatalf("%+v", list)
		}
		s.status("x/a", intent.StatusDeployed)
		if st := s.state("x/a"); st.LastDeployed != 2 || st.DeployedHash != resource("x/a 2").AttributeHash {
			t.Fatalf("%+v", st)
		}
		s.status("x/b", intent.StatusOrphaned)
	})
}

// A paused agent runs nothing; another does. A pause outlives the server.
func TestPause(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.start()
		s.release("x/a 1", "y/b 1")
		s.wait()
		s.exec.taken()
		if err := s.rec.SetAgentPaused(t.Context(), s.env.ID, "x", true,
			intent.Actor{By: "test", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		s.d.SetPaused("x", true)
		s.release("x/a 2", "y/b 2")
		s.wait()
		s.ran("y/b")
		snap := s.d.Snapshot()
		if snap.Waiting != 1 || !snap.Wishes[0].Paused || snap.Wishes[0].ID != rid("x/a") {
			t.Fatalf("%+v", snap)
		}
		s.d.Stop()
		s.start()
		s.wait()
		s.ran()
		s.d.SetPaused("", false)
		s.wait()
		s.ran("x/a")
	})
}

// A halted environment deploys nothing until it is resumed.
func TestHalt(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.env.Halted = true
		s.start()
		s.release("x/a 1")
		s.wait()
		s.ran()
		s.env.Halted = false
		s.d.Changed(s.env)
		s.wait()
		s.ran("x/a")
	})
}

// The database goes away while a runs. Nothing that could not be recorded
// begins; a's end is not lost; when the database is back, all goes on.
func TestRecordAway(t *testing.T) {
	s := inMemory(t)
	m := s.rec.(*memory)
	gate := make(chan struct{})
	s.exec.misbehave("x/a", until(gate))
	s.start()
	s.release("x/a 1", "x/b 1 x/a", "y/c 1")
	s.exec.awaits("x/a")
	s.exec.awaits("y/c")
	m.setAway(true)
	close(gate)
	<-m.back // a's end was refused
	<-m.back // and again
	if got := s.exec.taken(); len(got) != 2 || slices.Contains(got, "x/b") {
		t.Fatal(got)
	}
	m.setAway(false)
	s.wait()
	s.ran("x/b")
	s.status("x/a", intent.StatusDeployed)
	s.status("x/b", intent.StatusDeployed)
	if len(s.actions("x/a")) != 1 {
		t.Fatal("a was recorded twice")
	}
}

// The database is away when the server starts, and for a while after a
// release: the deployer waits for it.
func TestRecordAwayAtStart(t *testing.T) {
	s := inMemory(t)
	m := s.rec.(*memory)
	m.setAway(true)
	s.start()
	<-m.back
	s.release("x/a 1")
	s.d.Deploy(intent.Request{}, intent.DeployRequest{Full: true})
	<-m.back
	s.ran()
	m.setAway(false)
	s.wait()
	s.ran("x/a")
}

// The record refuses one resource for good: this one does not run, shows that in its state as far as the record
// allows it, and does not hold up the others.
func TestRecordRefuses(t *testing.T) {
	s := inMemory(t)
	s.rec.(*memory).refuse = "bad"
	s.start()
	s.release("x/bad 1", "y/b 1", "z/c 1")
	s.wait()
	got := s.exec.taken()
	slices.Sort(got)
	if !slices.Equal(got, []string{"y/b", "z/c"}) {
		t.Fatal(got)
	}
	s.status("x/bad", intent.StatusFailed)
}

// Requirements in a circle are refused at the release; the version before goes on, and a later version corrects them.
func TestCircle(t *testing.T) {
	s := inMemory(t)
	s.start()
	s.release("x/a 1")
	s.wait()
	s.release("x/a 2 x/b", "x/b 2 x/a")
	s.wait()
	s.ran("x/a")
	if v := s.d.Snapshot().Version; v != 1 {
		t.Fatal(v)
	}
	s.d.Stop()
	s.start() // the active version is the circle
	s.wait()
	s.ran()
	s.release("x/a 3", "x/b 3 x/a")
	s.wait()
	s.ran("x/a", "x/b")
}

// Half a minute after a failure the resource is tried again, and only it; a day later the repair timer verifies
// everything. The test does not take that long.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t)
		s.exec.misbehave("x/a", fails)
		s.start()
		s.release("x/a 1", "y/b 1")
		s.wait()
		s.exec.taken()
		s.exec.misbehave("x/a", nil)
		time.Sleep(22 * time.Second) // fake time
		synctest.Wait()
		s.ran()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		s.ran("x/a")
		time.Sleep(23*time.Hour + 50*time.Minute)
		synctest.Wait()
		s.ran()
		time.Sleep(time.Hour)
		synctest.Wait()
		got := s.exec.taken()
		slices.Sort(got)
		if !slices.Equal(got, []string{"x/a", "y/b"}) {
			t.Fatal(got)
		}
		// A timer that never fires leaves what fails alone.
		s.env.Settings["autostart_agent_deploy_interval"] = "0"
		s.d.Changed(s.env)
		s.exec.misbehave("x/a", fails)
		s.d.Deploy(intent.Request{}, intent.DeployRequest{Full: true, Resources: []intent.ResourceID{rid("x/a")}})
		s.wait()
		s.ran("x/a")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		s.ran()
		s.exec.misbehave("x/a", nil)
		// From now on every minute.
		s.env.Settings["autostart_agent_repair_interval"] = "60"
		s.d.Changed(s.env)
		time.Sleep(150 * time.Second)
		synctest.Wait()
		if got := s.exec.taken(); len(got) != 4 {
			t.Fatal(got)
		}
		s.d.Stop()
	})
}

// An executor that ignores being cancelled does not keep the server from
// stopping: after the grace time it is left behind.
func TestStopIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t)
		gate := make(chan struct{})
		s.exec.misbehave("x/a", func(ctx context.Context, task executor.Task) executor.Result {
			<-gate
			return deploys(ctx, task)
		})
		s.start()
		s.release("x/a 1")
		s.exec.awaits("x/a")
		began := time.Now()
		s.d.Stop()
		if took := time.Since(began); took != 10*time.Second {
			t.Fatal(took)
		}
		close(gate)
		s.d.Stop() // again does no harm
		s.d.Deploy(intent.Request{}, intent.DeployRequest{Full: true})
		if snap := s.d.Snapshot(); snap.Loaded {
			t.Fatalf("%+v", snap)
		}
	})
}

// What was deployed when Stop came is recorded; only what was cut off runs again.
func TestStopRecordsWhatEnded(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		s.exec.misbehave("x/a", func(ctx context.Context, task executor.Task) executor.Result {
			<-ctx.Done()
			return deploys(ctx, task) // it was all but done
		})
		s.start()
		s.release("x/a 1")
		s.exec.awaits("x/a")
		s.d.Stop()
		s.status("x/a", intent.StatusDeployed)
	})
}

// Facts that a handler learnt are recorded with the end of its run, and the handler gets the status of its
// dependencies and a blueprint of all that its agent needs.
func TestTask(t *testing.T) {
	s := inMemory(t)
	s.start()
	s.wait()
	s.release("x/a 1", "x/b 1 x/a")
	s.wait()
	task := s.exec.tasks[1]
	if task.Requires[rid("x/a")] != intent.StatusDeployed || task.Reason != "new version 1" ||
		task.Action != executor.Deploy {
		t.Fatalf("%+v", task)
	}
	b := task.Blueprint
	if b.Environment != s.env.ID || !slices.Equal(b.Requirements, []string{"pkg>=1"}) || len(b.Sources) != 1 ||
		b.PythonVersion != "3.13" ||
		b.Libc != "glibc-2.36" {
		t.Fatalf("%+v", b)
	}
	if b.Hash() != s.exec.tasks[0].Blueprint.Hash() {
		t.Fatal("one agent, two blueprints")
	}
}

// Blueprints merge what the types of an agent need, sorted and once each;
// agents with the same types share one.
func TestBlueprints(t *testing.T) {
	d := &Deployer{cfg: Config{Constraints: []string{"z<2", "a<2"}}}
	id := func(typ, agent string) intent.Resource {
		return intent.Resource{ID: intent.ResourceID{Type: typ, Agent: agent, Attribute: "n", Value: "v"}}
	}
	file := func(path string) intent.SourceFile { return intent.SourceFile{Path: path, Hash: path} }
	v := d.newVersionCode(
		[]intent.Resource{id("m::A", "x"), id("m::B", "x"), id("m::A", "y"), id("m::B", "z"), id("m::A", "z")},
		[]intent.ResourceCode{
			{
				Type:         "m::A",
				Requirements: []string{"q", "p"},
				Sources:      []intent.SourceFile{file("m/b.py"), file("m/a.py")},
			},
			{Type: "m::B", Requirements: []string{"p", "r"}, Sources: []intent.SourceFile{file("m/a.py")}},
		},
		intent.PipConfig{IndexURL: "https://index"},
	)
	x, y, z := v.of(id("m::A", "x").ID), v.of(id("m::A", "y").ID), v.of(id("m::B", "z").ID)
	if !slices.Equal(x.Requirements, []string{"p", "q", "r"}) || !slices.Equal(x.Constraints, []string{"a<2", "z<2"}) ||
		len(x.Sources) != 2 || x.Sources[0].Path != "m/a.py" || x.Pip.IndexURL != "https://index" {
		t.Fatalf("%+v", x)
	}
	if x.Hash() != z.Hash() || x.Hash() == y.Hash() {
		t.Fatal("blueprints are not shared by what agents need")
	}
}

// A configuration that cannot work fails at construction.
func TestConfig(t *testing.T) {
	good := Config{
		Environment: intent.Environment{ID: testEnv},
		Store:       newMemory(),
		Executor:    &actor{},
		Logger:      slog.New(slog.DiscardHandler),
	}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"store":    func(c *Config) { c.Store = nil },
		"executor": func(c *Config) { c.Executor = nil },
		"logger":   func(c *Config) { c.Logger = nil },
		"id":       func(c *Config) { c.Environment.ID = uuid.Nil },
		"grace":    func(c *Config) { c.Grace = -1 },
	} {
		bad := good
		spoil(&bad)
		if _, err := New(bad); err == nil || fault.KindOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	d, _ := New(good)
	d.Stop() // before Start
	if err := d.Start(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("started after its end: %v", err)
	}
}
