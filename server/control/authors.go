package control

import (
	"context"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

const (
	// maxBlames is how many blamed files are cached.
	maxBlames = 200
	// blamesAtOnce is how many files are looked up at a time, since each may keep a processor busy for seconds, and
	// maxBlaming how many may be looked up or wait for it.
	blamesAtOnce = 2
	maxBlaming   = 100
	// blameLimit bounds the time for one file.
	blameLimit = 2 * time.Minute
	// blameRest is how long pages do not ask again for a file that could not be looked up.
	blameRest = time.Minute
)

// authors looks up who wrote the lines of files at commits, and caches what it finds, which never changes.
//
//	ask ──▶ known? ──▶ looked up already? ──▶ a new lookup in the background ──▶ known
//	              the caller waits as long as it likes; the lookup goes on without it
//
// There is one lookup for each file and commit, however many ask. Its context is that of the server.
type authors struct {
	ctx   context.Context
	close context.CancelFunc
	turns chan struct{} // has a token for each lookup that runs
	wg    sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	known   map[blameKey]provenance.Blame
	running map[blameKey]*lookup
	failed  map[blameKey]time.Time
}

// A project does not see what another one has found out.
type blameKey struct {
	project           intent.ProjectID
	url, commit, path string
}

// lookup is one file that is being looked up.
type lookup struct {
	done  chan struct{}
	lines provenance.Blame // once it is done
	// left has the environments whose pages did not wait for the end.
	left map[intent.EnvironmentID]bool
}

func newAuthors() *authors {
	ctx, cancel := context.WithCancel(context.Background())
	return &authors{
		ctx: ctx, close: cancel, turns: make(chan struct{}, blamesAtOnce),
		known: map[blameKey]provenance.Blame{}, running: map[blameKey]*lookup{}, failed: map[blameKey]time.Time{},
	}
}

// question is what a caller wants to know.
type question struct {
	key   blameKey
	env   intent.EnvironmentID
	blame func(ctx context.Context) (provenance.Blame, error)
	found func(intent.EnvironmentID) // is called for each environment that did not wait, once the answer is there
	// patient callers want another try at a file that could not be looked up a moment ago.
	patient bool
}

// ask returns the authors of a file, and waits for them until ctx ends. It reports whether they are still being looked
// up then. Lines that nobody is known to have written are nil.
func (a *authors) ask(ctx context.Context, q question) (lines provenance.Blame, pending bool) {
	l, lines := a.lookup(q)
	if l == nil {
		return lines, false
	}
	select {
	case <-l.done:
		return l.lines, false
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[q.key] != l { // it has ended meanwhile
		return l.lines, false
	}
	l.left[q.env] = true
	return nil, true
}

// lookup returns the lines if they are known, or the lookup that finds them; neither if there is none.
func (a *authors) lookup(q question) (*lookup, provenance.Blame) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if lines, ok := a.known[q.key]; ok {
		return nil, lines
	}
	if l := a.running[q.key]; l != nil {
		return l, nil
	}
	if at, ok := a.failed[q.key]; ok && !q.patient && time.Since(at) < blameRest {
		return nil, nil
	}
	if a.closed || len(a.running) >= maxBlaming {
		return nil, nil
	}
	l := &lookup{done: make(chan struct{}), left: map[intent.EnvironmentID]bool{}}
	a.running[q.key] = l
	a.wg.Go(func() { a.run(q, l) })
	return l, nil
}

// run looks one file up when it is its turn.
func (a *authors) run(q question, l *lookup) {
	lines, err := a.inTurn(q)
	a.mu.Lock()
	delete(a.running, q.key)
	l.lines = lines
	close(l.done)
	if err == nil {
		keep(a.known, q.key, lines)
		delete(a.failed, q.key)
	} else {
		keep(a.failed, q.key, time.Now())
	}
	a.mu.Unlock()
	for env := range l.left { // nobody adds to it any more
		if a.ctx.Err() == nil {
			q.found(env)
		}
	}
}

// inTurn waits for a turn, and looks the file up. A commit without the file has no authors, which is an answer too.
func (a *authors) inTurn(q question) (provenance.Blame, error) {
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-a.ctx.Done():
		return nil, a.ctx.Err()
	}
	ctx, cancel := context.WithTimeout(a.ctx, blameLimit)
	defer cancel()
	lines, err := q.blame(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return lines, nil
}

// keep adds to a cache, which begins anew when it is full.
func keep[V any](to map[blameKey]V, k blameKey, v V) {
	if len(to) >= maxBlames {
		clear(to)
	}
	to[k] = v
}

// stop ends all lookups and waits for their ends.
func (a *authors) stop() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.close()
	a.wg.Wait()
}
