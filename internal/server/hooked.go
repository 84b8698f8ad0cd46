package server

import (
	"context"

	"ordain.dev/ordain/internal/control"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/webhooks"
)

// hooked fits control and the watcher to what webhooks ask for. A webhook
// makes the watcher look at the repository at once: it, too, may have seen
// the move, and so there is one compile and not two. What is lost when the server dies
// here is found at the next start, which compares the branch with the last compile.
type hooked struct {
	control *control.Control
	watcher *watcher
}

func (h hooked) Targets(ctx context.Context) ([]webhooks.Target, error) {
	known, err := h.control.HookTargets(ctx)
	if err != nil {
		return nil, err
	}
	targets := make([]webhooks.Target, 0, len(known))
	for _, t := range known {
		targets = append(targets, webhooks.Target(t))
	}
	return targets, nil
}

func (h hooked) Notify(ctx context.Context, env intent.EnvironmentID, trigger intent.Trigger) error {
	if _, watched := h.watcher.Status(env); !watched {
		return fault.New("server.Notify", fault.Conflict, "the environment is halted, or does not compile on the server")
	}
	h.watcher.Poke(env, trigger.Message)
	return nil
}
