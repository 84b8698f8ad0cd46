package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

// With compile_cancel_older, a compile is cancelled when a newer commit waits, as long as
// nothing of it has been stored.

// errSuperseded ends a compilation because a newer commit waits.
var errSuperseded = errors.New("cancelled: a newer commit is there")

// mostCancelled is how many compiles of an environment are cancelled in a row. Even if
// commits arrive faster than they compile, some have to be deployed.
const mostCancelled = 3

// cancellation lets another goroutine end a compilation, until it is too late.
type cancellation struct {
	cancel context.CancelFunc
	mu     sync.Mutex
	final  bool            // it is too late
	by     *intent.Compile // the request of the newer commit
	person *intent.Actor   // who cancelled it
}

// supersede ends the compilation, unless it is too late.
func (c *cancellation) supersede(by intent.Compile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.final && c.by == nil && c.person == nil {
		c.by = &by
		c.cancel()
	}
}

// finalize rules out a later cancellation, or returns errSuperseded if the compilation
// was cancelled already.
func (c *cancellation) finalize() error {
	if c == nil { // of a preview, which nothing supersedes
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by != nil {
		return errSuperseded
	}
	if c.person != nil {
		return errCancelled
	}
	c.final = true
	return nil
}

func (c *cancellation) superseded() *intent.Compile {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by
}

// watchNewer ends a compilation when a newer commit waits, until ctx ends.
func (k *keeper) watchNewer(ctx context.Context, run intent.CompileID, ending *cancellation) {
	moves := k.cfg.Bus.Subscribe(func(e bus.Event) bool {
		return e.Topic == bus.Lagged || e.Environment == k.env && e.Topic == bus.Compile
	})
	defer moves.Close()
	for {
		open, err := k.cfg.Store.OpenCompiles(ctx, k.env)
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

// newer finds the request for which the running compile is cancelled. The request must
// wait because of another commit, and the running compile and all requests that it
// answers must have been caused by commits too. A compile that has not chosen a commit
// yet will choose the newest anyway.
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

// endSuperseded records the end of the interrupted stage.
func (c *compilation) endSuperseded(ctx context.Context, by intent.Compile) {
	why := errSuperseded.Error()
	if m := by.Trigger.Message; m != "" {
		why += ": " + m
	}
	c.endStage(ctx, fmt.Sprintf("%s\nIts compile is %s\n", why, by.ID))
}

// endStage records the end of the stage that was interrupted, if one was.
func (c *compilation) endStage(ctx context.Context, why string) {
	if c.open == nil {
		return
	}
	stage := c.open.ID
	c.persist(ctx, "record the end of a stage", func() error {
		return c.cfg.Store.AppendStage(ctx, stage, "", why)
	})
	c.persist(ctx, "record the end of a stage", func() error {
		return c.cfg.Store.FinishStage(ctx, stage, "", 1, c.cfg.Now())
	})
}
