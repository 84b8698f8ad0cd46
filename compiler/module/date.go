package module

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/compiler/module/pydantic"
)

// zonedTime has the fraction of a second and the zone of a time as YAML writes it.
var zonedTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:\.([0-9]*))?[ \t]*(?:(Z)|([-+])([0-9]{1,2})(?::?([0-9]{2}))?)?$`)
})

// dateOf is a date or a time as Python shows it. t has neither fraction nor zone.
func dateOf(text string, t time.Time) pydantic.Other {
	if len(text) == len(time.DateOnly) {
		return pydantic.Other{
			Type: "date", Text: t.Format(time.DateOnly),
			Repr: fmt.Sprintf("datetime.date(%d, %d, %d)", t.Year(), t.Month(), t.Day()),
		}
	}
	m := zonedTime().FindStringSubmatch(text)
	micro, _ := strconv.Atoi((m[1] + "000000")[:6])
	parts := []int{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), micro}
	for len(parts) > 5 && parts[len(parts)-1] == 0 {
		parts = parts[:len(parts)-1]
	}
	o := pydantic.Other{
		Type: "datetime", Text: t.Format(time.DateTime),
		Repr: strings.ReplaceAll(strings.Trim(fmt.Sprint(parts), "[]"), " ", ", "),
	}
	if micro != 0 {
		o.Text += fmt.Sprintf(".%06d", micro)
	}
	zoneRepr, zoneText := zoneOf(m)
	o.Text += zoneText
	o.Repr = "datetime.datetime(" + o.Repr + zoneRepr + ")"
	return o
}

// zoneOf is how repr and str show the zone of a time.
func zoneOf(m []string) (repr, text string) {
	if m[2] == "" && m[3] == "" {
		return "", ""
	}
	hours, _ := strconv.Atoi(m[4])
	minutes, _ := strconv.Atoi(m[5])
	delta := hours*3600 + minutes*60
	if delta == 0 {
		return ", tzinfo=datetime.timezone.utc", "+00:00"
	}
	shown := fmt.Sprintf("seconds=%d", delta)
	if m[3] == "-" {
		shown = fmt.Sprintf("days=-1, seconds=%d", 86400-delta)
	}
	return ", tzinfo=datetime.timezone(datetime.timedelta(" + shown + "))", fmt.Sprintf("%s%02d:%02d", m[3], hours, minutes)
}
