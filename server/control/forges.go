package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
)

// What forges are told goes through the record, so that nobody waits for a
// forge and nothing is lost:
//
//	event ──same transaction──▶ forge_outbox ──▶ sendOutbox ──▶ the forge
//	                                 ▲    │ fails: growing pauses, then dead
//	                                 └────┘
//
// A status carries its text. A comment, and a look at a pull request, carry only
// the number: what is to be said is read when it is said.

// SecretForgeToken is the name of the secret with which a forge is spoken to.
const SecretForgeToken = "forge-token"

const (
	// forgeWorkers bounds how many forges are spoken to at a time; to that of
	// one environment there is one conversation.
	forgeWorkers = 4
	// forgeLease is how long one piece of work is left to its worker.
	forgeLease = 3 * time.Minute
	// forgeAttempts is how often one is tried before it is dead: over a day, as pauses grow.
	forgeAttempts = 30
	// forgePause and forgeLongest bound the pauses between two attempts.
	forgePause   = 2 * time.Second
	forgeLongest = time.Hour
	// outboxRetry is how often the record is asked for work that nobody told of.
	outboxRetry = 15 * time.Second
	// outboxCalm is the shortest time between two looks that found nothing.
	outboxCalm = 100 * time.Millisecond
	// outboxRetention is how long what was sent is shown.
	outboxRetention = 14 * 24 * time.Hour
	// pullsInterval is how often a forge is asked for pull requests that no webhook told of.
	pullsInterval = 5 * time.Minute
)

// errNoForge says that there is nobody to tell.
var errNoForge = errors.New("the environment has no forge, or no token for it")

// forgeOf gives the forge of an environment's repository; errNoForge when it has none.
func (c *Control) forgeOf(ctx context.Context, e intent.Environment) (forge.Forge, error) {
	secrets, err := c.secrets(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	if secrets[SecretForgeToken] == "" || e.Text("forge") == "none" || e.Source.URL == "" {
		return nil, errNoForge
	}
	source, err := c.gitSource(ctx, e)
	if err != nil {
		return nil, err
	}
	return c.cfg.Forges(forge.Config{
		Kind: e.Text(
			"forge",
		), URL: e.Source.URL, API: e.Text("forge_api"), Token: strings.TrimSpace(secrets[SecretForgeToken]),
		Proxy: source.Proxy, CA: source.CABundle, UserAgent: "ordain/" + c.cfg.Version,
	})
}

// forges is what the workers share.
type forges struct{ wake chan struct{} }

func (c *Control) wakeForges() {
	select {
	case c.forges.wake <- struct{}{}:
	default:
	}
}

// keepForges tells forges what happens until ctx ends.
func (c *Control) keepForges(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for range forgeWorkers {
		wg.Go(func() { c.sendOutbox(ctx) })
	}
	moves := c.cfg.Bus.Subscribe(func(e bus.Event) bool {
		return e.Topic == bus.Compile || e.Topic == bus.Version || e.Topic == bus.DryRun || e.Topic == bus.Resource ||
			e.Topic == bus.Lagged
	})
	defer moves.Close()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	moved, stale := map[intent.EnvironmentID]bool{}, map[intent.EnvironmentID]bool{}
	asked := map[intent.EnvironmentID]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-moves.Events():
			switch e.Topic {
			case bus.Resource, bus.Version, bus.Lagged:
				moved[e.Environment], stale[e.Environment] = true, true
			case bus.DryRun:
				stale[e.Environment] = true
			}
			if e.Topic != bus.Resource {
				c.wakeForges()
			}
		case <-look.C:
			for env := range moved {
				c.tellDeployment(ctx, env)
			}
			clear(moved)
			c.lookForPulls(ctx, asked, stale)
			for env := range stale {
				c.renewPull(ctx, env)
			}
			clear(stale)
		}
	}
}

func (c *Control) tellDeployment(ctx context.Context, env intent.EnvironmentID) {
	if err := c.cfg.Store.TellDeployment(ctx, env, c.cfg.Now()); err != nil && ctx.Err() == nil &&
		!fault.Is(err, fault.NotFound) {
		c.cfg.Logger.Warn(
			"what a forge is to be told of a deployment is not known yet",
			"environment",
			env,
			"error",
			err,
		)
		return
	}
	c.wakeForges()
}

// lookForPulls asks the forges of the environments that are kept here, now and
// then, for what no webhook told of. At first it also looks how far deployments are.
func (c *Control) lookForPulls(
	ctx context.Context,
	asked map[intent.EnvironmentID]time.Time,
	stale map[intent.EnvironmentID]bool,
) {
	now := c.cfg.Now()
	var due []intent.EnvironmentID
	c.mu.Lock()
	for env, k := range c.keepers {
		if k.deployer != nil && now.Sub(asked[env]) >= pullsInterval {
			due = append(due, env)
		}
	}
	c.mu.Unlock()
	for _, env := range due {
		if asked[env].IsZero() {
			c.tellDeployment(ctx, env)
		}
		asked[env], stale[env] = now, true
		e, err := c.cfg.Store.Environment(ctx, env)
		if err != nil || e.Text("pull_previews") == "off" || e.Halted {
			continue
		}
		if err := c.cfg.Store.AskForge(ctx, env, 0, now); err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("pull requests are not looked for yet", "environment", env, "error", err)
		}
		c.wakeForges()
	}
}

