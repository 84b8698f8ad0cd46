package executor

import (
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// When a handler ends the process that it shares with other agents, every resource that was being
// handled says whose handler it was: known from the call that ended it, or from the thread that crashed.
// When nothing tells, all that ran are named.
func TestACrashedProcessNamesTheHandlerThatEndedIt(t *testing.T) {
	const victims = 3
	for _, tc := range []struct{ trick, how string }{
		{"_exit", "(os._exit(7))"}, {"abort", "(os.abort())"}, {"segfault", "(a crash in its thread)"},
		{"killed", ""},
	} {
		t.Run(tc.trick, func(t *testing.T) {
			b, blue, _ := roughBench(t, nil)
			var all sync.WaitGroup
			results := make([]Result, victims)
			for n, agent := range []string{"b", "c", "d"} {
				all.Go(
					func() { results[n] = b.Run(t.Context(), task(blue, agent, "x", map[string]any{"what": "crowd"})) },
				)
			}
			for b.busyTasks() < victims {
				time.Sleep(time.Millisecond)
			}
			culprit := b.Run(t.Context(), task(blue, "a", "x", map[string]any{"what": tc.trick}))
			all.Wait()
			name := "lab::Thing[a,name=x]"
			for _, r := range results {
				last := r.Messages[len(r.Messages)-1].Message
				want := "It was the handler of " + name + " that ended it " + tc.how
				if tc.how == "" {
					want = "those of " + name
				}
				if r.Status != intent.StatusFailed || !strings.Contains(last, want) {
					t.Errorf("%s is %s: %q; want %q", r.Resource, r.Status, last, want)
				}
			}
			last := culprit.Messages[len(culprit.Messages)-1].Message
			want := "It was the handler of this resource that ended it " + tc.how
			if tc.how == "" {
				want = "ran in the same process"
			}
			if culprit.Status != intent.StatusFailed || !strings.Contains(last, want) {
				t.Errorf("the culprit is %s: %q; want %q", culprit.Status, last, want)
			}
		})
	}
}

// busyTasks returns the number of tasks that run in all processes.
func (b *bench) busyTasks() int {
	n := 0
	for _, p := range b.Processes() {
		n += p.Running
	}
	return n
}
