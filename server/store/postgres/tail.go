package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

// tail passes the database's output to the log, line by line, and keeps the last lines for an error message.
type tail struct {
	logger *slog.Logger

	mu      sync.Mutex
	partial []byte
	lines   []string
}

const (
	tailLines   = 20
	longestLine = 4096
)

// Write implements io.Writer; it never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		t.partial = append(t.partial, line[:min(len(line), max(0, longestLine-len(t.partial)))]...)
		b = rest
		if whole {
			t.line(string(t.partial))
			t.partial = t.partial[:0]
		}
	}
	return n, nil
}

func (t *tail) line(text string) {
	if t.lines = append(t.lines, text); len(t.lines) > tailLines {
		t.lines = t.lines[1:]
	}
	level := slog.LevelDebug
	for _, word := range []string{"FATAL:", "PANIC:"} {
		if strings.Contains(text, word) {
			level = slog.LevelWarn
		}
	}
	t.logger.Log(context.Background(), level, "PostgreSQL: "+text)
}

// String returns the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
