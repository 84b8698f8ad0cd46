package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// loadRow has the columns of ServerLoad.
type loadRow struct {
	Environments, Halted                 int
	CompilesWaiting, CompilesRunning     int
	CompileWaitsSince                    *time.Time
	ResourcesWaiting, ResourcesDeploying int
	MessagesWaiting                      int
	MessageWaitsSince                    *time.Time
	Unreachable, RemoteAgents            int
}

type deadMessagesRow struct {
	Environment uuid.UUID
	Name        string
	N           int
}

// mostDeadMessages is how many environments with dead messages ServerLoad names.
const mostDeadMessages = 20

// ServerLoad says what waits and what is done at the moment.
func (s *Store) ServerLoad(ctx context.Context) (out intent.ServerLoad, err error) {
	err = s.read(ctx, "store.ServerLoad", func(q querier) error {
		r, err := one[loadRow](ctx, q, statements.ServerLoad)
		if err != nil {
			return err
		}
		out = intent.ServerLoad{
			Environments: r.Environments, Halted: r.Halted,
			CompilesWaiting: r.CompilesWaiting, CompilesRunning: r.CompilesRunning,
			CompileWaitsSince: utc(r.CompileWaitsSince),
			ResourcesWaiting:  r.ResourcesWaiting, ResourcesDeploying: r.ResourcesDeploying,
			MessagesWaiting: r.MessagesWaiting, MessageWaitsSince: utc(r.MessageWaitsSince),
			Unreachable: r.Unreachable, RemoteAgents: r.RemoteAgents,
		}
		dead, err := many[deadMessagesRow](ctx, q, statements.ServerDeadMessages, mostDeadMessages)
		for _, d := range dead {
			out.DeadMessages = append(out.DeadMessages, intent.DeadMessages(d))
		}
		return err
	})
	return out, err
}
