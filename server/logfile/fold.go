package logfile

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Fold returns a handler that logs a warning or an error once, and the same one again only after a while, with the
// number of times that it was repeated. A fault that lasts, such as a full disk, then costs two lines a minute instead
// of ten a second. It passes on records of lower levels unchanged.
func Fold(next slog.Handler) slog.Handler {
	return &folding{next: next, seen: &repetitions{window: foldWindow, records: map[string]*repetition{}}}
}

const (
	foldWindow = 30 * time.Second
	// maxFolded bounds how many different records are remembered; further ones are passed on.
	maxFolded = 1000
	// variants is how many records with the same message and different attributes are passed on in a window. Those
	// that follow are counted together.
	variants = 20
)

type folding struct {
	next   slog.Handler
	prefix string // of the attributes and groups that every record has
	seen   *repetitions
}

func (h *folding) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *folding) WithAttrs(attrs []slog.Attr) slog.Handler {
	prefix := h.prefix
	for _, a := range attrs {
		prefix += "\x00" + a.String()
	}
	return &folding{next: h.next.WithAttrs(attrs), prefix: prefix, seen: h.seen}
}

func (h *folding) WithGroup(name string) slog.Handler {
	return &folding{next: h.next.WithGroup(name), prefix: h.prefix + "\x00" + name + ".", seen: h.seen}
}

func (h *folding) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.next.Handle(ctx, r)
	}
	var key strings.Builder
	key.WriteString(r.Level.String() + "\x00" + r.Message)
	kind := key.String()
	key.WriteString("\x00" + h.prefix)
	r.Attrs(func(a slog.Attr) bool {
		key.WriteString("\x00" + a.String())
		return true
	})
	if h.seen.repeated(h.next, kind, key.String(), r) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

// repetitions counts records that were logged before.
type repetitions struct {
	window time.Duration

	mu      sync.Mutex
	records map[string]*repetition // by all that a record says, and by its level and message alone
}

// repetition is what came after a record in its window.
type repetition struct {
	last     slog.Record
	next     slog.Handler
	count    int // of records that were not logged
	variants int // of records with the same message that were logged
}

// repeated reports whether a record was counted and must not be logged.
func (s *repetitions) repeated(next slog.Handler, kind, key string, r slog.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if same := s.records[key]; same != nil {
		same.last, same.count = r.Clone(), same.count+1
		return true
	}
	similar := s.records[kind]
	if similar == nil {
		similar = s.remember(next, kind)
	}
	if similar != nil {
		if similar.variants >= variants {
			similar.last, similar.next, similar.count = r.Clone(), next, similar.count+1
			return true
		}
		similar.variants++
	}
	s.remember(next, key)
	return false
}

// remember begins a window. It returns nil when too many records are remembered. The caller holds the lock.
func (s *repetitions) remember(next slog.Handler, key string) *repetition {
	if len(s.records) >= maxFolded {
		return nil
	}
	one := &repetition{next: next}
	s.records[key] = one
	time.AfterFunc(s.window, func() { s.end(key, one) })
	return one
}

// end ends a window: it logs how often the record was repeated. While it goes on repeating, the next window begins.
func (s *repetitions) end(key string, one *repetition) {
	s.mu.Lock()
	count, last, next := one.count, one.last, one.next
	one.count, one.variants = 0, 0
	if count == 0 {
		delete(s.records, key)
	} else {
		time.AfterFunc(s.window, func() { s.end(key, one) })
	}
	s.mu.Unlock()
	if count == 0 {
		return
	}
	last.AddAttrs(slog.Int("repeated", count))
	_ = next.Handle(context.Background(), last) // as for all records, there is nowhere to report that the log fails
}
