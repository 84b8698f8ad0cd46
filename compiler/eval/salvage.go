package eval

import (
	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// After the first error the compile has failed. What follows looks for more
// errors in the same run, and avoids those that only follow from the first:
//
//   - a unit that failed gives no value, so that the units that wait for it never run;
//   - no list is frozen any more: what it lacks would be reported as an error;
//   - no plug-in is called, since plug-ins have effects;
//   - it does not ask what instances lack in the end, nor what never ran.
//
// The effort is bounded by counts, not by time, so that the same input gives the
// same errors.
const (
	mostSalvage = 20_000  // units that run after the first error
	mostText    = 1 << 20 // bytes of a text that is made after it
	mostParts   = 1 << 16 // values in a list or dict that is made after it, nested ones included
)

// overgrown is an error for a text that is too large to go on with after the first
// error. A text that has another one in it twice, which was made in the same way,
// would soon fill the memory.
func (r *run) overgrown(size int) *Error {
	if r.failed && size > mostText {
		return program.Excused()
	}
	return nil
}

// overgrownParts is overgrown for a list or dict.
func (r *run) overgrownParts(v types.Value) *Error {
	if r.failed && partsUpTo(v, mostParts) >= mostParts {
		return program.Excused()
	}
	return nil
}

// partsUpTo counts the values inside a value, up to a limit.
func partsUpTo(v types.Value, most int) int {
	n := 1
	switch v := v.(type) {
	case *types.List:
		for _, item := range v.Items {
			if n >= most {
				break
			}
			n += partsUpTo(item, most-n)
		}
	case *types.Dict:
		for _, key := range v.Keys {
			if n >= most {
				break
			}
			n += partsUpTo(v.Values[key], most-n)
		}
	}
	return n
}

// postpone keeps what a failed unit had still to do, for the search for more
// errors.
func (r *run) postpone(work func(r *run) *Error) {
	if len(r.postponed) < mostSalvage {
		r.postponed = append(r.postponed, work)
	}
}

// salvage looks for errors that do not depend on the first one.
func (r *run) salvage(first *Error) []*Error {
	if first.Final || r.ctx.Err() != nil {
		return nil
	}
	found := program.NewCollected(first)
	r.failed = true
	warnings, output := len(r.warnings), len(r.output)
	defer func() { r.warnings, r.output = r.warnings[:warnings], r.output[:output] }()
	guarded(func() { r.salvageAll(found) })
	return found.Further()
}

func (r *run) salvageAll(found *program.Collected) {
	budget := mostSalvage
	for !found.Full() && budget > 0 {
		switch {
		case r.ready.len() > 0:
			err := r.drainSome(&budget)
			if err != nil && err.Final {
				return
			}
			found.Add(err)
		case len(r.postponed) > 0:
			next := r.postponed[0]
			r.postponed = r.postponed[1:]
			budget--
			found.Add(next(r))
		default:
			return
		}
	}
}
