package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"ordain.dev/ordain/bench/peer"
)

// site is an environment of a server with a repository of its own.
type site struct {
	*peer.Server
	repo *peer.Repository
	env  string
	all  int // resources that can be deployed
}

// newSite makes an environment whose versions wait for their release, and
// deploys the first one, so that executors are there.
func (b *bench) newSite(ctx context.Context, s *peer.Server, m peer.Model) (*site, error) {
	b.sites++
	repo, err := peer.NewRepository(ctx, b.Folder(fmt.Sprintf("repo-%d", b.sites)), m)
	if err != nil {
		return nil, err
	}
	at := &site{Server: s, repo: repo, all: m.Items}
	if at.env, err = s.Bind(ctx, repo.Bare, "main"); err != nil {
		return nil, err
	}
	if err := s.Set(ctx, at.env, "auto_deploy", false); err != nil {
		return nil, err
	}
	version, err := at.compile(ctx, 0)
	if err == nil {
		_, err = at.release(ctx, version)
	}
	return at, err
}

// compile waits for the version of the last push. It asks the reference to
// compile, because that does not watch repositories.
func (s *site) compile(ctx context.Context, after int) (int, error) {
	if s.Name != "ordain" {
		if err := s.Trigger(ctx, s.env); err != nil {
			return 0, err
		}
	}
	return s.WaitVersion(ctx, s.env, after)
}

// release releases a version and times it until everything is deployed.
func (s *site) release(ctx context.Context, version int) (time.Duration, error) {
	began := time.Now()
	if err := s.Release(ctx, s.env, version); err != nil {
		return 0, err
	}
	if err := s.WaitDeployedCount(ctx, s.env, s.all); err != nil {
		return 0, err
	}
	// The count may still be that of the version before, so ask for some
	// resources as well, spread over all of them.
	last := time.Now()
	for i := 0; i < s.all; i += max(1, s.all/40) {
		at, err := s.WaitDeployed(ctx, s.env, s.repo.ID(i), s.repo.Value(i), began, 20*time.Millisecond)
		if err != nil {
			return 0, err
		}
		if i == 0 || at.After(last) {
			last = at
		}
	}
	if err := s.WaitDeployedCount(ctx, s.env, s.all); err != nil {
		return 0, err
	}
	return last.Sub(began), nil
}

// deploySize times deployments of n resources on four agents.
func (b *bench) deploySize(ctx context.Context, n int) error {
	r := row{name: fmt.Sprintf("%d resources, from release to all deployed", n), seconds: true}
	m := row{name: fmt.Sprintf("memory while deploying %d, all processes but the database", n)}
	for _, s := range b.Servers {
		step, cancel := withLimit(ctx)
		times, peak, err := b.deployments(step, s, peer.Model{Items: n, Agents: 4})
		cancel()
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %d resources: %v, %d MiB\n", s.Name, n, times, peak>>20)
		r.values = append(r.values, seconds(times))
		m.values = append(m.values, []float64{float64(peak)})
	}
	b.rows = append(b.rows, r, m)
	return nil
}

// deployments changes every resource several times. It returns how long each
// deployment took, and the most memory that was seen meanwhile.
func (b *bench) deployments(ctx context.Context, s *peer.Server, m peer.Model) ([]time.Duration, int64, error) {
	at, err := b.newSite(ctx, s, m)
	if err != nil {
		return nil, 0, err
	}
	defer at.Remove(ctx, at.env)
	var times []time.Duration
	var peak int64
	version := 1
	for range b.runs {
		if err := at.repo.ChangeAll(ctx); err != nil {
			return nil, 0, err
		}
		if err := at.repo.Push(ctx); err != nil {
			return nil, 0, err
		}
		if version, err = at.compile(ctx, version); err != nil {
			return nil, 0, err
		}
		before, err := s.CPU()
		if err != nil {
			return nil, 0, err
		}
		stopWatching := watchMemory(s)
		took, err := at.release(ctx, version)
		peak = max(peak, stopWatching())
		printCPU(s, before)
		if err != nil {
			return nil, 0, err
		}
		times = append(times, took)
	}
	return times, peak, nil
}

