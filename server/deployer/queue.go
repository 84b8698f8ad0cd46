package deployer

import (
	"slices"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// Between two tasks of an agent lie the way of the result to here and that of the next task back, which takes longer
// than a task that does little. So where the tasks of an agent were quick lately, the next ones are sent before their
// turn and wait in the executor, behind the one that runs:
//
//	agent   runs    behind
//	 web ── a ───── b c d      a ends: b begins at once, e is sent
//
// Only prepared tasks are sent like this (see ahead.go): that they may begin is durable. Anything that speaks against
// their beginning recalls them (see scheduler.Recall), and so does a task that is not quick after all. What comes
// back did not run, and leaves no trace; until another task of its agent has ended, nothing is sent early there.

const (
	mostBehind = 12 // per agent
	// quickLine is how much work may be behind a task.
	quickLine = 4 * time.Millisecond
	// slowHead is the time after which what is behind a running task is recalled.
	slowHead = 20 * time.Millisecond
)

// executorQueues holds what was sent and has not ended, by agent.
type executorQueues struct {
	of      map[string]*agentQueue
	touched []string      // agents that may be sent more
	sending []*deployment // to be sent at the end of this turn of the loop
	recalls []intent.ActionID
	behind  int // how many tasks are behind another one
	looked  time.Time
	slow    time.Duration // slowHead, except in tests
	most    int           // mostBehind, except in tests
}

type agentQueue struct {
	runs     []*deployment // the first one runs
	since    time.Time     // when it began, as far as the deployer knows
	time     average       // of a task
	holdBack bool          // send nothing behind until a task has ended
	touched  bool          // it is in executorQueues.touched
}

func newQueues() executorQueues {
	return executorQueues{of: make(map[string]*agentQueue), slow: slowHead, most: mostBehind}
}

func (l *executorQueues) touch(agent string) {
	if q := l.of[agent]; q != nil && !q.touched {
		q.touched = true
		l.touched = append(l.touched, agent)
	}
}

// depth returns how many tasks may be behind the one that runs, at most the given number.
func (q *agentQueue) depth(most int) int {
	if len(q.runs) == 0 || q.holdBack || q.time == 0 {
		return 0
	}
	return int(min(average(quickLine)/q.time, average(most)))
}

// queueForExecutor sends a task at the end of this turn.
func (d *Deployer) queueForExecutor(r *deployment) { d.queues.sending = append(d.queues.sending, r) }

// sendToExecutor hands the executor what is to run, and the recalls.
func (d *Deployer) sendToExecutor() {
	l := &d.queues
	if len(l.sending) > 0 {
		tasks := make([]executor.Task, len(l.sending))
		for i, r := range l.sending {
			tasks[i] = r.task
			l.sent(r)
		}
		l.sending = l.sending[:0]
		if d.tasks.Err() != nil {
			for _, t := range tasks {
				d.taskEnded(executor.Result{Task: t.ID})
			}
		} else {
			d.cfg.Executor.Begin(d.tasks, tasks, d.taskEnded)
		}
	}
	if len(l.recalls) > 0 {
		d.cfg.Executor.Recall(l.recalls)
		l.recalls = nil
	}
}

func (l *executorQueues) sent(r *deployment) {
	agent := r.task.Resource.ID.Agent
	q := l.of[agent]
	if q == nil {
		q = &agentQueue{}
		l.of[agent] = q
	}
	if q.runs = append(q.runs, r); len(q.runs) == 1 {
		q.since = time.Now()
	}
	if r.task.Behind {
		l.behind++
	}
	l.touch(agent)
}

// sendBehind sends quick agents their next tasks, and recalls those of agents that turned out slow.
func (d *Deployer) sendBehind() {
	l := &d.queues
	if d.sched == nil {
		return
	}
	if at := time.Now(); l.behind > 0 && at.Sub(l.looked) >= l.slow/2 {
		l.looked = at
		for agent, q := range l.of {
			if len(q.runs) > 1 && !q.holdBack && at.Sub(q.since) >= l.slow {
				q.holdBack = true
				d.carryOut(d.sched.RecallAll(agent))
			}
		}
	}
	if d.stopping || d.loading { // touched agents are looked at afterwards, or never
		return
	}
	for _, agent := range l.touched {
		q := l.of[agent]
		q.touched = false
		if n := q.depth(l.most); n > 0 {
			d.carryOutBehind(d.sched.Behind(agent, n, d.maySendBehind, now()))
		}
	}
	l.touched = l.touched[:0]
}

// maySendBehind reports whether a task is prepared and nothing else has to be durable before it begins.
func (d *Deployer) maySendBehind(c scheduler.Start) bool {
	r := d.prepared[c.Resource.ID]
	if r == nil || !r.durable || r.task.Action != executor.Deploy || d.unsaved[c.Resource.ID] > 0 {
		return false
	}
	return !slices.ContainsFunc(c.Requires, func(need scheduler.Dependency) bool { return d.unsaved[need.ID] > 0 })
}

// carryOutBehind sends what the scheduler started behind other tasks.
func (d *Deployer) carryOutBehind(commands []scheduler.Command) {
	for _, c := range commands {
		start, is := c.(scheduler.Start)
		if !is {
			d.carryOut([]scheduler.Command{c})
			continue
		}
		r := d.prepared[start.Resource.ID]
		delete(d.prepared, start.Resource.ID)
		r.describe(start, now())
		r.task.Behind = true
		d.running[r.task.ID] = r
		d.queueForExecutor(r)
	}
}

// beganAt sets when a task that was behind began.
func (r *deployment) beganAt(at time.Time) {
	if at.IsZero() {
		return
	}
	r.began = at.UTC().Truncate(time.Microsecond)
	r.action.Started, r.action.Messages[0].Time = r.began, r.began
}

// recall asks for tasks back that were sent behind others.
func (d *Deployer) recall(c scheduler.Recall) {
	for _, r := range d.running {
		if r.task.Behind && slices.Contains(c.Tasks, r.task.Resource.ID) {
			d.queues.recalls = append(d.queues.recalls, r.task.ID)
		}
	}
}

// ended notes the end of a task; the next one on its agent begins.
func (l *executorQueues) ended(d *Deployer, r *deployment, took time.Duration) {
	q := l.gone(r)
	if q == nil {
		return
	}
	q.time.add(took)
	q.holdBack = false
	if len(q.runs) > 0 {
		q.since = time.Now()
		if next := q.runs[0]; next.shown == nil {
			d.show(next)
		}
	}
}

func (l *executorQueues) gone(r *deployment) *agentQueue {
	agent := r.task.Resource.ID.Agent
	q := l.of[agent]
	if q == nil {
		return nil
	}
	at := slices.Index(q.runs, r)
	if at < 0 {
		return nil
	}
	q.runs = slices.Delete(q.runs, at, at+1)
	if r.task.Behind {
		l.behind--
	}
	l.touch(agent)
	return q
}

// withdrawn takes back a task that was sent and did not begin.
func (d *Deployer) withdrawn(r *deployment) {
	if q := d.queues.gone(r); q != nil {
		q.holdBack = true
	}
	if d.loading && !d.stopping {
		d.deferred = append(d.deferred, func() { d.withdrawn(r) })
		return
	}
	if r.shown != nil {
		r.shown.Stop()
	}
	delete(d.running, r.task.ID)
	delete(d.ahead, r.task.ID)
	d.pending.rewriteAhead = true
	d.carryOut(d.sched.Withdrawn(r.task.Resource.ID, r.task.Resource.Version, now()))
}
