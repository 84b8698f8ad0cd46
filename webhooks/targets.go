package webhooks

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// targets finds environments by the repositories that they use, and by the
// secrets that sign for them.
type targets struct {
	byRepository map[string][]match
	secrets      []string // each once
}

// match is an environment that uses a repository.
type match struct {
	*intent.HookTarget
	module string // the module whose repository it is; empty for the environment's own repository
}

func newTargets(all []intent.HookTarget) *targets {
	t := &targets{byRepository: map[string][]match{}}
	secrets := map[string]bool{}
	for i := range all {
		target := &all[i]
		t.add(target, target.Source.URL, "")
		for _, module := range slices.Sorted(maps.Keys(target.Modules)) {
			t.add(target, target.Modules[module], module)
		}
		for _, secret := range target.Secrets {
			secrets[string(secret)] = true
		}
	}
	t.secrets = slices.Sorted(maps.Keys(secrets))
	return t
}

func (t *targets) add(target *intent.HookTarget, url, module string) {
	if key := repositoryKey(url); key != "" {
		t.byRepository[key] = append(t.byRepository[key], match{target, module})
	}
}

// using returns the environments that use one of these URLs, each once, however
// the URLs are spelled. A match gives no right: that is what secrets are for.
func (t *targets) using(urls []string) []match {
	var found []match
	seen := map[intent.EnvironmentID]bool{}
	for _, u := range urls {
		for _, m := range t.byRepository[repositoryKey(u)] {
			if !seen[m.Environment] {
				seen[m.Environment] = true
				found = append(found, m)
			}
		}
	}
	return found
}

// proven returns the secrets that the sender of a body proves to know.
func (t *targets) proven(ctx context.Context, proves proof, body []byte) map[string]bool {
	known := map[string]bool{}
	for _, secret := range t.secrets {
		if ctx.Err() != nil {
			break
		}
		if proves(body, []byte(secret)) {
			known[secret] = true
		}
	}
	return known
}

// guardedBy reports whether one of these secrets signs for the environment.
func (m match) guardedBy(secrets map[string]bool) bool {
	return slices.ContainsFunc(m.Secrets, func(secret []byte) bool { return secrets[string(secret)] })
}

// targetCache keeps the targets for a short while: a burst of webhooks must not
// read all environments and open all secrets for each of them.
type targetCache struct {
	server Server

	mu   sync.Mutex
	last *targets
	read time.Time
}

const (
	// targetsAge is how old targets may be in general.
	targetsAge = time.Second
	// retryGap is the least time between two reads for requests that the targets
	// of before did not verify.
	retryGap = 20 * time.Millisecond
)

// get returns targets that are no older than targetsAge.
func (c *targetCache) get(ctx context.Context) (*targets, error) {
	return c.since(ctx, time.Now().Add(-targetsAge))
}

// newest returns targets that were read after it was called. It waits for
// retryGap after the last read, so that forged requests cost few reads.
func (c *targetCache) newest(ctx context.Context) (*targets, error) {
	asked := time.Now()
	c.mu.Lock()
	gap := time.NewTimer(retryGap - asked.Sub(c.read))
	c.mu.Unlock()
	defer gap.Stop()
	select {
	case <-gap.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c.since(ctx, asked)
}

// since returns targets that were read after a time.
func (c *targetCache) since(ctx context.Context, oldest time.Time) (*targets, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && c.read.After(oldest) {
		return c.last, nil
	}
	read := time.Now()
	all, err := c.server.HookTargets(ctx)
	if err != nil {
		return nil, err
	}
	c.last, c.read = newTargets(all), read
	return c.last, nil
}
