package gitsync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxFetches bounds how often a remote is asked in one fetch, to find what of it is broken.
const maxFetches = 100

// bringer fetches objects of which some may be damaged in the repository. All of them
// are asked for at once; when that fails, each half is asked for, and so on, so that
// one damaged branch does not keep the others from being fetched.
type bringer struct {
	s     *Syncer
	place place
	into  *mirror
	// broken are the objects that could not be fetched, with the reason.
	broken map[plumbing.Hash]error
	left   int // how often the remote may still be asked
}

// bring fetches what is wanted, and what it needs. It fails when the repository cannot
// be asked, and when nothing of it can be fetched.
func (b *bringer) bring(ctx context.Context, from remote, want []plumbing.Hash) (said string, err error) {
	if said, err = b.fetch(ctx, from, want); err != nil {
		return said, err
	}
	if len(b.broken) == len(want) && len(b.into.refs.refs) == 0 {
		return said, b.broken[want[0]]
	}
	return said, nil
}

func (b *bringer) fetch(ctx context.Context, from remote, want []plumbing.Hash) (said string, err error) {
	b.left--
	said, err = from.fetch(ctx, b.into, want)
	switch {
	case err == nil || ctx.Err() != nil || !fromRepository(err) || b.into.failed(err):
		return said, err
	case len(want) == 1 || b.left < 2:
		for _, h := range want {
			b.broken[h] = err
		}
		return said, nil
	}
	half := len(want) / 2
	for _, some := range [][]plumbing.Hash{want[:half], want[half:]} {
		more, err := b.fetchAgain(ctx, from, some)
		said += more
		if err != nil {
			return said, err
		}
	}
	return said, nil
}

// fetchAgain fetches over a new connection, where there are connections: a server
// answers one request on each.
func (b *bringer) fetchAgain(ctx context.Context, from remote, want []plumbing.Hash) (string, error) {
	if b.place.local != "" {
		return b.fetch(ctx, from, want)
	}
	again, err := b.s.dial(b.place)
	if err != nil {
		return "", err
	}
	defer again.close()
	if _, err := b.s.ask(ctx, again); err != nil {
		return "", err
	}
	return b.fetch(ctx, again, want)
}

// failed reports whether an error is about a file of the mirror, and not about one of
// a local repository.
func (m *mirror) failed(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &link) || errors.As(err, &path) && strings.HasPrefix(path.Path, m.dir)
}
