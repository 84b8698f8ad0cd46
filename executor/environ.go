package executor

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/worker"
)

// Variable is an environment variable of handlers.
type Variable struct {
	Name   string
	Value  string
	Secret bool // the value is masked in logs, changes and facts
}

// leastSecret is the length of the shortest secret that is masked. Masking a "1"
// or "true" would make every log unreadable.
const leastSecret = 6

// environ is the environment of a process.
type environ struct {
	pairs   []string
	secrets []string          // names of the variables whose values the process masks
	masks   *strings.Replacer // masks the same values in what the process prints outside of tasks
}

// environ reads the variables of handlers. Of several with the same name, the last one counts.
func (m *Manager) environ(ctx context.Context, private *isolation.Private) (environ, error) {
	out := environ{pairs: worker.MinimalEnv(), masks: strings.NewReplacer()}
	if private != nil {
		out.pairs = append(out.pairs, private.Environ...)
	}
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
		out.pairs = append(out.pairs, v.Name+"="+v.Value)
		if v.Secret && len(v.Value) >= leastSecret {
			out.secrets = append(out.secrets, v.Name)
			values = append(values, v.Value)
		}
	}
	// Longest first, because a short secret may be part of a long one.
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, "***")
		for line := range strings.Lines(v) {
			if line = strings.TrimRight(line, "\r\n"); line != v && len(line) >= leastSecret {
				pairs = append(pairs, line, "***") // output arrives line by line
			}
		}
	}
	out.masks = strings.NewReplacer(pairs...)
	return out, nil
}
