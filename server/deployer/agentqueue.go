package deployer

import (
	"context"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Queue returns what runs, what comes next and why it waits. Here is false before the record has been read, after Stop,
// and when ctx ends first.
func (d *Deployer) Queue(ctx context.Context, q intent.QueueQuestion) intent.Queue {
	answer := make(chan intent.Queue, 1)
	d.post(func() {
		if d.sched == nil {
			answer <- intent.Queue{}
			return
		}
		out := d.sched.Queue(q, now())
		began := make(map[intent.ResourceID]time.Time, len(d.running))
		for _, r := range d.running {
			began[r.task.Resource.ID] = r.began
		}
		for _, a := range out.Agents {
			for i := range a.Running {
				if !a.Running[i].Job {
					a.Running[i].Since = began[a.Running[i].Resource]
				}
			}
		}
		answer <- out
	})
	select {
	case out := <-answer:
		return out
	case <-d.done:
	case <-ctx.Done():
	}
	return intent.Queue{}
}
