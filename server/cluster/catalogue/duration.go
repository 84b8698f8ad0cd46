package catalogue

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// longestLease is far away from what a time.Duration can hold.
const longestLease = 100 * 365 * 24 * time.Hour

// ParseDuration reads milliseconds, or a number with s, m, h or d behind it, as 2d.
func ParseDuration(text string) (Duration, error) {
	number, unit := text, time.Millisecond
	if text != "" {
		if u, ok := units[text[len(text)-1]]; ok {
			number, unit = text[:len(text)-1], u
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil || strings.HasPrefix(number, "+"):
		return 0, fmt.Errorf("%.40q is not a time: give milliseconds, or a number with s, m, h or d, as \"2d\"", text)
	case n < 0:
		return 0, fmt.Errorf("a time cannot be %.40s; 0 is without end", text)
	case n > int64(longestLease/unit):
		return 0, fmt.Errorf("%.40s is more than 100 years; 0 is without end", text)
	}
	return Duration(time.Duration(n) * unit), nil
}

var units = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

// MarshalJSON returns milliseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, time.Duration(d).Milliseconds(), 10), nil
}

// UnmarshalJSON reads a number of milliseconds, or a text that ParseDuration reads.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	text, ok := textOf(raw)
	if !ok {
		text = string(raw)
	}
	if kindOf(json.RawMessage(raw)) == "null" {
		return nil
	}
	read, err := ParseDuration(text)
	if err == nil {
		*d = read
	}
	return err
}
