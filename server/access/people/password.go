package people

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/unicode/norm"

	"ordain.dev/ordain/internal/fault"
)

// The length of passwords in characters, and the size in bytes of what is looked at at all.
const (
	minPassword = 12
	maxPassword = 128
	maxTyped    = 1024
)

// hashing is what a hash costs: the first recommendation of OWASP's cheat sheet for argon2id.
var hashing = &argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// unknownHash returns what the password of an unknown user is compared with, so that it takes as long as any other.
var unknownHash = sync.OnceValue(func() string {
	hash, err := argon2id.CreateHash("", hashing)
	if err != nil {
		panic("people: there is no randomness: " + err.Error())
	}
	return hash
})

// normalize returns a password as it is hashed: the same whatever keyboard it was typed on.
func normalize(password string) (string, bool) {
	if len(password) > maxTyped {
		return "", false
	}
	return norm.NFKC.String(password), true
}

// checkNew returns a new password as it is hashed, or what is wrong with it.
func checkNew(name, password string) (string, error) {
	secret, ok := normalize(password)
	n := utf8.RuneCountInString(secret)
	var wrong string
	switch {
	case !ok || n > maxPassword:
		wrong = fmt.Sprintf("the password should be at most %d characters long", maxPassword)
	case !utf8.ValidString(password) || strings.ContainsRune(password, 0):
		wrong = "the password should be text"
	case n < minPassword:
		wrong = fmt.Sprintf("the password should be at least %d characters long", minPassword)
	case strings.EqualFold(secret, name):
		wrong = "the password should not be the user name"
	default:
		return secret, nil
	}
	return "", fault.New("people.password", fault.Invalid, wrong)
}

// hasher computes hashes, a few at a time: each takes 19 MiB of memory for a while.
type hasher struct {
	places chan struct{} // in the queue, including those that are served
	slots  chan struct{}
}

// queued is how many may wait for a hash or compute one.
const queued = 100

func newHasher() *hasher {
	return &hasher{
		places: make(chan struct{}, queued), slots: make(chan struct{}, max(1, min(4, runtime.GOMAXPROCS(0)/2))),
	}
}

// do runs f when it is its turn.
func (h *hasher) do(ctx context.Context, f func() error) error {
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		return fault.New("people.hash", fault.Exhausted, "too many people log in at the same time").
			Hint("try again in a few seconds")
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return fault.Wrap("people.hash", fault.Unavailable, ctx.Err()).Say("the call ended before it was its turn")
	}
	return f()
}

// hash returns the hash of a normalized password.
func (h *hasher) hash(ctx context.Context, secret string) (hash string, err error) {
	err = h.do(ctx, func() (err error) {
		hash, err = argon2id.CreateHash(secret, hashing)
		return err
	})
	return hash, err
}

// match reports whether a password has a hash, and whether the hash should be computed anew because hashes cost more
// by now. An empty hash takes as long as any other, and matches nothing.
func (h *hasher) match(ctx context.Context, password, hash string) (ok, old bool, err error) {
	secret, fits := normalize(password)
	if hash == "" || !fits {
		hash, fits = unknownHash(), false
	}
	err = h.do(ctx, func() error {
		match, cost, err := argon2id.CheckHash(secret, hash)
		if err != nil {
			return nil // a hash that cannot be read matches nothing
		}
		ok = match && fits
		old = cost.Memory != hashing.Memory || cost.Iterations != hashing.Iterations
		return nil
	})
	return ok, old, err
}
