package executor

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/worker"
)

// Variable is one that handlers see in their environment.
type Variable struct {
	Name  string
	Value string
	// Secret: the value is masked in logs, changes and facts.
	Secret bool
}

// leastSecret is the length from which the value of a secret variable is
// masked: a "1" or "true" is in every log.
const leastSecret = 6

// environ is what a process gets as its environment.
type environ struct {
	pairs   []string
	secrets []string          // names of those to be masked
	masks   *strings.Replacer // for what the process prints past its tasks
}

// environ asks for the variables of handlers.
func (m *Manager) environ(ctx context.Context) (environ, error) {
	out := environ{pairs: worker.MinimalEnv(), masks: strings.NewReplacer()}
	if m.c.Variables == nil {
		return out, nil
	}
	variables, err := m.c.Variables(ctx)
	if err != nil {
		return out, fault.Wrap("executor.start", fault.KindOf(err), err).
			Say("the variables for handlers cannot be read")
	}
	var values []string
	for _, v := range variables {
		out.pairs = append(out.pairs, v.Name+"="+v.Value) // of two with one name the last counts
		if v.Secret && len(v.Value) >= leastSecret {
			out.secrets = append(out.secrets, v.Name)
			values = append(values, v.Value)
		}
	}
	slices.SortFunc(
		values,
		func(a, b string) int { return cmp.Compare(len(b), len(a)) },
	) // a short one may be part of a long one
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, "***")
		for line := range strings.Lines(v) {
			if line = strings.TrimRight(line, "\r\n"); line != v && len(line) >= leastSecret {
				pairs = append(pairs, line, "***") // output comes by lines
			}
		}
	}
	out.masks = strings.NewReplacer(pairs...)
	return out, nil
}

// Renew replaces all processes before their next task, for variables changed.
func (m *Manager) Renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
}
