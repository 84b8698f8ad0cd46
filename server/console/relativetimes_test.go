package console

import (
	"strings"
	"testing"
	"time"
)

// Times in sentences become relative; what stands around them is escaped, and what is no time stays.
func TestSentencesTellTimesRelatively(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	tags := func(html string) string { // leaves the text
		var b strings.Builder
		for _, part := range strings.Split(html, "<") {
			_, text, found := strings.Cut(part, ">")
			if !found {
				text = part
			}
			b.WriteString(text)
		}
		return b.String()
	}
	for text, want := range map[string]string{
		"It failed, and is tried again at 2026-11-28 12:03 UTC.": "It failed, and is tried again in 3 min.",
		"Paused by ada at 2026-11-28 11:30:30 UTC.":              "Paused by ada 29 min ago.",
		"Not reached since 2026-11-28 11:52 UTC, twice.":         "Not reached for 8 min 0 s, twice.",
		"Held until 2026-11-28 18:00 UTC.":                       "Held until 2026-11-28 18:00 UTC.",
		"At <b>, since 2026-99-28 11:52 UTC":                     "At &lt;b&gt;, since 2026-99-28 11:52 UTC",
	} {
		if got := tags(string(withRelativeTimes(now, text))); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	html := string(withRelativeTimes(now, "since 2026-11-28 11:52 UTC"))
	contains(t, html, `title="28 November 2026, 11:52:00 UTC"`, `data-since="2026-11-28T11:52:00Z"`)
}

// The page of keys lists each key once, and one for every page that the menu has, the server's status among them.
func TestThePageOfKeysIsUnambiguous(t *testing.T) {
	r, h := rich(t)
	page := get(t, h, envURL(r.Production.ID)+"/keyboard").Body.String()
	for _, key := range menuKeys {
		if n := strings.Count(page, `<kbd>g</kbd> <kbd>`+key+`</kbd>`); n > 1 {
			t.Errorf("g %s is there %d times", key, n)
		}
	}
	contains(t, page, `<kbd>g</kbd> <kbd>0</kbd>`, `<kbd>g</kbd> <kbd>i</kbd>`)
}
