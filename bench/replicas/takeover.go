package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// measureTakeovers kills the process that owns most environments, so many times, and prints how long it took from the
// kill until a handler of each of its environments ran in another process, with the push, the compile and the release
// in between.
func (in *installation) measureTakeovers(ctx context.Context, times int) error {
	var took []time.Duration
	for range times {
		owners, err := in.owners(ctx)
		if err != nil {
			return err
		}
		owned := map[*place]int{}
		var victim *place
		for _, p := range owners {
			if p == nil {
				continue
			}
			if owned[p]++; victim == nil || owned[p] > owned[victim] {
				victim = p
			}
		}
		if victim == nil {
			return fmt.Errorf("no process owns an environment")
		}
		var orphans []int
		for n, e := range in.environs {
			if owners[e] == victim {
				orphans = append(orphans, n)
				if err := e.repo.Change(ctx, 0); err != nil {
					return err
				}
			}
		}
		victim.mu.Lock()
		s := victim.now
		victim.now = nil
		victim.mu.Unlock()
		s.Kill()
		killed := time.Now()
		for _, n := range orphans {
			if err := in.environs[n].repo.Push(ctx); err != nil {
				return err
			}
		}
		for left := orphans; len(left) > 0; time.Sleep(20 * time.Millisecond) {
			left = slices.DeleteFunc(left, func(n int) bool {
				content, _ := os.ReadFile(filepath.Join(in.siteOf(n), "item0"))
				if string(content) != in.environs[n].repo.Value(0) {
					return false
				}
				took = append(took, time.Since(killed))
				return true
			})
			if time.Since(killed) > in.patience {
				return fmt.Errorf("%d environments were not taken over", len(left))
			}
		}
		if err := in.start(ctx, victim); err != nil {
			return err
		}
		if err := in.settle(ctx); err != nil {
			return err
		}
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(10 * time.Millisecond)
	}
	fmt.Fprintf(in.out, "%d take-overs of environments: p50 %s, p90 %s, p99 %s, longest %s\n",
		len(took), at(0.5), at(0.9), at(0.99), at(1))
	return nil
}
