package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/intent"
)

// clerk is the observer's account of jobs: each that was enqueued is started or refused once, unless it is cancelled.
type clerk struct {
	order   []Job // waiting, oldest first
	running []Job
}

func newClerk() *clerk { return &clerk{} }

func (c *clerk) refused(t *rapid.T, j Job) {
	at := slices.Index(c.order, j)
	if at < 0 {
		t.Fatalf("%v is refused and does not wait", j)
	}
	c.order = slices.Delete(c.order, at, at+1)
}

// restart returns what is still to be done: all jobs without an end.
func (c *clerk) restart() []Job {
	all := append(slices.Clone(c.running), c.order...)
	c.running, c.order = nil, slices.Clone(all)
	return all
}

// jobStarts checks one start on its own; checkJobs looks when all of an event is known.
func (o *observer) jobStarts(j Job) {
	at := slices.Index(o.jobs.order, j)
	if at < 0 {
		o.t.Fatalf("%v starts and does not wait", j)
	}
	if o.deploys(j.Resource) {
		o.t.Fatalf("%v starts while its resource is deployed", j)
	}
	for _, earlier := range o.jobs.order[:at] {
		if earlier.Resource.Agent == j.Resource.Agent && earlier.kind() == j.kind() && !o.deploys(earlier.Resource) {
			o.t.Fatalf("%v starts before %v", j, earlier)
		}
	}
	o.jobs.order = slices.Delete(o.jobs.order, at, at+1)
	o.checkLimits(j.Resource)
	o.started[j.Resource.Agent] = o.now
	for _, r := range o.jobs.running {
		if r.Resource.Agent == j.Resource.Agent {
			o.t.Fatalf("%v starts while %v runs on the same agent", j, r)
		}
	}
	if o.paused[j.Resource.Agent] || o.breakers[j.Resource.Agent].Open() || o.s.halted {
		o.t.Fatalf("%v starts on an agent that is not to be used", j)
	}
	o.jobs.running = append(o.jobs.running, j)
	if n := o.s.Jobs(j.Priority()); n > 2 {
		o.t.Fatalf("%d jobs of one kind run", n)
	}
	// An equally urgent wish that nothing holds goes first on its agent.
	for _, w := range o.s.Wishes(0, o.now) {
		if w.ID.Agent == j.Resource.Agent && w.Priority < j.Priority() && w.WaitsFor.IsZero() && !w.Gate.Held() {
			o.t.Fatalf("%v starts before %s (%s)", j, w.ID, w.Priority)
		}
	}
}

func (o *observer) deploys(id intent.ResourceID) bool {
	return slices.ContainsFunc(o.running, func(r Start) bool { return r.Resource.ID == id })
}

func (o *observer) looksAt(id intent.ResourceID) bool {
	return slices.ContainsFunc(o.jobs.running, func(j Job) bool { return j.Resource == id })
}

// checkJobs: a job that waits, waits for something: its agent, a more urgent wish there, or room among its kind.
func (o *observer) checkJobs() {
	if o.s.halted {
		return
	}
	busy := map[string]int{}
	count := map[Priority]int{}
	for _, r := range o.running {
		busy[r.Resource.ID.Agent]++
	}
	for _, j := range o.jobs.running {
		busy[j.Resource.Agent] += 64 // one job at a time
		count[j.Priority()]++
	}
	wishes := o.s.Wishes(0, o.now)
	full := o.limits.Concurrency > 0 ||
		o.rules.Concurrency > 0 // then a wish that is held is put aside when there is room
	for _, j := range o.jobs.order {
		limit := o.rules.Agents.Of(j.Resource.Agent)
		if busy[j.Resource.Agent] >= limit.Concurrency || o.now.Before(o.started[j.Resource.Agent].Add(limit.MinGap)) ||
			count[j.Priority()] >= 2 ||
			o.deploys(j.Resource) {
			continue
		}
		ahead := slices.ContainsFunc(wishes, func(w Wish) bool {
			return w.ID.Agent == j.Resource.Agent && w.Priority < j.Priority() && (full || !w.Gate.Held())
		}) ||
			j.kind() == factJob &&
				slices.ContainsFunc(o.jobs.order,
					func(k Job) bool { return k.kind() == dryJob && k.Resource.Agent == j.Resource.Agent })
		if !ahead {
			o.t.Fatalf("%v could start and does not", j)
		}
	}
}

