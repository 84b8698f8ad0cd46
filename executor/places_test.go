package executor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// until waits until done is true. The caller must not hold mu.
func (b *bench) until(what string, done func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !done() {
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-time.After(50 * time.Millisecond): // the start of a task wakes nobody
		case <-ctx.Done():
			b.mu.Lock()
			b.t.Fatal("waited in vain: " + what)
		}
		b.mu.Lock()
	}
}

// pidOf returns the process in which the handler of a blueprint runs.
func (b *bench) pidOf(blue intent.Blueprint, agent string) string {
	b.t.Helper()
	r := b.Run(b.t.Context(), task(blue, agent, "p", map[string]any{"what": "pid"}))
	if expect(b.t, r, intent.StatusDeployed); len(r.Facts) != 1 {
		b.t.Fatalf("facts %v", r.Facts)
	}
	return r.Facts[0].Value
}

// variant returns a later version of the lab module, with another hash.
func (b *bench) variant(n int) intent.Blueprint {
	return b.module("lab", lab+fmt.Sprintf("# variant %d\n", n))
}

// While a task of an old version of a module still runs, the new version deploys
// resources of the same agent in a process of its own.
func TestTwoBlueprintsDuringAnUpgrade(t *testing.T) {
	b := newBench(t, nil)
	before, after := b.variant(1), b.variant(2)
	old := b.pidOf(before, "host")
	slow := make(chan Result)
	go func() { slow <- b.Run(t.Context(), task(before, "host", "slow", map[string]any{"what": "meet"})) }()
	b.until("the old task runs", func() bool { return b.executors[before.Hash()].current.running == 1 })
	if b.pidOf(after, "host") == old {
		t.Error("the new handler code runs in the old process")
	}
	e := b.paths.Environment(b.env)
	for _, dir := range []string{e.Code(before.Hash()), e.Code(after.Hash())} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	expect(t, b.Run(t.Context(), task(before, "other", "m", map[string]any{"what": "meet"})), intent.StatusDeployed)
	expect(t, <-slow, intent.StatusDeployed)
}

// With AgentCap 1 an agent gives up its seat, and the cache there, when it needs
// another executor. The process stays for its other agents and ends with the
// last one.
func TestAgentCap(t *testing.T) {
	b := newBench(t, func(c *Config) { c.AgentCap = 1 })
	one, two := b.variant(1), b.variant(2)
	expect(t, b.Run(t.Context(), task(one, "a", "x", map[string]any{"what": "cache"})), intent.StatusDeployed)
	pid := b.pidOf(one, "b")
	b.pidOf(two, "a")
	b.until("a leaves the first process", func() bool { return strings.Contains(b.log.String(), "dropped") })
	if n := len(b.serving()); n != 2 || b.pidOf(one, "b") != pid {
		t.Errorf("%d processes; the one that an agent uses was ended", n)
	}
	b.pidOf(two, "b")
	b.until("the first process ends", func() bool { return b.processes == 1 })
	if stats := b.serving(); len(stats) != 1 || stats[0].Blueprint != two.Hash() || stats[0].Agents != 2 {
		t.Errorf("processes: %+v", stats)
	}
	// While the agent's only seat is busy, its task for the other blueprint waits.
	first := make(chan Result)
	go func() { first <- b.Run(t.Context(), task(two, "a", "m", map[string]any{"what": "meet"})) }()
	b.until("a is busy", func() bool { return b.executors[two.Hash()].seats["a"].busy > 0 })
	second := make(chan Result)
	go func() { second <- b.Run(t.Context(), task(one, "a", "m", nil)) }()
	b.until("the second waits",
		func() bool { return b.executors[one.Hash()] != nil && b.executors[one.Hash()].waiting == 1 })
	expect(t, b.Run(t.Context(), task(two, "c", "m", map[string]any{"what": "meet"})), intent.StatusDeployed)
	expect(t, <-first, intent.StatusDeployed)
	expect(t, <-second, intent.StatusDeployed)
}

// A blueprint whose agents are always busy does not keep its place forever.
func TestBusyProcessGivesWay(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Cap, c.Turn = 1, 100*time.Millisecond })
	busy, waits := b.variant(1), b.variant(2)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, agent := range []string{"a", "bb", "ccc", "dddd", "eeeee", "ffffff"} {
		all.Go(func() {
			for ctx.Err() == nil {
				expect(t, b.Run(t.Context(), task(busy, agent, "n", map[string]any{"what": "nap"})),
					intent.StatusDeployed)
			}
		})
	}
	b.until("the first runs", func() bool {
		e := b.executors[busy.Hash()]
		return e != nil && e.current != nil && e.current.running > 1
	})
	for n := range 2 {
		limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		expect(t, b.Run(limited, task(waits, "d", fmt.Sprint(n), nil)), intent.StatusDeployed)
		cancel()
	}
	stop()
	all.Wait()
}

// An agent without tasks for a while loses its seat, though the process goes on
// for other agents.
func TestIdleAgentLeaves(t *testing.T) {
	b := newBench(t, func(c *Config) { c.IdleRetention = time.Minute })
	blue := b.module("lab", lab)
	expect(t, b.Run(t.Context(), task(blue, "idle", "x", map[string]any{"what": "cache"})), intent.StatusDeployed)
	pid := b.pidOf(blue, "busy")
	b.mu.Lock()
	b.executors[blue.Hash()].seats["idle"].used = time.Now().Add(-2 * time.Minute)
	b.mu.Unlock()
	if err := b.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("the agent leaves", func() bool { return strings.Contains(b.log.String(), "dropped") })
	if stats := b.serving(); len(stats) != 1 || stats[0].Agents != 1 || b.pidOf(blue, "busy") != pid {
		t.Errorf("processes: %+v", stats)
	}
}

// When somebody removes a file that a process was started with, the next task
// gets a new process with new files.
func TestFilesRemovedUnderAProcess(t *testing.T) {
	b := newBench(t, nil)
	blue := b.module("lab", lab)
	e := b.paths.Environment(b.env)
	pid := b.pidOf(blue, "host")
	for _, dir := range []string{e.Venv(blue.VenvHash()), e.Code(blue.Hash()), e.Venvs(), e.Codes(), e.Executors()} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		next := b.pidOf(blue, "host")
		if next == pid {
			t.Errorf("the process still takes tasks after %s was removed", dir)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
		pid = next
	}
}
