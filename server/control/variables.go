package control

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sync"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// VariablePrefix begins the names of secrets that handlers find in their
// process environment: variable:API_TOKEN is their API_TOKEN.
const VariablePrefix = "variable:"

var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

const variableNameMax = 128

// checkSecret refuses secrets that nothing would ever read.
func checkSecret(name, value string) error {
	const op = "control.SetSecret"
	variable, is := strings.CutPrefix(name, VariablePrefix)
	switch {
	case slices.Contains(sharedSecrets, name):
		return checkShared(name, value)
	case !is:
		return fault.New(op, fault.Invalid, "there is no secret called "+name).
			Hint("use " + strings.Join(sharedSecrets, ", ") + ", or " + VariablePrefix + "NAME for a variable of handlers")
	case len(variable) > variableNameMax, !variableName().MatchString(variable):
		return fault.New(op, fault.Invalid, "a variable cannot be called "+variable).
			Hint("use letters, digits and _, at most 128, and begin with no digit")
	case strings.HasPrefix(variable, "ORDAIN_"), strings.HasPrefix(variable, "PYTHON"):
		return fault.New(op, fault.Forbidden, "the variable "+variable+" is the server's own").
			Hint("names that begin with ORDAIN_ or PYTHON decide how the executor runs")
	case strings.ContainsRune(value, 0):
		return fault.New(op, fault.Invalid, "a variable cannot hold a zero byte")
	}
	return nil
}

// SecretNames lists which secrets an environment has. Their values are never given.
func (c *Control) SecretNames(ctx context.Context, id intent.EnvironmentID) ([]string, error) {
	sealed, err := c.cfg.Store.Secrets(ctx, id)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(sealed)), nil
}

// HandlerVariables gives the variables that handlers of an environment see, for
// its executors and nobody else.
func (c *Control) HandlerVariables(ctx context.Context, id intent.EnvironmentID) (map[string]string, error) {
	all, err := c.secrets(ctx, id)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, value := range all {
		if variable, is := strings.CutPrefix(name, VariablePrefix); is {
			out[variable] = value
		}
	}
	return out, nil
}
