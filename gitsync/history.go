package gitsync

import (
	"container/heap"
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// mostNew is how many commits since looks at, at most.
const mostNew = 200_000

// since returns the commits in the history of tip that are not in the history of
// base, newest first, and whether tip descends from base. A history that was cut off
// by the depth of a fetch ends there. Wrong times of commits make it look at more
// commits than necessary, never at fewer.
func (m *mirror) since(
	ctx context.Context,
	tip, base plumbing.Hash,
) (fresh []*object.Commit, descends bool, err error) {
	w := &ancestry{m: m, seen: map[plumbing.Hash]*visit{}}
	if err := w.reach(tip, false); err != nil {
		return nil, false, err
	}
	if err := w.reach(base, true); err != nil {
		return nil, false, err
	}
	for w.open > 0 {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if len(w.seen) > mostNew {
			return nil, false, fmt.Errorf("there are more than %d commits between %s and %s", mostNew,
				short(base.String()), short(tip.String()))
		}
		v := heap.Pop(&w.queue).(*visit)
		v.queued = false
		if !v.old {
			w.open--
		}
		for _, parent := range v.commit.ParentHashes {
			if !v.old && parent == base {
				descends = true
			}
			if err := w.reach(parent, v.old); err != nil {
				return nil, false, err
			}
		}
	}
	for _, v := range w.order {
		if !v.old {
			fresh = append(fresh, v.commit)
		}
	}
	return fresh, descends || tip == base, nil
}

// ancestry walks the history of two commits, newest first. What is reached from the base is old.
type ancestry struct {
	m     *mirror
	seen  map[plumbing.Hash]*visit
	queue visits
	order []*visit
	open  int // how many in the queue are not old
}

type visit struct {
	commit *object.Commit
	old    bool
	queued bool
}

// reach adds a commit to the walk. A commit that turns out to be old is visited
// again, so that its parents become old too.
func (w *ancestry) reach(h plumbing.Hash, old bool) error {
	v := w.seen[h]
	switch {
	case v == nil:
		c, err := object.GetCommit(w.m.store, h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil // cut off by the depth of a fetch
		}
		if err != nil {
			return fmt.Errorf("%w: commit %s: %w", errCorrupt, short(h.String()), err)
		}
		v = &visit{commit: c, old: old}
		w.seen[h] = v
		w.order = append(w.order, v)
	case v.old || !old:
		return nil
	default:
		if v.queued {
			w.open--
		}
		v.old = true
	}
	if !v.queued {
		v.queued = true
		heap.Push(&w.queue, v)
	}
	if !v.old {
		w.open++
	}
	return nil
}

// visits is a heap by time, newest first. Commits of the same time are ordered by hash, so that the order is
// always the same.
type visits []*visit

func (q visits) Len() int      { return len(q) }
func (q visits) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q visits) Less(i, j int) bool {
	a, b := q[i].commit, q[j].commit
	if !a.Committer.When.Equal(b.Committer.When) {
		return a.Committer.When.After(b.Committer.When)
	}
	return a.Hash.String() < b.Hash.String()
}

// Push implements heap.Interface.
func (q *visits) Push(x any) { *q = append(*q, x.(*visit)) }

// Pop implements heap.Interface.
func (q *visits) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