func (o *observer) playJobs(s step) {
	run := intent.ActionID{byte(1 + s.pick%2)}
	switch s.kind {
	case 13:
		var list []Job
		for i := range 1 + s.status {
			j := Job{Run: run, Resource: rid(fmt.Sprintf("%c/%02d", 'a'+(s.pick+i)%5, i))} // one agent is no version's
			if s.change {
				j.Run = intent.ActionID{}
			}
			list = append(list, j)
			if !slices.Contains(o.jobs.order, j) && !slices.Contains(o.jobs.running, j) {
				o.jobs.order = append(o.jobs.order, j)
			}
		}
		o.take(o.s.Enqueue(list, o.now))
	case 14:
		if len(o.jobs.running) > 0 {
			o.endJob(s.pick%len(o.jobs.running), s.status == 0)
		}
	case 15:
		o.jobs.order = slices.DeleteFunc(o.jobs.order, func(j Job) bool { return j.Run == run })
		o.take(o.s.CancelJobs(run, o.now))
	}
}

func (o *observer) endJob(i int, unreachable bool) {
	j := o.jobs.running[i]
	o.jobs.running = slices.Delete(o.jobs.running, i, i+1)
	o.take(o.s.JobDone(j, unreachable, o.now))
}

// drainJobs ends the jobs that are running, and those that start then, until deployments have to end first.
func (o *observer) drainJobs() {
	for rounds := 0; len(o.jobs.running) > 0 || o.rests(); rounds++ {
		if rounds > 10_000 {
			o.t.Fatal("jobs never end")
		}
		if len(o.jobs.running) == 0 {
			if len(o.running) > 0 {
				return
			}
			o.now = o.now.Add(time.Second)
			o.take(o.s.Tick(o.now))
			continue
		}
		o.endJob(0, false)
	}
	if len(o.running) == 0 && o.s.Waiting() == 0 && len(o.jobs.order) > 0 {
		o.t.Fatalf("nothing runs and %d jobs wait", len(o.jobs.order))
	}
}

func (w *world) jobs(run byte, names ...string) []Command {
	var list []Job
	for _, name := range names {
		list = append(list, Job{Run: intent.ActionID{run}, Resource: rid(name)})
	}
	return w.s.Enqueue(list, w.now)
}

// jobsOf lists what commands say about jobs.
func jobsOf(out []Command) (list []string) {
	for _, c := range out {
		switch c := c.(type) {
		case StartJob:
			list = append(list, "job "+short(c.Job.Resource))
		case RefuseJob:
			list = append(list, fmt.Sprintf("refuse %s %d", short(c.Job.Resource), c.Why))
		case Start:
			list = append(list, "start "+short(c.Resource.ID))
		}
	}
	return list
}

func wantJobs(t *testing.T, out []Command, want ...string) {
	t.Helper()
	if got := jobsOf(out); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
}

func (w *world) jobDone(run byte, name string, unreachable bool) []Command {
	return w.s.JobDone(Job{Run: intent.ActionID{run}, Resource: rid(name)}, unreachable, w.now)
}

// A dry run of many resources is under way on an agent when the intent changes
// there: the change waits for the one look that runs, and goes on before the next.
func TestAPushWaitsForOneLook(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1", "x/c 1")
	w.endAll()
	wantJobs(t, w.jobs(1, "x/a", "x/b", "x/c"), "job x/a")
	out, err := w.s.NewVersion(2, model(2, []string{"x/a 2", "x/b 2", "x/c 1"}), nil, w.now)
	if err != nil {
		t.Fatal(err)
	}
	wantJobs(t, out)
	wantJobs(t, w.jobDone(1, "x/a", false), "start x/a")
	done := func(name string) []Command {
		return w.s.TaskDone(Outcome{ID: rid(name), Version: 2, Status: intent.StatusDeployed}, w.now)
	}
	wantJobs(t, done("x/a"), "start x/b")
	wantJobs(t, done("x/b"), "job x/b")
	// A timer's repair lets the look go first; facts let what is more urgent than the repair go first.
	wantJobs(t, w.s.Trigger(RepairTimer, Filter{}, w.now))
	wantJobs(t, w.s.Enqueue([]Job{{Resource: rid("x/a")}}, w.now))
	wantJobs(t, w.jobDone(1, "x/b", false), "job x/c")
	wantJobs(t, w.jobDone(1, "x/c", false), "job x/a")
	wantJobs(t, w.jobDone(0, "x/a", false), "start x/a")
}

