package control

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/keeper"
)

// CompileRequest is a client's request to compile.
type CompileRequest = keeper.CompileRequest

// RequestCompile records a request to compile and returns at once. If the
// environment is not compiled on the server, it records nothing and returns a
// warning.
func (c *Control) RequestCompile(
	ctx context.Context,
	env intent.EnvironmentID,
	r CompileRequest,
) (id intent.CompileID, warning string, err error) {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return uuid.Nil, "", err
	}
	return c.cfg.Keepers.Enqueue(ctx, e, r)
}

// IsCompiling reports whether a compile of the environment runs or waits in the queue.
func (c *Control) IsCompiling(ctx context.Context, env intent.EnvironmentID) (bool, error) {
	open, err := c.cfg.Store.OpenCompiles(ctx, env)
	if err != nil || len(open) == 0 {
		return false, err
	}
	e, err := c.cfg.Store.Environment(ctx, env)
	return err == nil && !e.Halted, err
}
