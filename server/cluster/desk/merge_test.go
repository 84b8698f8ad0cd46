package desk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// record is a database for a merger: it keeps who was recorded with whom, and waits in the first transaction.
type record struct {
	entered, leave chan struct{}
	bad            uuid.UUID // a task whose end it cannot record

	mu    sync.Mutex
	kept  [][]uuid.UUID
	tried int
}

func newRecord() *record { return &record{entered: make(chan struct{}), leave: make(chan struct{})} }

var errBad = errors.New("that cannot be recorded")

func (r *record) record(ctx context.Context, ends []intent.ClusterTaskEnd) error {
	r.mu.Lock()
	r.tried++
	first := r.tried == 1
	r.mu.Unlock()
	if first {
		close(r.entered)
		<-r.leave
	}
	var ids []uuid.UUID
	for _, e := range ends {
		if e.ID == r.bad {
			return errBad
		}
		ids = append(ids, e.ID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, ids)
	return ctx.Err()
}

// send reports ends of tasks, and returns where the answer will be. The report has been queued when it returns.
func send(t *testing.T, m *merger, project uuid.UUID, tasks ...uuid.UUID) <-chan error {
	t.Helper()
	waiting := func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.queues[project])
	}
	before := waiting()
	answer := make(chan error, 1)
	var ends []intent.ClusterTaskEnd
	for _, id := range tasks {
		ends = append(ends, intent.ClusterTaskEnd{ID: id})
	}
	go func() { answer <- m.add(t.Context(), project, ends) }()
	for deadline := time.Now().Add(10 * time.Second); waiting() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the report is not queued")
		}
	}
	return answer
}

// begin starts a merger whose first transaction is under way, and returns the answer of that.
func begin(t *testing.T, r *record, project uuid.UUID) (*merger, <-chan error) {
	t.Helper()
	m := &merger{record: r.record}
	first := make(chan error, 1)
	go func() { first <- m.add(t.Context(), project, []intent.ClusterTaskEnd{{ID: uuid.New()}}) }()
	<-r.entered
	return m, first
}

func answered(t *testing.T, answers ...<-chan error) {
	t.Helper()
	for _, a := range answers {
		if err := <-a; err != nil {
			t.Error(err)
		}
	}
}

// Reports that arrive while a transaction is under way share the next one. Those of another project do not wait.
func TestReportsShareTransactions(t *testing.T) {
	r, project := newRecord(), uuid.New()
	m, first := begin(t, r, project)
	a, b := uuid.New(), uuid.New()
	one, two := send(t, m, project, a), send(t, m, project, b)
	if err := m.add(t.Context(), uuid.New(), []intent.ClusterTaskEnd{{ID: uuid.New()}}); err != nil {
		t.Error(err)
	}
	close(r.leave)
	answered(t, first, one, two)
	if len(r.kept) != 3 || !slices.Equal(r.kept[2], []uuid.UUID{a, b}) {
		t.Errorf("recorded as %v, want the two that waited together", r.kept)
	}
}

// A report that cannot be recorded is refused alone.
func TestABadReportHarmsNoOther(t *testing.T) {
	r, project := newRecord(), uuid.New()
	m, first := begin(t, r, project)
	r.bad = uuid.New()
	good, bad := send(t, m, project, uuid.New()), send(t, m, project, r.bad)
	close(r.leave)
	answered(t, first, good)
	if err := <-bad; !errors.Is(err, errBad) {
		t.Errorf("the bad report is answered with %v", err)
	}
}

// A task that is reported twice is in two transactions: in one, the older fence could hide what the newer one has.
func TestATaskIsReportedTwice(t *testing.T) {
	r, project := newRecord(), uuid.New()
	m, first := begin(t, r, project)
	twice := uuid.New()
	one, two := send(t, m, project, twice), send(t, m, project, twice)
	close(r.leave)
	answered(t, first, one, two)
	if len(r.kept) != 3 || len(r.kept[1]) != 1 || len(r.kept[2]) != 1 {
		t.Errorf("recorded as %v, want one after the other", r.kept)
	}
}

// A caller that gives up gets an answer at once; the others get theirs.
func TestACallerGivesUp(t *testing.T) {
	r, project := newRecord(), uuid.New()
	m, first := begin(t, r, project)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.add(ctx, project, []intent.ClusterTaskEnd{{ID: uuid.New()}}); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that gave up is told %v", err)
	}
	other := send(t, m, project, uuid.New())
	close(r.leave)
	answered(t, first, other)
}