// printCPU prints how much processor time each program used since before.
func printCPU(s *peer.Server, before map[string]time.Duration) {
	after, err := s.CPU()
	if err != nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: CPU:", s.Name)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if used := after[name] - before[name]; used > 0 {
			fmt.Fprintf(os.Stderr, " %s %v", name, used)
		}
	}
	fmt.Fprintln(os.Stderr)
}

// watchMemory samples a server's memory until the function that it returns is
// called, which returns the largest sample.
func watchMemory(s *peer.Server) func() int64 {
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		ticks := time.NewTicker(200 * time.Millisecond)
		defer ticks.Stop()
		var most int64
		for {
			if _, all, err := s.Memory(); err == nil {
				most = max(most, all)
			}
			select {
			case <-ticks.C:
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	return func() int64 { close(stop); return <-peak }
}

// comparePushes times a push that changes one resource. For Ordain it also times
// one in a larger model, once without failing resources and once with many.
func (b *bench) comparePushes(ctx context.Context) error {
	n := b.sizes[0]
	all := n + b.failing
	changed := row{
		name:    fmt.Sprintf("one changed of %d, from the trigger to deployed, compile included", n),
		seconds: true,
	}
	for _, s := range b.Servers {
		times, err := b.pushTimes(ctx, s, peer.Model{Items: n, Agents: 4})
		if err != nil {
			return err
		}
		changed.values = append(changed.values, seconds(times))
	}
	b.rows = append(b.rows, changed)
	if b.failing == 0 {
		return nil
	}
	for _, m := range []peer.Model{{Items: all, Agents: 4}, {Items: n, Agents: 4, Failing: b.failing}} {
		times, err := b.pushTimes(ctx, b.Servers[0], m)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("one changed of %d, of which %d always fail", all, m.Failing)
		b.rows = append(b.rows, row{name: name, seconds: true, values: [][]float64{seconds(times)}})
	}
	return nil
}

func (b *bench) pushTimes(ctx context.Context, s *peer.Server, m peer.Model) ([]time.Duration, error) {
	ctx, cancel := withLimit(ctx)
	defer cancel()
	at, err := b.newSite(ctx, s, m)
	if err != nil {
		return nil, err
	}
	defer at.Remove(ctx, at.env)
	if err := s.Set(ctx, at.env, "auto_deploy", true); err != nil {
		return nil, err
	}
	if m.Failing > 0 { // retry them all the time
		if err := s.Set(ctx, at.env, "autostart_agent_repair_interval", "1"); err != nil {
			return nil, err
		}
	}
	var times []time.Duration
	for i := range b.pushes + 1 {
		item := (i*37 + 1) % m.Items
		if err := at.repo.Change(ctx, item); err != nil {
			return nil, err
		}
		if err := at.repo.Push(ctx); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := at.Trigger(ctx, at.env); err != nil {
			return nil, err
		}
		ended, err := at.WaitDeployed(ctx, at.env, at.repo.ID(item), at.repo.Value(item), began, 10*time.Millisecond)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			times = append(times, ended.Sub(began))
		}
	}
	fmt.Fprintf(os.Stderr, "%s: pushes beside %d failing resources: %v\n", s.Name, m.Failing, times)
	return times, nil
}

// compareAgents measures the memory for many agents beside that for few.
func (b *bench) compareAgents(ctx context.Context) error {
	for _, agents := range []int{4, 100} {
		r := row{name: fmt.Sprintf("memory while deploying 1000 on %d agents, all processes but the database", agents)}
		for _, s := range b.Servers {
			step, cancel := withLimit(ctx)
			_, peak, err := b.deployments(step, s, peer.Model{Items: 1000, Agents: agents})
			cancel()
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s: %d agents: %d MiB\n", s.Name, agents, peak>>20)
			r.values = append(r.values, []float64{float64(peak)})
		}
		b.rows = append(b.rows, r)
	}
	return nil
}

func seconds(times []time.Duration) []float64 {
	out := make([]float64, len(times))
	for i, d := range times {
		out[i] = d.Seconds()
	}
	slices.Sort(out)
	return out
}
