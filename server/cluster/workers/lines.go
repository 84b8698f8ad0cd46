package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of what a provisioner may say in the log.
const (
	lineMax   = 8 << 10 // bytes of a line; the rest is cut off
	linesMax  = 100     // lines in linesTime
	linesTime = 10 * time.Second
)

// lines passes on what a provisioner prints to the log: lines of JSON as it logs them, and others as they are, such as
// the trace of a crash. It is not trusted: lines and their number are limited.
type lines struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	part    []byte
	cut     bool
	last    string // for the report of a crash
	began   time.Time
	count   int
	dropped int
}

// Write implements io.Writer. It never fails, so that the provisioner goes on.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		piece := p
		if end >= 0 {
			piece = p[:end]
		}
		if free := lineMax - len(l.part); len(piece) > free {
			piece, l.cut = piece[:free], true
		}
		l.part = append(l.part, piece...)
		if end < 0 {
			break
		}
		l.line()
		p = p[end+1:]
	}
	return n, nil
}

// line passes on the line that is complete.
func (l *lines) line() {
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.part), "\uFFFD"))
	whole := !l.cut
	l.part, l.cut = l.part[:0], false
	if text == "" {
		return
	}
	level, message, rest := slog.LevelInfo, text, []any(nil)
	if whole {
		level, message, rest = parse(text)
	}
	l.last = message
	for i := 0; i+1 < len(rest); i += 2 {
		if rest[i] == "error" {
			l.last += ": " + fmt.Sprint(rest[i+1])
		}
	}
	now := l.now()
	if now.Sub(l.began) >= linesTime {
		if l.dropped > 0 {
			l.log.Warn("lines that a provisioner logged were left out", "lines", l.dropped)
		}
		l.began, l.count, l.dropped = now, 0, 0
	}
	if l.count++; l.count > linesMax {
		l.dropped++
		return
	}
	l.log.Log(context.Background(), level, "provisioner: "+message, rest...)
}

// parse reads a line as slog's JSON handler writes it.
func parse(text string) (level slog.Level, message string, rest []any) {
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil {
		return slog.LevelInfo, text, nil
	}
	message, ok := fields[slog.MessageKey].(string)
	name, also := fields[slog.LevelKey].(string)
	if !ok || !also || level.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo, text, nil
	}
	for _, key := range []string{slog.MessageKey, slog.LevelKey, slog.TimeKey} {
		delete(fields, key)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		rest = append(rest, key, fields[key])
	}
	return level, message, rest
}

// Last returns the last line, for the report of a crash.
func (l *lines) Last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.line()
	}
	return l.last
}
