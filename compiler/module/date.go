package module

import (
	"fmt"
	"strings"
	"time"

	"ordain.dev/ordain/compiler/module/pydantic"
)

// dateOf is a date or a time as Python shows it.
func dateOf(t time.Time) pydantic.Other {
	if t.Location() == dateOnly {
		return pydantic.Other{
			Type: "date", Text: t.Format(time.DateOnly),
			Repr: fmt.Sprintf("datetime.date(%d, %d, %d)", t.Year(), t.Month(), t.Day()),
		}
	}
	micro := t.Nanosecond() / 1000
	parts := []int{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), micro}
	for len(parts) > 5 && parts[len(parts)-1] == 0 {
		parts = parts[:len(parts)-1]
	}
	text := t.Format(time.DateTime)
	if micro != 0 {
		text += fmt.Sprintf(".%06d", micro)
	}
	zoneRepr := ""
	if t.Location() != noZone {
		text += t.Format("-07:00")
		zoneRepr = ", tzinfo=datetime.timezone.utc"
		if _, offset := t.Zone(); offset != 0 {
			zoneRepr = ", tzinfo=datetime.timezone(" + delta(offset) + ")"
		}
	}
	numbers := strings.ReplaceAll(strings.Trim(fmt.Sprint(parts), "[]"), " ", ", ")
	return pydantic.Other{Type: "datetime", Text: text, Repr: "datetime.datetime(" + numbers + zoneRepr + ")"}
}
