package eval

import (
	"sort"

	"ordain.dev/ordain/compiler/types"
)

// After the first error the compile has failed; what follows only looks for
// more to tell in the same run. It is careful not to tell of consequences:
//
//   - a unit that failed gives no value, so that whatever waits for it never runs;
//   - no list is frozen any more: what is missing in it would be told as an error;
//   - no plug-in is called, since plug-ins have effects;
//   - what an instance lacks in the end is not asked, nor what never ran.
//
// The amount is bounded by counts, not by time: the same input gives the same
// errors.
const (
	mostErrors  = 20      // different errors of a compile
	mostSalvage = 20_000  // units that run after the first error
	mostText    = 1 << 20 // bytes of a text that is made then
	mostParts   = 1 << 16 // parts of a list or dict, and theirs
)

// overgrown refuses what is too large to go on with after the first error: a text
// that holds one twice that was made like it is soon longer than any memory.
func (r *run) overgrown(size int) *Error {
	if r.failed && size > mostText {
		return excused()
	}
	return nil
}

// overgrownParts is overgrown for a list or dict.
func (r *run) overgrownParts(v types.Value) *Error {
	if r.failed && partsUpTo(v, mostParts) >= mostParts {
		return excused()
	}
	return nil
}

// partsUpTo counts the values in a value, at most so many.
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

// rest is what a failed unit had still to do beside what failed.
type rest func(r *run) *Error

// leave notes what could go on without what failed.
func (r *run) leave(more rest) {
	if len(r.rests) < mostSalvage {
		r.rests = append(r.rests, more)
	}
}

// salvage looks for errors that do not depend on the first one.
func (r *run) salvage(first *Error) []*Error {
	if first.final || r.ctx.Err() != nil {
		return nil
	}
	found := newCollected(first)
	r.failed = true
	warnings, output := len(r.warnings), len(r.output)
	defer func() { r.warnings, r.output = r.warnings[:warnings], r.output[:output] }()
	guarded(func() { r.salvageAll(found) })
	return found.further()
}

func (r *run) salvageAll(found *collected) {
	budget := mostSalvage
	for !found.full() && budget > 0 {
		switch {
		case r.ready.len() > 0:
			err := r.drainSome(&budget)
			if err != nil && err.final {
				return
			}
			found.add(err)
		case len(r.rests) > 0:
			next := r.rests[0]
			r.rests = r.rests[1:]
			budget--
			found.add(next(r))
		default:
			return
		}
	}
}

// guarded runs what may fall over something that an error left unfinished:
// then there are fewer errors to tell, and that is all.
func guarded(do func()) {
	defer func() { _ = recover() }()
	do()
}

// collected are errors without their repetitions.
type collected struct {
	list []*Error
	seen map[topic]*Error
	// definition: one name that is missing is one error, wherever it is used,
	// and there are no instances yet to repeat one for.
	definition bool
}

// topic is what makes an error another one: the same statement that fails in
// the same way for another instance is a repetition.
type topic struct {
	kind  string
	at    place
	about string
}

func topicOf(e *Error) topic {
	t := topic{kind: e.Kind, about: e.topic}
	at := e.at
	if at == nil {
		at = e.about
	}
	if at != nil {
		t.at = *at
		t.at.Coarse = false
	} else {
		t.about += e.Message
	}
	return t
}

func newCollected(first *Error) *collected {
	c := &collected{seen: map[topic]*Error{}}
	c.add(first)
	return c
}

// add keeps an error, unless it is a repetition or a mere consequence.
func (c *collected) add(e *Error) {
	if e == nil || e.excused || e.final && len(c.list) > 0 {
		return
	}
	t := topicOf(e)
	if c.definition && (e.Kind == "TypeNotFoundException" || e.Kind == "MissingImportException") {
		if t.at = (place{}); e.topic == "" {
			t.about = e.Message
		}
	}
	if have := c.seen[t]; have != nil {
		switch {
		case have == e:
		case !c.definition:
			have.repeats++
		case e.at != nil && *e.at != *have.at:
			have.also = append(have.also, e.at)
		}
		return
	}
	e.repeats = 0
	c.seen[t] = e
	c.list = append(c.list, e)
}

func (c *collected) full() bool { return len(c.list) >= mostErrors }

// further are the errors after the first, by place.
func (c *collected) further() []*Error {
	if len(c.list) < 2 {
		return nil
	}
	more := c.list[1:]
	sort.SliceStable(more, func(i, j int) bool {
		a, b := more[i], more[j]
		if x, y := a.fileOf(), b.fileOf(); x != y {
			return x < y
		}
		return a.lineOf() < b.lineOf()
	})
	return more
}
