package api

import (
	"errors"
	"strings"
	"time"
)

// timeLayout is how times go out: microseconds and offset, always.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// stamp is a time in an answer.
type stamp time.Time

// MarshalJSON writes the time as clients of the API know it.
func (s stamp) MarshalJSON() ([]byte, error) {
	return []byte(`"` + formatTime(time.Time(s)) + `"`), nil
}

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// maybe is a time that may not be known: null.
func maybe(t *time.Time) any {
	if t == nil || t.IsZero() {
		return nil
	}
	return stamp(*t)
}

var errTime = errors.New("not an ISO 8601 time, such as 2026-11-21T13:27:56.106449+00:00")

// parseTime reads any ISO 8601 form, with any one character between date and
// time; without an offset it is UTC. A blank before the offset stands for the
// plus sign that a client forgot to encode.
func parseTime(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	if len(text) >= 8 && strings.Trim(text[:8], "0123456789") == "" { // the basic form: 20261121T132756Z
		text = text[:4] + "-" + text[4:6] + "-" + text[6:]
		if clock := len("2006-01-02T"); len(text) >= clock+6 && strings.Trim(text[clock:clock+6], "0123456789") == "" {
			text = text[:clock+2] + ":" + text[clock+2:clock+4] + ":" + text[clock+4:]
		}
	}
	if len(text) < 10 {
		return time.Time{}, errTime
	}
	date, rest := text[:10], text[10:]
	if rest == "" {
		return parseWith("2006-01-02", date)
	}
	// One character, whatever it is, even one of several bytes.
	for i := range rest {
		if i > 0 {
			rest = rest[i:]
			break
		}
	}
	if len(rest) < 5 {
		return time.Time{}, errTime
	}
	clock, offset := rest, ""
	if i := strings.IndexAny(rest, "+- Zz"); i >= 0 {
		clock, offset = rest[:i], rest[i:]
	}
	clock = strings.Replace(clock, ",", ".", 1)
	layout := "2006-01-02 15:04:05"
	if strings.Count(clock, ":") == 1 {
		layout = "2006-01-02 15:04"
	}
	switch {
	case offset == "" || offset == "Z" || offset == "z":
		offset = ""
	default:
		if offset[0] == ' ' {
			offset = "+" + offset[1:]
		}
		switch len(offset) {
		case len("+00"):
			layout += "-07"
		case len("+0000"):
			layout += "-0700"
		case len("+00:00"):
			layout += "-07:00"
		default:
			return time.Time{}, errTime
		}
	}
	return parseWith(layout, date+" "+clock+offset)
}

func parseWith(layout, text string) (time.Time, error) {
	t, err := time.Parse(layout, text)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, errTime
	}
	return t.UTC(), nil
}
