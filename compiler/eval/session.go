package eval

import (
	"context"
	"errors"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// session is what the runs of one compile share: that of the model, and the one
// that evaluates the conditions of typedefs.
type session struct {
	in         Input
	host       Host
	ctx        context.Context
	scopes     map[*program.Namespace]*scope // of the variables at module level
	unknowns   uint64                        // how many unknown values there were
	output     []string                      // what plug-ins printed, in the order of their calls
	conditions *run                          // evaluates the conditions of typedefs
}

func newSession(ctx context.Context, in Input) *session {
	return &session{in: in, host: in.Host, ctx: ctx, scopes: map[*program.Namespace]*scope{}}
}

// scopeOf returns the variables of a namespace.
func (se *session) scopeOf(ns *program.Namespace) *scope {
	s := se.scopes[ns]
	if s == nil {
		s = &scope{vars: make([]variable, len(ns.Names)), ns: ns}
		se.scopes[ns] = s
	}
	return s
}

// holds evaluates the condition of a typedef at once.
func (se *session) holds(p *program.Program, condition program.Root, v types.Value) (bool, error) {
	if se.conditions == nil {
		se.conditions = newRun(se, p)
		se.conditions.direct = true
	}
	r := se.conditions
	r.failed = r.failed || se.in.Static || p.Wrong()
	s := &scope{vars: []variable{{value: v, has: true}}}
	f, err := r.prepare(condition, s)
	if err != nil {
		return false, err
	}
	if err := r.drain(); err != nil {
		return false, err
	}
	result, err := r.eval(condition.Expr, s, f)
	if err != nil {
		return false, err
	}
	if r.failed && (result == nil || isUnknown(result)) {
		return true, nil // a plug-in would have to say it
	}
	if result == nil {
		return false, errors.New("the condition of a typedef can only use what is known at once")
	}
	if _, is := result.(types.Null); is {
		return true, nil // in the reference it is an object like others
	}
	return types.Truth(result), nil
}

// scope holds the variables of a block while it runs.
type scope struct {
	vars []variable
	up   *scope
	// self is the instance of an implementation, in the scope of its body.
	self *Instance
	by   *origin
	ns   *program.Namespace
}

// inner makes the scope of a block in s.
func (r *run) inner(s *scope, n int, ns *program.Namespace) *scope {
	return &scope{vars: make([]variable, n), up: s, by: s.by, ns: ns}
}

func isUnknown(v types.Value) bool {
	_, ok := v.(types.Unknown)
	return ok
}

// unknown is a value that is not known, and no other such value.
func (r *run) unknown() types.Value {
	r.unknowns++
	return types.Unknown{Number: r.unknowns}
}

var (
	null    = types.Null{}
	unknown = types.Unknown{}
)
