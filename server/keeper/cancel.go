package keeper

import (
	"context"
	"errors"
	"fmt"

	"ordain.dev/ordain/internal/intent"
)

// A person can cancel the compile that runs, as long as nothing of it has been stored:
//
//	control ──row: cancelled by──▶ record ──request──▶ cancelCompile ──▶ the context of the run ends, and with it its
//	                                                         processes ──▶ finish records that it was cancelled
//
// The row comes first, so a run whose server was killed in between ends as soon as another one takes it over.

// errCancelled ends a compilation because a person cancelled it.
var errCancelled = errors.New("cancelled by a person")

// currentRun is the compile that runs.
type currentRun struct {
	id       intent.CompileID
	ending   *cancellation         // nil: none runs
	unwanted *intent.CancelRequest // the last request to cancel one
}

// begin makes a run one that can be cancelled.
func (k *keeper) begin(compile intent.Compile, ending *cancellation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current.id, k.current.ending = compile.ID, ending
	switch u := k.current.unwanted; {
	case compile.Cancelled != nil:
		ending.abandon(*compile.Cancelled)
	case u != nil && u.Compile == compile.ID:
		ending.abandon(intent.Actor{By: u.By, Reason: u.Reason})
	}
}

// end is called when no compile runs any more.
func (k *keeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = currentRun{}
}

// cancelCompile ends the compile that runs, if it is the one that is meant.
func (k *keeper) cancelCompile(what intent.CancelRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current.unwanted = &what
	if k.current.ending != nil && k.current.id == what.Compile {
		k.current.ending.abandon(intent.Actor{By: what.By, Reason: what.Reason})
	}
}

// abandon ends the compilation because a person wants it, unless it is too late.
func (c *cancellation) abandon(by intent.Actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.final && c.by == nil && c.person == nil {
		c.person = &by
		c.cancel()
	}
}

func (c *cancellation) cancelledBy() *intent.Actor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.person
}

// endCancelled records the end of the interrupted stage.
func (c *compilation) endCancelled(ctx context.Context, by intent.Actor) {
	why := "cancelled by " + by.By
	if by.Reason != "" {
		why += ": " + by.Reason
	}
	c.endStage(ctx, fmt.Sprintln(why))
}
