package comparison

import (
	"context"
	"sync"

	"ordain.dev/ordain/internal/intent"
)

// Record is what the service needs of the store.
type Record interface {
	DiffEdits(ctx context.Context, of intent.Compared, visit func(intent.DiffEdit)) error
}

// kept is how many resources the indexes that are kept have together; they take some 150 bytes each.
const kept = 300_000

// Service makes indexes, and keeps those that were used last. It is safe for concurrent use.
type Service struct {
	record Record

	mu      sync.Mutex
	indexes []*Index // the one that was used last is last
	making  map[intent.Compared]*making
}

type making struct {
	done  chan struct{}
	index *Index
	err   error
}

// New makes a service.
func New(record Record) *Service {
	return &Service{record: record, making: map[intent.Compared]*making{}}
}

// Index returns the index of a comparison. final says that what is compared changes no more, so that the index may be
// kept. Requests that ask for the same index at the same time share the work.
func (s *Service) Index(ctx context.Context, of intent.Compared, final bool) (*Index, error) {
	if !final {
		return s.read(ctx, of)
	}
	s.mu.Lock()
	for i, x := range s.indexes {
		if x.Of == of {
			s.indexes = append(append(s.indexes[:i:i], s.indexes[i+1:]...), x)
			s.mu.Unlock()
			return x, nil
		}
	}
	m := s.making[of]
	if m == nil {
		m = &making{done: make(chan struct{})}
		s.making[of] = m
		go s.make(context.WithoutCancel(ctx), of, m)
	}
	s.mu.Unlock()
	select {
	case <-m.done:
		return m.index, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Service) read(ctx context.Context, of intent.Compared) (*Index, error) {
	b := newBuilder(of)
	if err := s.record.DiffEdits(ctx, of, b.add); err != nil {
		return nil, err
	}
	return b.done(), nil
}

func (s *Service) make(ctx context.Context, of intent.Compared, m *making) {
	m.index, m.err = s.read(ctx, of)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.making, of)
	if m.err == nil && len(m.index.rows) <= kept {
		s.indexes = append(s.indexes, m.index)
		total := 0
		for i := len(s.indexes) - 1; i >= 0; i-- {
			if total += len(s.indexes[i].rows) + 1000; total > kept { // small ones cost something, too
				s.indexes = s.indexes[i+1:]
				break
			}
		}
	}
	close(m.done)
}
