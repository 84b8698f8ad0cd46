package tokens

import (
	"crypto/sha256"
	"sync"
	"time"

	"ordain.dev/ordain/server/access"
)

// cache remembers verified tokens for a moment, so that not every request reads the database. It holds digests, no
// tokens.
type cache struct {
	mu      sync.RWMutex
	version int // changes when a token is revoked
	entries map[[sha256.Size]byte]remembered
}

type remembered struct {
	principal  access.Principal
	generation int // of what people may do
	until      time.Time
}

const (
	cacheTime = 3 * time.Second
	cacheSize = 10_000
)

func newCache() *cache { return &cache{entries: map[[sha256.Size]byte]remembered{}} }

func (c *cache) get(digest [sha256.Size]byte, generation int, now time.Time) (access.Principal, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[digest]
	if !ok || e.generation != generation || !now.Before(e.until) {
		return access.Principal{}, false
	}
	return e.principal, true
}

// ticket is what put needs; it is void when a token is revoked in the meantime.
func (c *cache) ticket() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.version
}

func (c *cache) put(digest [sha256.Size]byte, p proof, generation, ticket int, now time.Time) {
	until := now.Add(cacheTime)
	if !p.expires.IsZero() && p.expires.Before(until) {
		until = p.expires
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ticket != c.version {
		return
	}
	if len(c.entries) >= cacheSize {
		clear(c.entries)
	}
	c.entries[digest] = remembered{p.principal, generation, until}
}

// forget makes every token be verified again.
func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	clear(c.entries)
}
