package control

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

// With compile_cancel_older a compile ends early when a newer commit waits. It
// can as long as nothing of it is stored; from then on it goes on to its end.

// errSuperseded ends a run for which a newer commit waits.
var errSuperseded = errors.New("cancelled: a newer commit is there")

// mostCancelled is how many compiles of an environment are cancelled in a row:
// where commits come faster than one compiles, something shall be deployed all the same.
const mostCancelled = 3

// cancellation is the end that somebody else may bring about for a run.
type cancellation struct {
	cancel context.CancelFunc
	mu     sync.Mutex
	final  bool            // it is too late
	by     *intent.Compile // the request of the newer commit
}

// supersede ends the run, unless it is too late.
func (c *cancellation) supersede(by intent.Compile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.final && c.by == nil {
		c.by = &by
		c.cancel()
	}
}

// pass lets the run go on to its end; an error says that it was ended before.
func (c *cancellation) pass() error {
	if c == nil { // of a preview, which nothing supersedes
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by != nil {
		return errSuperseded
	}
	c.final = true
	return nil
}

func (c *cancellation) superseded() *intent.Compile {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by
}

// watchNewer ends a run when a newer commit waits, until ctx ends.
func (k *keeper) watchNewer(ctx context.Context, run intent.CompileID, ending *cancellation) {
	moves := k.control.cfg.Bus.Subscribe(func(e bus.Event) bool {
		return e.Environment == k.env && (e.Topic == bus.Compile || e.Topic == bus.Lagged)
	})
	defer moves.Close()
	for {
		open, err := k.control.cfg.Store.OpenCompiles(ctx, k.env)
		if err == nil {
			if by := newer(open, run); by != nil {
				ending.supersede(*by)
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-moves.Events():
		}
	}
}

// newer finds the request for which a run is cancelled: one that waits because
// another commit came, while the run, and all that it answers, was asked for
// because commits came. A run that has no commit yet takes the newest anyway.
func newer(open []intent.Compile, run intent.CompileID) (by *intent.Compile) {
	for i, o := range open {
		switch {
		case o.ID == run && o.Revision == nil:
			return nil
		case (o.ID == run || o.Substitute != nil && *o.Substitute == run) && !o.Moved():
			return nil
		case o.Started == nil && o.Moved():
			by = &open[i]
		}
	}
	return by
}

// endSuperseded records the end of the stage that was cut off.
func (r *run) endSuperseded(ctx context.Context, by intent.Compile) {
	if r.open == nil {
		return
	}
	c, s := r.control, *r.open
	why := errSuperseded.Error()
	if m := by.Trigger.Message; m != "" {
		why += ": " + m
	}
	r.persist(ctx, "record the end of a stage", func() error {
		return c.cfg.Store.AppendStage(ctx, s.ID, "", fmt.Sprintf("%s\nIts compile is %s\n", why, by.ID))
	})
	r.persist(
		ctx,
		"record the end of a stage",
		func() error { return c.cfg.Store.FinishStage(ctx, s.ID, "", 1, c.cfg.Now()) },
	)
}
