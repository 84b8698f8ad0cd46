package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/bench/peer"
)

// rounds runs all rounds, and returns what was wrong.
func (in *installation) rounds(ctx context.Context) (troubles []string, err error) {
	random := rand.New(rand.NewPCG(in.seed, 1))
	for n := range in.config.rounds {
		began := time.Now()
		faults, err := in.round(ctx, random)
		if err != nil {
			return troubles, fmt.Errorf("round %d: %w", n+1, err)
		}
		found, err := in.check(ctx)
		if err != nil {
			return troubles, fmt.Errorf("round %d: %w", n+1, err)
		}
		for _, f := range found {
			troubles = append(troubles, fmt.Sprintf("round %d: %s", n+1, f))
		}
		fmt.Fprintf(in.out, "round %d: %s; settled after %s, %d troubles\n", n+1, strings.Join(faults, ", "),
			time.Since(began).Round(100*time.Millisecond), len(found))
	}
	return troubles, nil
}

// round pushes to every environment while faults strike, and waits until all is deployed.
func (in *installation) round(ctx context.Context, random *rand.Rand) (struck []string, err error) {
	var striking sync.WaitGroup
	faults := in.plan(random)
	failed := make(chan error, len(faults))
	for _, f := range faults {
		struck = append(struck, f.what)
		in.mu.Lock()
		in.faults[f.kind]++
		in.mu.Unlock()
		wait := time.Duration(random.IntN(3000)) * time.Millisecond
		striking.Go(func() {
			time.Sleep(wait)
			failed <- f.strike(ctx)
		})
	}
	for _, e := range in.environs {
		var items []int
		for i := range in.items {
			if random.IntN(2) == 0 {
				items = append(items, i)
			}
		}
		if err := e.repo.ChangeSome(ctx, append(items, 0), ""); err != nil {
			return struck, err
		}
		if err := e.repo.Push(ctx); err != nil {
			return struck, err
		}
	}
	striking.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return struck, err
		}
	}
	return struck, in.settle(ctx)
}

// fault is something that goes wrong in a round.
type fault struct {
	kind, what string
	strike     func(ctx context.Context) error
}

// plan chooses what goes wrong in a round: up to three processes, some agents, and perhaps the bus or the network.
func (in *installation) plan(random *rand.Rand) (faults []fault) {
	var servers, agents []*place
	for _, p := range in.places {
		if p.roles != "" {
			servers = append(servers, p)
		} else {
			agents = append(agents, p)
		}
	}
	choose := func(from []*place, most int) {
		random.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		for _, p := range from[:min(len(from), most)] {
			down := time.Duration(random.IntN(4000)) * time.Millisecond
			if random.IntN(3) > 0 {
				faults = append(faults, fault{"kills", "killed " + p.name, func(ctx context.Context) error {
					return in.kill(ctx, p, down)
				}})
			} else {
				faults = append(faults, fault{"pauses", "paused " + p.name, func(context.Context) error {
					return in.halt(p)
				}})
			}
		}
	}
	choose(servers, 1+random.IntN(3))
	choose(agents, random.IntN(1+max(1, len(agents)/10)))
	if random.IntN(3) == 0 {
		gone := time.Duration(random.IntN(5000)) * time.Millisecond
		faults = append(faults, fault{"removals of the bus", "the bus was replaced", func(context.Context) error {
			in.nats.stop()
			time.Sleep(gone)
			return in.nats.start()
		}})
	}
	if len(agents) > 0 && random.IntN(2) == 0 {
		cut, hard := time.Duration(random.IntN(int(in.pause)*2)), random.IntN(2) == 0
		faults = append(faults, fault{"partitions", "the network of the agents was cut", func(context.Context) error {
			in.network.cut(cut, hard)
			return nil
		}})
	}
	return faults
}

// struck says how often what went wrong.
func (in *installation) struck() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(in.faults)) {
		out = append(out, fmt.Sprintf("%d %s", in.faults[kind], kind))
	}
	return strings.Join(out, ", ")
}

// kill kills the process of a place, and starts it again.
func (in *installation) kill(ctx context.Context, p *place, down time.Duration) error {
	p.mu.Lock()
	s := p.now
	p.now = nil
	p.mu.Unlock()
	s.Kill()
	time.Sleep(down)
	return in.start(ctx, p)
}

// halt pauses the process of a place.
func (in *installation) halt(p *place) error {
	p.mu.Lock()
	s := p.now
	p.now = nil // nobody asks it meanwhile
	p.mu.Unlock()
	if err := s.Pause(); err != nil {
		return err
	}
	time.Sleep(in.pause)
	err := s.Resume()
	p.mu.Lock()
	p.now = s
	p.mu.Unlock()
	return err
}

// settle waits until everything is deployed as it was pushed.
func (in *installation) settle(ctx context.Context) error {
	limit := time.Now().Add(in.patience)
	for {
		left, err := in.missing(ctx)
		if err == nil && len(left) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(limit) {
			some := strings.Join(left[:min(len(left), 5)], "; ")
			return fmt.Errorf("not deployed after %s: %s (%v)", in.patience, some, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// missing lists what is not as it was pushed, or still under way.
func (in *installation) missing(ctx context.Context) (left []string, err error) {
	for n, e := range in.environs {
		for i := range in.items {
			content, err := os.ReadFile(filepath.Join(in.siteOf(n), fmt.Sprint("item", i)))
			if err != nil || string(content) != e.repo.Value(i) {
				left = append(left,
					fmt.Sprintf("item%d of environment %d is %q, not %s", i, n, content, e.repo.Value(i)))
			}
		}
	}
	if len(left) > 0 {
		return left, nil
	}
	return peer.Record{URL: in.database.URL()}.Unsettled(ctx)
}

// check looks for what was done twice, in a round that has settled.
func (in *installation) check(ctx context.Context) (found []string, err error) {
	for n := range in.environs {
		twice, err := peer.WrittenTwice(in.siteOf(n))
		if err != nil {
			return nil, err
		}
		for _, what := range twice {
			found = append(found, fmt.Sprintf("environment %d wrote %s", n, what))
		}
	}
	twice, err := peer.Record{URL: in.database.URL()}.ChangedTwice(ctx)
	return append(found, twice...), err
}
