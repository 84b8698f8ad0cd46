package module

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/compiler/pyyaml"
)

// Dates have no time, and most times no zone. Both are told by their location.
var (
	dateOnly = time.FixedZone("date", 0)
	noZone   = time.FixedZone("time", 0)
)

// kindOf tells dates, times without and times with a zone apart: they are never equal.
func kindOf(t time.Time) string {
	switch t.Location() {
	case dateOnly, noZone:
		return t.Location().String()
	}
	return "zone"
}

// timePattern is wider than what YAML takes for a time without a tag.
var timePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?` +
			`(?:[ \t]*(?:(Z)|([-+])([0-9]{1,2})(?::([0-9]{2}))?))?)?$`,
	)
})

// timestamp reads a date or a time. It must be one that can be.
func (c *construction) timestamp(n *pyyaml.Node) (any, error) {
	if n.Kind != pyyaml.Scalar { // the text behind a `=` in it is not what is read
		return nil, c.raise(classType, n, "expected string or bytes-like object, got 'list'")
	}
	m := timePattern().FindStringSubmatch(strings.TrimSuffix(n.Value, "\n"))
	if m == nil {
		return nil, c.raise(classAttribute, n, "'NoneType' object has no attribute 'groupdict'")
	}
	number := func(i int) int {
		v, _ := strconv.Atoi(m[i])
		return v
	}
	year, month, day := number(1), number(2), number(3)
	hour, minute, second := number(4), number(5), number(6)
	zone := noZone
	switch {
	case m[4] == "":
		zone = dateOnly
	case m[8] != "":
		zone = time.UTC
	case m[9] != "":
		offset := number(10)*3600 + number(11)*60
		if m[9] == "-" {
			offset = -offset
		}
		if offset <= -24*3600 || offset >= 24*3600 {
			return nil, c.raise(
				pyyaml.ClassValue,
				n,
				"offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24), not %s.",
				delta(offset),
			)
		}
		zone = time.FixedZone("", offset)
	}
	problem := ""
	switch {
	case year < 1:
		problem = "year 0 is out of range"
	case month < 1 || month > 12:
		problem = "month must be in 1..12"
	case day < 1 || day > time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day():
		problem = "day is out of range for month"
	case hour > 23:
		problem = "hour must be in 0..23"
	case minute > 59:
		problem = "minute must be in 0..59"
	case second > 59:
		problem = "second must be in 0..59"
	}
	if problem != "" {
		return nil, c.raise(pyyaml.ClassValue, n, "%s", problem)
	}
	micros, _ := strconv.Atoi((m[7] + "000000")[:6])
	return time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, zone), nil
}

// delta writes a time span as Python's repr does: seconds count up from the day.
func delta(seconds int) string {
	days := seconds / 86400
	if rest := seconds % 86400; rest < 0 {
		days--
	}
	rest := seconds - days*86400
	switch {
	case rest == 0:
		return fmt.Sprintf("datetime.timedelta(days=%d)", days)
	case days == 0:
		return fmt.Sprintf("datetime.timedelta(seconds=%d)", rest)
	}
	return fmt.Sprintf("datetime.timedelta(days=%d, seconds=%d)", days, rest)
}
