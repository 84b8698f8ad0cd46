package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

const (
	// mostPosted is how many calls are posted at once at most.
	mostPosted = 1024
	// furthestSearch is how many units of the queue are searched for calls to post.
	// Each search in vain halves that, down to nearestSearch.
	furthestSearch, nearestSearch = 16384, 512
)

// isPlain reports whether a value has no part of the model in it.
func isPlain(v types.Value) bool {
	switch v := v.(type) {
	case types.Null, types.Bool, types.Int, types.BigInt, types.Float, types.Complex, types.Str:
		return true
	case *types.List:
		for _, item := range v.Items {
			if !isPlain(item) {
				return false
			}
		}
		return true
	case *types.Dict:
		for _, item := range v.Values {
			if !isPlain(item) {
				return false
			}
		}
		return true
	}
	return false
}

func (u *callUnit) isPlain() bool {
	if u.repeated || u.n.Plugin == nil || !u.n.Plugin.Batchable {
		return false
	}
	for _, v := range u.bound.Args {
		if !isPlain(v) {
			return false
		}
	}
	for _, named := range u.bound.Named {
		v := named.Value
		if !isPlain(v) {
			return false
		}
	}
	return true
}

// makesInstance reports whether evaluating an expression makes an instance, which
// must happen once, and in its turn.
func makesInstance(x program.Expr) bool {
	return makesAny(x, func(*program.Construct) bool { return true })
}

// makesAny reports whether evaluating an expression makes an instance of some kind.
// An expression with a variable in the frame has made its instance before.
func makesAny(x program.Expr, some func(n *program.Construct) bool) bool {
	inside := func(x program.Expr) bool { return makesAny(x, some) }
	switch x := x.(type) {
	case *program.Construct:
		return some(x)
	case *program.List:
		return slices.ContainsFunc(x.Parts, inside)
	case *program.Dict:
		return slices.ContainsFunc(x.Entries, func(e program.DictEntry) bool { return inside(e.Value) })
	case *program.MapLookup:
		return inside(x.X) || inside(x.Key)
	case *program.Binary:
		return inside(x.Left) || inside(x.Right)
	case *program.Not:
		return inside(x.X)
	}
	return false
}

// mayAskPlugin reports whether a unit may call a plug-in that decides what has a
// type. Such a call comes before the calls behind it.
func (r *run) mayAskPlugin(w waiter) bool {
	switch u := w.(type) {
	case *setUnit:
		attr := u.target.attr
		return attr != nil && program.AsksPlugin(attr.Type) || makesAny(u.x, constructMayAsk)
	case *knownUnit:
		attributes := u.of.entity.Attributes
		asks := func(a program.Argument) bool { return program.AsksPlugin(attributes[a.Slot].Type) }
		return slices.ContainsFunc(u.defaults, asks) || slices.ContainsFunc(u.arguments, asks)
	case *assignUnit:
		return makesAny(u.n.Value.Expr, constructMayAsk)
	case *evalUnit:
		return makesAny(u.x, constructMayAsk)
	}
	return false
}

// constructMayAsk reports whether that is so for the arguments that a constructor
// sets itself.
func constructMayAsk(n *program.Construct) bool {
	attributes := n.Info.Entity.Attributes
	return len(n.Splats) > 0 ||
		slices.ContainsFunc(n.Direct,
			func(a program.Argument) bool { return program.AsksPlugin(attributes[a.Slot].Type) })
}

// makesInstance reports whether evaluating the arguments makes an instance.
func (u *callUnit) makesInstance() bool {
	return program.CallParts{Call: u.n}.Each(func(x program.Expr) *Error {
		if makesInstance(x) {
			return errMade
		}
		return nil
	}) != nil
}

// errMade ends the search for a constructor.
var errMade = &Error{}

// outcome runs the plug-in of a unit whose turn it is.
func (r *run) outcome(u *callUnit) Outcome {
	if host, ok := r.host.(BatchHost); ok {
		if !u.posted && u.isPlain() {
			r.post(host, u)
		}
		if u.posted {
			return host.Next()
		}
	}
	return r.host.Call(u.bound, &heap{r, u.scope, u.n})
}

// post gives the host a call together with those that follow in the queue.
func (r *run) post(host BatchHost, first *callUnit) {
	units := []*callUnit{first}
	for _, w := range r.ready.next(furthestSearch >> r.idlePosts) {
		u, ok := w.(*callUnit)
		if !ok || u.n.Plugin == nil || u.pending > 0 {
			if r.prog.AsksPlugins && r.mayAskPlugin(w) {
				break
			}
			continue
		}
		if u.posted || u.repeated || !u.n.Plugin.Batchable || u.makesInstance() {
			break
		}
		args, named, err := u.arguments(r)
		if err != nil {
			break
		}
		call, err := u.bind(args, named)
		if err != nil || call && !u.isPlain() {
			break
		}
		if !call {
			continue
		}
		if units = append(units, u); len(units) == mostPosted {
			break
		}
	}
	if len(units) == 1 {
		if furthestSearch>>r.idlePosts > nearestSearch {
			r.idlePosts++
		}
		return
	}
	r.idlePosts = 0
	calls, heaps := make([]PluginCall, len(units)), make([]Heap, len(units))
	for n, u := range units {
		calls[n], heaps[n] = u.bound, &heap{r, u.scope, u.n}
	}
	if host.Post(calls, heaps) {
		for _, u := range units {
			u.posted = true
		}
	}
}
