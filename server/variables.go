package server

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/source"
)

// variables are the environment variables of the handlers of one environment: those
// that the option agent.executor-environment passes on from the server, and the
// environment's own, which are secret.
type variables struct {
	sources *source.Opener
	env     intent.EnvironmentID
	passed  []string // names of the server's own variables that are passed on

	mu   sync.Mutex
	last map[string]string // the environment's own, as the last process got them
}

// all returns the variables for a process that starts.
func (v *variables) all(ctx context.Context) ([]executor.Variable, error) {
	own, err := v.sources.Variables(ctx, v.env)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.last = own
	v.mu.Unlock()
	var out []executor.Variable
	for _, name := range v.passed {
		if value, ok := os.LookupEnv(name); ok {
			out = append(out, executor.Variable{Name: name, Value: value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		out = append(out, executor.Variable{Name: name, Value: own[name], Secret: true})
	}
	return out, nil
}

// changed reports whether the variables differ from those that processes were
// started with. Variables that cannot be read count as changed: the next start
// says why.
func (v *variables) changed() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	own, err := v.sources.Variables(ctx, v.env)
	v.mu.Lock()
	defer v.mu.Unlock()
	return err != nil || v.last != nil && !maps.Equal(own, v.last)
}
