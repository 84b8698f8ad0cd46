package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// measureTakeovers kills the process that owns most environments, so many times, and prints how long it took from the
// kill until each of its environments had another owner, and until a handler of each ran there. A file of
// each is missing, and the API is asked to repair all of them, while their owner is dead.
func (in *installation) measureTakeovers(ctx context.Context, times int) error {
	var taken, took []time.Duration
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
			}
		}
		for _, n := range orphans { // so that the next owner has something to do
			if err := os.Remove(filepath.Join(in.siteOf(n), "item0")); err != nil {
				return err
			}
		}
		victim.mu.Lock()
		s := victim.now
		victim.now = nil
		victim.mu.Unlock()
		s.Kill()
		killed := time.Now()
		for _, n := range orphans {
			body := map[string]any{"agent_trigger_method": "push_full_deploy"}
			if err := in.api().Call(ctx, http.MethodPost, "/api/v1/deploy", in.environs[n].id, body, nil); err != nil {
				return err
			}
		}
		unowned, left := slices.Clone(orphans), orphans
		for ; len(left) > 0; time.Sleep(20 * time.Millisecond) {
			if len(unowned) > 0 {
				if owners, err = in.owners(ctx); err != nil {
					return err
				}
				unowned = slices.DeleteFunc(unowned, func(n int) bool {
					if owners[in.environs[n]] == nil {
						return false
					}
					taken = append(taken, time.Since(killed))
					return true
				})
			}
			left = slices.DeleteFunc(left, func(n int) bool {
				if _, err := os.Stat(filepath.Join(in.siteOf(n), "item0")); err != nil {
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
	in.print("another owner after", taken)
	in.print("the first handler there after", took)
	return nil
}

func (in *installation) print(what string, took []time.Duration) {
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(10 * time.Millisecond)
	}
	fmt.Fprintf(in.out, "%d environments, %s: p50 %s, p90 %s, p99 %s, longest %s\n",
		len(took), what, at(0.5), at(0.9), at(0.99), at(1))
}