// On an agent that does three things at once, a resource is not looked at while
// it is deployed, and not deployed while a job looks at it; others go on.
func TestALookIsNotBesideADeploymentOfTheSame(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "x/b 1")
	w.endAll()
	limits, err := intent.ParseAgentLimits(map[string]any{"x": map[string]any{"concurrency": 3.0}})
	if err != nil {
		t.Fatal(err)
	}
	w.s.SetRules(Rules{Agents: limits}, w.now)
	release := func(version int, lines ...string) []Command {
		out, err := w.s.NewVersion(version, model(version, lines), nil, w.now)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	done := func(version int, name string) []Command {
		return w.s.TaskDone(Outcome{ID: rid(name), Version: version, Status: intent.StatusDeployed}, w.now)
	}
	wantJobs(t, release(2, "x/a 2", "x/b 1"), "start x/a")
	wantJobs(t, w.jobs(1, "x/a", "x/b"), "job x/b") // the older one waits for the deployment
	wantJobs(t, w.jobDone(1, "x/b", false))
	wantJobs(t, done(2, "x/a"), "job x/a")
	wantJobs(t, release(3, "x/a 3", "x/b 3", "x/new 3"), "start x/b", "start x/new")
	wantJobs(t, done(3, "x/b"))
	wantJobs(t, w.jobDone(1, "x/a", false), "start x/a")
	// A look at a resource that no version has yet: it is released meanwhile.
	wantJobs(t, done(3, "x/a"))
	wantJobs(t, w.jobs(1, "x/later"), "job x/later")
	wantJobs(t, release(4, "x/a 3", "x/b 3", "x/new 3", "x/later 4"))
	wantJobs(t, w.jobDone(1, "x/later", false), "start x/later")
}

// Looks have places of their own: they neither take those of deployments nor wait for them.
func TestLooksHaveABudgetOfTheirOwn(t *testing.T) {
	w := newWorld(t, Limits{Concurrency: 1, DryRuns: 2}, "x/a 1", "y/b 1", "z/c 1")
	// x deploys, y and z wait for its place.
	wantJobs(t, w.jobs(1, "p/1", "q/1", "r/1", "y/1"), "job p/1", "job q/1")
	wantJobs(t, w.jobDone(1, "p/1", false), "job r/1")
	wantJobs(t, w.jobDone(1, "q/1", false)) // y waits for a place to deploy: that is more urgent there
	if n := w.s.Jobs(DryRun); n != 1 {
		t.Fatalf("%d looks", n)
	}
	wantJobs(t, w.s.CancelJobs(intent.ActionID{1}, w.now))
	wantJobs(t, w.jobDone(1, "r/1", false))
	if w.s.Jobs(DryRun) != 0 {
		t.Fatal("it was taken back")
	}
}

// A look that cannot succeed is refused at once: its agent is paused, its breaker is open, or successive looks did
// not reach the target.
func TestRefusedLooks(t *testing.T) {
	w := newWorld(t, Limits{}, "x/a 1", "y/b 1")
	w.s.SetPolicy(Policy{BreakerFailures: 2}, w.now)
	w.s.Pause("x", w.now)
	wantJobs(t, w.jobs(1, "x/a", "n/1", "n/2", "n/3", "n/4"), "refuse x/a 0", "job n/1")
	wantJobs(t, w.jobDone(1, "n/1", true), "job n/2")
	wantJobs(t, w.jobDone(1, "n/2", true), "refuse n/3 1", "refuse n/4 1")
	w.jobs(1, "y/1")
	out := w.s.TaskDone(Outcome{ID: rid("y/b"), Version: 1, Status: intent.StatusUnavailable, Unreachable: true}, w.now)
	wantJobs(t, out, "job y/1")
	wantJobs(t, w.jobs(1, "y/2"))
	wantJobs(t, w.s.Pause("y", w.now), "refuse y/2 0")
	w.jobDone(1, "y/1", false)
	w.s.Halt()
	wantJobs(t, w.jobs(1, "n/1"))
	wantJobs(t, w.s.Resume(w.now.Add(time.Second)), "job n/1")
	if w.s.Idle() {
		t.Fatal("a look runs")
	}
}
