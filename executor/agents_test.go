package executor

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// threadsOf returns the number of threads of a process.
func threadsOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(regexp.MustCompile(`Threads:\s+(\d+)`).FindSubmatch(text)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// deployTo deploys one resource on each of many agents at the same time.
func (b *bench) deployTo(blue intent.Blueprint, from, to int, what string) {
	b.t.Helper()
	var all sync.WaitGroup
	for n := from; n < to; n++ {
		all.Go(func() {
			expect(b.t, b.Run(b.t.Context(), task(blue, fmt.Sprintf("agent%d", n), "x", map[string]any{"what": what})),
				intent.StatusDeployed)
		})
	}
	all.Wait()
}

// A hundred agents with one blueprint share a process, which takes at most a
// fifth more memory than for four agents.
func TestHundredAgentsInOneProcess(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	b.deployTo(blue, 0, 4, "x")
	few := b.serving()[0]
	b.deployTo(blue, 4, 100, "x")
	many := b.serving()
	if len(many) != 1 || many[0].PID != few.PID || many[0].Agents != 100 {
		t.Fatalf("processes %+v; want one, with 100 agents", many)
	}
	t.Logf("4 agents: %d KiB; 100 agents: %d KiB, %d threads", few.RSS>>10, many[0].RSS>>10, threadsOf(t, few.PID))
	if many[0].RSS > few.RSS*12/10 {
		t.Errorf("4 agents take %d KiB, 100 take %d KiB", few.RSS>>10, many[0].RSS>>10)
	}
}

// Five hundred handlers wait for something at the same time. The process has one
// thread for each agent and none besides, and a handler with nothing to wait for
// finishes meanwhile.
func TestBlockedHandlersDoNotStarveOthers(t *testing.T) {
	const agents = 500
	b, blue, _ := roughBench(t, nil)
	quick := func() time.Duration {
		r := b.Run(t.Context(), task(blue, "quick", "q", nil))
		expect(t, r, intent.StatusDeployed)
		return r.Finished.Sub(r.Started)
	}
	quick()
	alone := quick()
	var waiting sync.WaitGroup
	waiting.Go(func() { b.deployTo(blue, 0, agents, "crowd") })
	b.until("all wait", func() bool { return b.executors[blue.Hash()].current.running == agents })
	beside := quick()
	stat := b.serving()[0]
	t.Logf("alone %s, beside %d that wait %s; %d threads, %d KiB", alone, agents, beside, threadsOf(t, stat.PID),
		stat.RSS>>10)
	if n := threadsOf(t, stat.PID); n > agents+10 {
		t.Errorf("%d threads for %d agents", n, agents)
	}
	if beside > 10*time.Second {
		t.Errorf("a quick task took %s beside handlers that wait", beside)
	}
	expect(t, b.Run(t.Context(), task(blue, "opener", "o", map[string]any{"what": "open_gate"})), intent.StatusDeployed)
	waiting.Wait()
}
