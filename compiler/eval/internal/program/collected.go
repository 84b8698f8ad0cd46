package program

import "sort"

// mostErrors is how many different errors of a compile are reported.
const mostErrors = 20

// Collected collects errors and leaves repetitions out.
type Collected struct {
	list []*Error
	seen map[topic]*Error
	// definition is set for the definition phase: a missing name is one error
	// wherever it is used, and no instance can repeat an error.
	definition bool
}

// topic is what distinguishes errors: the same statement that fails in the same way
// for another instance is a repetition.
type topic struct {
	kind  string
	at    Place
	about string
}

func topicOf(e *Error) topic {
	t := topic{kind: e.Kind, about: e.Topic}
	at := e.Place
	if at == nil {
		at = e.About
	}
	if at != nil {
		t.at = *at
		t.at.Coarse = false
	} else {
		t.about += e.Message
	}
	return t
}

func NewCollected(first *Error) *Collected {
	c := &Collected{seen: map[topic]*Error{}}
	c.Add(first)
	return c
}

// Add keeps an error unless it is a repetition or only follows from another one.
func (c *Collected) Add(e *Error) {
	if e == nil || e.excused || e.Final && len(c.list) > 0 {
		return
	}
	t := topicOf(e)
	if c.definition && (e.Kind == "TypeNotFoundException" || e.Kind == "MissingImportException") {
		if t.at = (Place{}); e.Topic == "" {
			t.about = e.Message
		}
	}
	if have := c.seen[t]; have != nil {
		switch {
		case have == e:
		case !c.definition:
			have.repeats++
		case e.Place != nil && *e.Place != *have.Place:
			have.also = append(have.also, e.Place)
		}
		return
	}
	e.repeats = 0
	c.seen[t] = e
	c.list = append(c.list, e)
}

func (c *Collected) Full() bool { return len(c.list) >= mostErrors }

// Further returns the errors after the first, by place.
func (c *Collected) Further() []*Error {
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
