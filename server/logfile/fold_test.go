package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// folded runs do with a log that folds, waits until nothing is left to be said, and returns the lines.
func folded(t *testing.T, do func(*slog.Logger)) (lines []string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		var b bytes.Buffer
		do(slog.New(Fold(slog.NewTextHandler(&b, nil))))
		time.Sleep(3 * foldWindow)
		synctest.Wait()
		lines = strings.Split(strings.TrimSpace(b.String()), "\n")
	})
	return lines
}

// A disk that is full for five minutes takes ten lines or so, the first at once, and the lines say how often it
// happened.
func TestErrorsThatRepeatAreFolded(t *testing.T) {
	lines := folded(t, func(log *slog.Logger) {
		log = log.With("environment", "e")
		for range 3000 {
			log.Error("cannot write", "error", errors.New("no space left on device"))
			time.Sleep(100 * time.Millisecond)
		}
	})
	total := 0
	for i, line := range lines {
		n := 1
		if _, count, found := strings.Cut(line, "repeated="); found {
			if _, err := fmt.Sscan(count, &n); err != nil {
				t.Fatal(err)
			}
		} else if i > 0 {
			t.Errorf("line %d does not say how often: %s", i, line)
		}
		total += n
		if !strings.Contains(line, "environment=e") || !strings.Contains(line, "no space left") {
			t.Errorf("line %d lost something: %s", i, line)
		}
	}
	if total != 3000 || len(lines) > 13 {
		t.Errorf("%d lines say that it happened %d times", len(lines), total)
	}
}

// Errors that say something else are all logged, unless there are very many with the same message. What is no warning
// is logged each time.
func TestDifferentRecordsAreNotFolded(t *testing.T) {
	lines := folded(t, func(log *slog.Logger) {
		for i := range 5 {
			log.Error("cannot write", "file", i)
			log.With("in", i).Error("cannot write")
			log.WithGroup(fmt.Sprint("g", i)).Warn("slow")
			log.Info("the same")
		}
		log.Error("slow")
	})
	if len(lines) != 21 || strings.Contains(strings.Join(lines, ""), "repeated") {
		t.Errorf("%d lines: %s", len(lines), strings.Join(lines, "\n"))
	}
	lines = folded(t, func(log *slog.Logger) {
		for i := range 1000 {
			log.Error("cannot write", "file", i)
		}
	})
	if len(lines) != variants+1 || !strings.Contains(lines[variants], fmt.Sprint("repeated=", 1000-variants)) {
		t.Errorf("%d lines: %s", len(lines), lines[len(lines)-1])
	}
}

// The number of records that are remembered is bounded.
func TestFoldingForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		h := Fold(slog.NewTextHandler(&b, nil)).(*folding)
		for i := range 5 * maxFolded {
			slog.New(h).Error(fmt.Sprint("message ", i))
		}
		remembered := func() int {
			h.seen.mu.Lock()
			defer h.seen.mu.Unlock()
			return len(h.seen.records)
		}
		if n := remembered(); n > maxFolded {
			t.Errorf("%d are remembered", n)
		}
		time.Sleep(2 * foldWindow)
		synctest.Wait()
		if n := remembered(); n != 0 {
			t.Errorf("%d are still remembered", n)
		}
		if n := strings.Count(b.String(), "\n"); n != 5*maxFolded {
			t.Errorf("%d lines", n)
		}
	})
}
