package gateway

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/store"
)

// contents reads parts of contents as messages that can be sent. The latest are kept, because agents need the same ones
// at about the same time.
type contents struct {
	store *store.Store

	mu     sync.Mutex
	size   int
	parts  map[place]*list.Element // of *part
	recent *list.List              // the latest used first
	sizes  map[string]extent
}

type extent struct{ size, part int64 }

type place struct {
	hash   string
	number int
}

type part struct {
	at      place
	message []byte
	last    bool
}

const maxContents = 64 << 20 // bytes of kept messages

func newContents(s *store.Store) *contents {
	return &contents{store: s, parts: map[place]*list.Element{}, recent: list.New(), sizes: map[string]extent{}}
}

// part returns the message with a part of a content.
func (c *contents) part(ctx context.Context, hash string, number int) (message []byte, last bool, err error) {
	at := place{hash, number}
	c.mu.Lock()
	if e := c.parts[at]; e != nil {
		c.recent.MoveToFront(e)
		p := e.Value.(*part)
		c.mu.Unlock()
		return p.message, p.last, nil
	}
	x, known := c.sizes[hash]
	c.mu.Unlock()
	if !known {
		if x.size, x.part, err = c.store.ContentSize(ctx, hash); err != nil {
			return nil, false, errors.New("the server does not have it any more")
		}
	}
	data, err := c.store.ContentPart(ctx, hash, number)
	if err != nil {
		return nil, false, err
	}
	offset := int64(number) * x.part
	p := &part{at: at, last: offset+int64(len(data)) >= x.size}
	if data == nil {
		data = []byte{}
	}
	p.message, err = protocol.Encode(protocol.ContentMessage{
		Type: protocol.Content, Hash: hash, Size: x.size, Offset: offset, Data: data, Last: p.last,
	})
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sizes) > 10_000 {
		clear(c.sizes)
	}
	c.sizes[hash] = x
	if c.parts[at] == nil {
		c.parts[at] = c.recent.PushFront(p)
		c.size += len(p.message)
	}
	for c.size > maxContents {
		oldest := c.recent.Remove(c.recent.Back()).(*part)
		delete(c.parts, oldest.at)
		c.size -= len(oldest.message)
	}
	return p.message, p.last, nil
}

// variables remembers the variables of environments for a moment.
type variables struct {
	read func(ctx context.Context, env intent.EnvironmentID) (map[string]string, []string, error)

	mu    sync.Mutex
	known map[intent.EnvironmentID]remembered
}

type remembered struct {
	values map[string]string
	plain  []string
	until  time.Time
}

const rememberVariables = 2 * time.Second

func (v *variables) of(ctx context.Context, env intent.EnvironmentID) (map[string]string, []string, error) {
	if v.read == nil {
		return nil, nil, nil
	}
	now := time.Now()
	v.mu.Lock()
	r, ok := v.known[env]
	v.mu.Unlock()
	if ok && now.Before(r.until) {
		return r.values, r.plain, nil
	}
	values, plain, err := v.read(ctx, env)
	if err != nil {
		return nil, nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) > 1000 {
		v.known = map[intent.EnvironmentID]remembered{} // secrets do not stay longer than they are needed
	}
	v.known[env] = remembered{values, plain, now.Add(rememberVariables)}
	return values, plain, nil
}

func sortBySeq(commands []store.ClaimedCommand) {
	slices.SortFunc(commands, func(a, b store.ClaimedCommand) int { return int(a.Seq - b.Seq) })
}

func hasRole(replicas []intent.Replica, role string) bool {
	return slices.ContainsFunc(replicas, func(r intent.Replica) bool { return slices.Contains(r.Roles, role) })
}
