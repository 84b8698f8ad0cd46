package objects

import (
	"container/list"

	"github.com/go-git/go-git/v5/plumbing"
)

// cache keeps the objects that were unpacked last, because deltas refer to them. It is
// not safe for concurrent use.
type cache struct {
	byPlace map[place]*list.Element
	order   list.List // newest first, of cached
	used    int
}

// place is the place of an object in a pack.
type place struct {
	pack   *pack
	offset int64
}

type cached struct {
	place   place
	kind    plumbing.ObjectType
	content []byte
}

const (
	maxCache  = 16 << 20 // bytes in all
	maxCached = 1 << 20  // larger objects are not kept
)

func (c *cache) get(at place) (cached, bool) {
	e := c.byPlace[at]
	if e == nil {
		return cached{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(cached), true
}

func (c *cache) put(o cached) {
	if len(o.content) > maxCached || c.byPlace[o.place] != nil {
		return
	}
	if c.byPlace == nil {
		c.byPlace = map[place]*list.Element{}
	}
	c.byPlace[o.place] = c.order.PushFront(o)
	for c.used += len(o.content); c.used > maxCache; {
		e := c.order.Back()
		old := c.order.Remove(e).(cached)
		delete(c.byPlace, old.place)
		c.used -= len(old.content)
	}
}

func (c *cache) clear() { *c = cache{} }
