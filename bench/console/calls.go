package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// measureList times GET /api/v2/resource for one client and for many at once, and what the reference's web console asks
// by GraphQL, in an environment of its own. It returns how many bars were missed.
func (e *estate) measureList(ctx context.Context) (missed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	repo, err := e.repository(ctx, "api", e.api)
	if err != nil {
		return 0, err
	}
	env, err := e.server.Bind(ctx, repo.Bare, "main")
	if err != nil {
		return 0, err
	}
	if err := e.server.WaitDeployedCount(ctx, env, e.api); err != nil {
		return 0, err
	}
	b := newBrowser(e.server.URL())
	// A page as a console shows it, and all that one answer may have.
	for _, path := range []string{"/api/v2/resource?limit=20", "/api/v2/resource"} {
		list := call{path, env}
		one, err := b.calls(ctx, list, 1, 2000)
		if err != nil {
			return 0, err
		}
		fmt.Printf("GET %s, %d resources, one client: p50 %s ms, p99 %s ms of %d%s\n", path, e.api,
			ms(percentile(one, 50)), ms(percentile(one, 99)), len(one), verdict(percentile(one, 99) <= barOne, &missed))
		many, err := b.calls(ctx, list, clients, 20)
		if err != nil {
			return 0, err
		}
		fmt.Printf("  %d clients at once: p50 %s ms, p99 %s ms of %d%s\n", clients, ms(percentile(many, 50)),
			ms(percentile(many, 99)), len(many), verdict(percentile(many, 99) <= barMany, &missed))
	}
	home, err := b.calls(ctx, call{"/", ""}, clients, 20)
	if err != nil {
		return 0, err
	}
	fmt.Printf("the list of environments for %d people at once: p50 %s ms, p99 %s ms of %d\n", clients,
		ms(percentile(home, 50)), ms(percentile(home, 99)), len(home))
	more, err := b.measureGraphQL(ctx, env)
	return missed + more, err
}

// call is what clients ask for: a path, and the environment that it is about, if any.
type call struct{ path, env string }

// calls lets several clients make a call, one after the other, and returns how long the calls took.
func (b *browser) calls(ctx context.Context, what call, clients, each int) (took []time.Duration, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range clients {
		all.Go(func() {
			for range each {
				d, failed := b.call(ctx, what)
				mu.Lock()
				if took = append(took, d); failed != nil {
					err = failed
				}
				mu.Unlock()
				if failed != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return took, err
}

func (b *browser) call(ctx context.Context, what call) (time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+what.path, nil)
	if err != nil {
		return 0, err
	}
	if what.env != "" {
		r.Header.Set("X-Inmanta-Tid", what.env)
	}
	began := time.Now()
	answer, err := b.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s answers %s", what.path, answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return time.Since(began), err
}
