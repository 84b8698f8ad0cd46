package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
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
func (in *installation) round(ctx context.Context, random *rand.Rand) (faults []string, err error) {
	var striking sync.WaitGroup
	failed := make(chan error, len(in.places))
	victims := slices.Clone(in.places)
	random.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	victims = victims[:1+random.IntN(3)]
	for _, p := range victims {
		kill := random.IntN(3) > 0
		wait := time.Duration(random.IntN(3000)) * time.Millisecond
		down := time.Duration(random.IntN(4000)) * time.Millisecond
		if kill {
			in.kills++
			faults = append(faults, "killed "+p.name)
		} else {
			in.pauses++
			faults = append(faults, "paused "+p.name)
		}
		striking.Go(func() {
			time.Sleep(wait)
			if kill {
				failed <- in.kill(ctx, p, down)
			} else {
				failed <- in.halt(p)
			}
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
			return faults, err
		}
		if err := e.repo.Push(ctx); err != nil {
			return faults, err
		}
	}
	striking.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return faults, err
		}
	}
	return faults, in.settle(ctx)
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
	err = in.query(ctx, func(conn *pgx.Conn) error {
		for what, sql := range map[string]string{
			"resources that are not deployed": `SELECT count(*) FROM resource_state s
				WHERE s.compliance <> 'compliant' OR s.is_deploying OR s.last_run <> 'successful'`,
			"open compiles": "SELECT count(*) FROM compile WHERE completed IS NULL",
			"requests":      "SELECT count(*) FROM request",
		} {
			var n int
			if err := conn.QueryRow(ctx, sql).Scan(&n); err != nil {
				return err
			}
			if n > 0 {
				left = append(left, fmt.Sprintf("%d %s", n, what))
			}
		}
		return nil
	})
	return left, err
}

// check looks for what was done twice, in a round that has settled.
func (in *installation) check(ctx context.Context) (found []string, err error) {
	for n := range in.environs {
		journal, err := os.ReadFile(filepath.Join(in.siteOf(n), "journal"))
		if err != nil {
			return nil, err
		}
		times := map[string]int{}
		for line := range strings.Lines(string(journal)) {
			times[strings.TrimSpace(line)]++
		}
		for line, count := range times {
			if count > 1 {
				found = append(found, fmt.Sprintf("environment %d wrote %q %d times", n, line, count))
			}
		}
	}
	err = in.query(ctx, func(conn *pgx.Conn) error {
		var twice int
		// A value that was written is recorded as one change, and not as two.
		err := conn.QueryRow(ctx, `SELECT count(*) FROM (
			SELECT FROM action WHERE kind = 'deploy' AND change IN ('created', 'updated')
			GROUP BY environment, resource, version HAVING count(*) > 1) AS twice`).Scan(&twice)
		if twice > 0 {
			found = append(found, fmt.Sprintf("%d resources have two changes for one version on record", twice))
		}
		return err
	})
	return found, err
}
