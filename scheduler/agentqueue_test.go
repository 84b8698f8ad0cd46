package scheduler

import (
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// Three resources of one agent need each other in a row, another agent is paused: people see what runs, what comes next
// and what each waits for.
func TestTheQueueSaysWhatWaitsForWhat(t *testing.T) {
	w := newWorld(t, Limits{})
	w.s.Pause("b", w.now)
	w.release("a/one 1", "a/two 1 a/one", "a/three 1 a/two", "b/four 1")
	q := w.s.Queue(intent.QueueQuestion{Agents: 10, Next: 1}, w.now)
	if !q.Here || q.Running != 1 || q.Waiting != 3 || len(q.Agents) != 2 {
		t.Fatalf("%+v", q)
	}
	a, b := q.Agents[0], q.Agents[1]
	if a.Agent != "a" || len(a.Running) != 1 || a.Running[0].Resource.Value != "one" || a.Waiting != 2 {
		t.Errorf("a: %+v", a)
	}
	if len(a.Next) != 1 || a.Next[0].Resource.Value != "two" || a.Next[0].WaitsFor.Value != "one" ||
		a.Why != intent.AgentBusy {
		t.Errorf("a: next %+v, why %s", a.Next, a.Why)
	}
	if b.Why != intent.AgentPaused || len(b.Running) != 0 || len(b.Next) != 1 || !b.Next[0].WaitsFor.IsZero() {
		t.Errorf("b: %+v", b)
	}
	q = w.s.Queue(intent.QueueQuestion{Agents: 1, Next: 5}, w.now)
	if len(q.Agents) != 1 || q.More != 1 || len(q.Agents[0].Next) != 2 {
		t.Errorf("one agent: %+v", q)
	}
	w.s.Halt()
	q = w.s.Queue(intent.QueueQuestion{Agent: "a", Agents: 1}, w.now)
	if len(q.Agents) != 1 || q.Agents[0].Why != intent.AgentHalted {
		t.Errorf("halted: %+v", q)
	}
}