// sendOutbox does what waits, one piece after the other.
func (c *Control) sendOutbox(ctx context.Context) {
	for ctx.Err() == nil {
		now := c.cfg.Now()
		work, next, err := c.cfg.Store.TakeOutbox(ctx, now, now.Add(forgeLease))
		if work != nil {
			c.wakeForges() // another worker may find more
			c.send(ctx, *work)
			continue
		}
		wait := outboxRetry
		if err != nil {
			if ctx.Err() == nil && !fault.Is(err, fault.Unavailable) {
				c.cfg.Logger.Error("what forges are to be told cannot be read", "error", err)
			}
		} else if !next.IsZero() {
			wait = min(wait, next.Sub(now))
		}
		pause(ctx, outboxCalm)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-c.forges.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// send does one piece of work and records how it went.
func (c *Control) send(ctx context.Context, w intent.Outbox) {
	err := c.work(ctx, w)
	if ctx.Err() != nil {
		return // the next server does it again
	}
	log := c.cfg.Logger.With("environment", w.Environment, "work", w.Topic)
	now := c.cfg.Now()
	var limited *forge.LimitedError
	switch {
	case err == nil, errors.Is(err, errNoForge), fault.Is(err, fault.NotFound) && w.Kind == intent.OutboxPull:
		err = c.cfg.Store.OutboxSent(ctx, w, now)
	case errors.As(err, &limited):
		log.Warn("a forge wants to be left alone", "until", limited.Until)
		err = errors.Join(
			c.cfg.Store.OutboxFailed(ctx, w, err.Error(), limited.Until, w.Attempts+1 >= forgeAttempts, now),
			c.cfg.Store.DelayOutbox(ctx, w.Environment, limited.Until),
		)
	default:
		dead := w.Attempts+1 >= forgeAttempts || !passes(err)
		log.Warn("a forge was not told", "attempt", w.Attempts+1, "dead", dead, "error", err)
		err = c.cfg.Store.OutboxFailed(ctx, w, err.Error(), now.Add(backoff(w.Attempts)), dead, now)
	}
	if err != nil && ctx.Err() == nil {
		log.Warn("how a forge was told is not recorded; it is told again", "error", err)
	}
	c.publish(w.Environment, bus.Pull, "")
}

// passes tells whether another attempt may succeed by itself.
func passes(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Unauthorized, fault.Forbidden, fault.NotFound:
		return false
	}
	return true
}

func backoff(attempts int) time.Duration {
	return min(forgePause<<min(attempts, 20), forgeLongest)
}

// work does one piece of work.
func (c *Control) work(ctx context.Context, w intent.Outbox) error {
	e, err := c.cfg.Store.Environment(ctx, w.Environment)
	if err != nil {
		return err
	}
	f, err := c.forgeOf(ctx, e)
	if err != nil {
		return err
	}
	switch w.Kind {
	case intent.OutboxStatus:
		p := w.Payload
		return f.SetStatus(
			ctx,
			forge.Status{
				Commit:      p.Commit,
				Context:     p.Context,
				State:       p.State,
				Description: p.Description,
				URL:         c.page(p.Path),
			},
		)
	case intent.OutboxPull:
		return c.lookAtPull(ctx, e, f, w.Payload.Number)
	case intent.OutboxPulls:
		return c.lookAtPulls(ctx, e, f)
	case intent.OutboxComment:
		return c.comment(ctx, e, f, w.Payload.Number)
	}
	return fault.New("control.send", fault.Invalid, "nobody knows what "+string(w.Kind)+" is")
}

// page gives the address of a page of the console as people outside reach it; empty when nobody said.
func (c *Control) page(path string) string {
	if c.cfg.PublicURL == "" {
		return ""
	}
	return strings.TrimSuffix(c.cfg.PublicURL, "/") + path
}

// Outbox lists what waits for the forge of an environment, and what was done last.
func (c *Control) Outbox(ctx context.Context, env intent.EnvironmentID) ([]intent.Outbox, error) {
	return c.cfg.Store.Outbox(ctx, env, 200)
}

// RetryOutbox gives a dead piece of work another chance.
func (c *Control) RetryOutbox(ctx context.Context, env intent.EnvironmentID, id int64) error {
	err := c.cfg.Store.RetryOutbox(ctx, env, id, c.cfg.Now())
	if err == nil {
		c.wakeForges()
		c.publish(env, bus.Pull, "")
	}
	return err
}

// modelErrors gives the errors of a compile as a compiler prints them: file:line: what.
func modelErrors(raw json.RawMessage) (out []string) {
	var all []struct {
		Severity string
		Code     string
		Message  string
		Hint     string
		Location *struct {
			File string
			Line int
		}
		Source string
	}
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	const most = 20
	for i, d := range all {
		if i == most {
			return append(out, fmt.Sprintf("… and %d more", len(all)-most))
		}
		text := d.Message
		if d.Code != "" {
			text = d.Code + ": " + text
		}
		if d.Location != nil {
			text = fmt.Sprintf("%s:%d: %s", d.Location.File, d.Location.Line, text)
		}
		if d.Source != "" {
			text += "\n    " + strings.TrimSpace(d.Source)
		}
		if d.Hint != "" {
			text += "\n    hint: " + d.Hint
		}
		out = append(out, text)
	}
	return out
}
