package keeper

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

// errSuperseded ends a compilation for which a newer commit waits.
var errSuperseded = errors.New("cancelled: a newer commit is there")

// mostCancelled bounds how many compiles of an environment are cancelled in a row:
// where commits come faster than one compiles, something has to be deployed all the same.
const mostCancelled = 3

// cancellation lets another goroutine end a compilation, until it is too late.
type cancellation struct {
	cancel context.CancelFunc
	mu     sync.Mutex
	final  bool            // it is too late
	by     *intent.Compile // the request of the newer commit
}

// supersede ends the compilation, unless it is too late.
func (c *cancellation) supersede(by intent.Compile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.final && c.by == nil {
		c.by = &by
		c.cancel()
	}
}

// finalize makes the compilation go on to its end, or returns errSuperseded when
// it was ended before.
func (c *cancellation) finalize() error {
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

// watchNewer ends a compilation when a newer commit waits, until ctx ends.
func (k *keeper) watchNewer(ctx context.Context, run intent.CompileID, ending *cancellation) {
	moves := k.cfg.Bus.Subscribe(func(e bus.Event) bool {
		return e.Environment == k.env && (e.Topic == bus.Compile || e.Topic == bus.Lagged)
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

// newer finds the request for which a compile that runs is cancelled: one that
// waits because another commit came, where the one that runs, and all requests that
// it answers, were asked for because commits came. A compile that has no commit
// yet takes the newest anyway.
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
func (c *compilation) endSuperseded(ctx context.Context, by intent.Compile) {
	if c.open == nil {
		return
	}
	stage := c.open.ID
	why := errSuperseded.Error()
	if m := by.Trigger.Message; m != "" {
		why += ": " + m
	}
	c.persist(ctx, "record the end of a stage", func() error {
		return c.cfg.Store.AppendStage(ctx, stage, "", fmt.Sprintf("%s\nIts compile is %s\n", why, by.ID))
	})
	c.persist(ctx, "record the end of a stage", func() error {
		return c.cfg.Store.FinishStage(ctx, stage, "", 1, c.cfg.Now())
	})
}
