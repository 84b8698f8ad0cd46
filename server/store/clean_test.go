package store

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func FuzzCleanJSON(f *testing.F) {
	for _, seed := range []string{`{"a":"\u0000"}`, `"\\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`,
		`"\ud83dx"`, `[1e400,"é"]`, `"\ud83d\u0000"`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		clean, err := cleanJSON(raw)
		if err != nil {
			if json.Valid(raw) {
				t.Fatalf("%q is JSON: %v", raw, err)
			}
			return
		}
		var before, after any
		if json.Unmarshal(raw, &before) != nil { // numbers that Go has no room for
			return
		}
		if err := json.Unmarshal(clean, &after); err != nil {
			t.Fatalf("%q became %q: %v", raw, clean, err)
		}
		x, _ := json.Marshal(before)
		y, _ := json.Marshal(after)
		if want := strings.ReplaceAll(strings.ReplaceAll(string(x), `\\`, "\x01"), `\u0000`,
			"\uFFFD"); want != strings.ReplaceAll(string(y), `\\`, "\x01") {
			t.Fatalf("%q became %q: %s, %s", raw, clean, want, y)
		}
	})
}

func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{"2026-11-14+13:50:31", "2026-11-14T13:50:31.123456+00:00", "2026-11-14", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if at, err := ParseTime(s); err == nil {
			if again, err := ParseTime(at.Format(time.RFC3339Nano)); err != nil || !again.Equal(at) {
				t.Fatalf("%q is %v, its own form is %v, %v", s, at, again, err)
			}
		}
	})
}

func TestTimesOfClients(t *testing.T) {
	at := time.Date(2026, 11, 14, 13, 50, 31, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"2026-11-14+13:50:31":              at,
		"2026-11-14 13:50:31":              at,
		"2026-11-14T13:50:31Z":             at,
		"2026-11-14T13:50:31+00:00":        at,
		"2026-11-14T13:50:31 00:00":        at, // the plus became a blank
		"2026-11-14_14:50:31.250000+01:00": at.Add(250 * time.Millisecond),
		"2026-11-14T14:50:31+0100":         at,
		"2026-11-14T14:50:31+01":           at,
		"2026-11-14T13:50":                 at.Add(-31 * time.Second),
		"20261114T135031":                  at,
		"2026-11-14":                       at.Truncate(24 * time.Hour),
	} {
		got, err := ParseTime(s)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v", s, got, err)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add(int64(0), 2_000_000)
	f.Add(int64(keepHead-1), 2)
	f.Add(int64(keepHead+5), 700_000)
	f.Fuzz(func(t *testing.T, start int64, size int) {
		if start < 0 || start > 1<<40 || size < 0 || size > 3<<20 {
			return
		}
		starts, pieces := cut(start, strings.Repeat("x", size))
		at, kept := start, 0
		for i := range starts {
			if starts[i] < at || len(pieces[i]) == 0 ||
				starts[i] < keepHead && starts[i]+int64(len(pieces[i])) > keepHead {
				t.Fatalf("piece %d begins at %d, after %d, with %d bytes", i, starts[i], at, len(pieces[i]))
			}
			at = starts[i] + int64(len(pieces[i]))
			kept += len(pieces[i])
		}
		if size > 0 && at != start+int64(size) {
			t.Fatalf("the end is not kept: %d of %d", at, start+int64(size))
		}
		if kept < min(size, keepTail) {
			t.Fatalf("only %d of %d are kept", kept, size)
		}
	})
}
