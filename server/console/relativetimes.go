package console

import (
	"html/template"
	"regexp"
	"strings"
	"time"
)

// writtenTime is a time in a sentence for people, as the API and the console write them, with the word before it.
var writtenTime = regexp.MustCompile(`\b(since|at|after) (\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) UTC`)

// withRelativeTimes escapes a sentence and makes its times relative, as they are everywhere else on a page; the exact
// time shows when pointed at. What has been so since a time has been so for a while; what will be at a time will be in
// a while. Times until which something holds stay as they are: people plan with them.
//
//	since 2026-11-25 12:46 UTC ─▶ for 7 min 12 s
//	at 2026-11-25 12:49 UTC    ─▶ in 3 min, or 3 min ago
func withRelativeTimes(now time.Time, text string) template.HTML {
	var b strings.Builder
	rest := text
	for {
		at := writtenTime.FindStringSubmatchIndex(rest)
		if at == nil {
			b.WriteString(template.HTMLEscapeString(rest))
			return template.HTML(b.String())
		}
		word, written := rest[at[2]:at[3]], rest[at[4]:at[5]]
		b.WriteString(template.HTMLEscapeString(rest[:at[0]]))
		b.WriteString(relativeTime(now, word, written, rest[at[0]:at[1]]))
		rest = rest[at[1]:]
	}
}

// relativeTime returns the element for one time, or the text as it was written when there is no such time.
func relativeTime(now time.Time, word, written, whole string) string {
	layout := "2006-01-02 15:04:05"
	t, err := time.Parse(layout[:len(written)], written)
	if err != nil {
		return template.HTMLEscapeString(whole)
	}
	stamps := `datetime="` + t.Format(time.RFC3339) + `" title="` + exact(t) + `"`
	if word == "since" && !t.After(now) {
		return `for <time ` + stamps +
			` data-since="` + t.Format(time.RFC3339) + `">` + duration(now.Sub(t)) + `</time>`
	}
	return `<time ` + stamps + ` data-ago>` + ago(now, t) + `</time>`
}
