package eval

import "sort"

// mostErrors is how many different errors of a compile are reported.
const mostErrors = 20

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
