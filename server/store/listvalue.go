package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// normalTime is the form of times in a normalized query.
const normalTime = time.RFC3339Nano

// ParseTime reads a time in any form of ISO 8601, with any one character between date and time; without an offset it
// is UTC. A blank before the offset stands for the plus sign that a client forgot to encode.
func ParseTime(s string) (time.Time, error) {
	layout, text := timeLayout(strings.TrimSpace(s))
	t, err := time.Parse(layout, text)
	t = t.UTC()
	if layout == "" || err != nil || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%q is not an ISO 8601 time, such as 2026-11-21T13:27:56.106449+00:00", s)
	}
	return t, nil
}

// timeLayout returns the layout of a time for time.Parse, and the time as that layout has it; "" for what has none.
func timeLayout(text string) (layout, normal string) {
	if len(text) >= 8 && isDigits(text[:8]) { // the basic form: 20261121T132756Z
		text = text[:4] + "-" + text[4:6] + "-" + text[6:]
		if clock := len("2006-01-02T"); len(text) >= clock+6 && isDigits(text[clock:clock+6]) {
			text = text[:clock+2] + ":" + text[clock+2:clock+4] + ":" + text[clock+4:]
		}
	}
	const day = "2006-01-02"
	if len(text) <= len(day) {
		return day, text
	}
	date, rest := text[:len(day)], text[len(day):]
	_, separator := utf8.DecodeRuneInString(rest)
	clock, offset := rest[separator:], ""
	if len(clock) < len("15:04") {
		return "", ""
	}
	if i := strings.IndexAny(clock, "+- Zz"); i >= 0 {
		clock, offset = clock[:i], clock[i:]
	}
	clock = strings.Replace(clock, ",", ".", 1)
	layout = day + " 15:04:05"
	if strings.Count(clock, ":") == 1 {
		layout = day + " 15:04"
	}
	switch {
	case offset == "" || offset == "Z" || offset == "z":
		return layout, date + " " + clock
	case offset[0] == ' ':
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
		return "", ""
	}
	return layout, date + " " + clock + offset
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// ParseBool reads a boolean in any of the forms that clients of Inmanta send, such as true, 1, yes and on.
func ParseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "1", "yes", "on", "t", "y":
		return true, nil
	case "false", "0", "no", "off", "f", "n":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

// parseNumber reads a whole number of the size that the database keeps.
func parseNumber(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return n, nil
}
