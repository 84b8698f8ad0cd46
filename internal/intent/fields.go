package intent

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// fields reads the fields of an entry of a dict that a person wrote, and remembers
// the first error.
type fields struct {
	given map[string]any
	known []string
	err   error
}

// fieldsOf returns the fields of the entry with this name and value.
func fieldsOf(name string, value any) (*fields, error) {
	if name = strings.TrimSpace(name); name == "" || len(name) > mostNameLength ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return nil, fmt.Errorf("a name has 1 to %d characters, none of them a control character", mostNameLength)
	}
	given, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not a dict of fields")
	}
	return &fields{given: given}, nil
}

func (f *fields) take(name string) (any, bool) {
	f.known = append(f.known, name)
	v, ok := f.given[name]
	return v, ok && v != nil
}

func (f *fields) refuse(name string, value any, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %v is not %s", name, value, want)
	}
}

func (f *fields) text(name, standard string) string {
	v, ok := f.take(name)
	if !ok {
		return standard
	}
	s, ok := v.(string)
	if !ok {
		f.refuse(name, v, "a text")
	}
	return s
}

// number reads a whole number from least to most; 0 if it is missing.
func (f *fields) number(name string, least, most int) int {
	v, ok := f.take(name)
	if !ok {
		return 0
	}
	n, ok := numberOf(v)
	if !ok || n != math.Trunc(n) || n < float64(least) || n > float64(most) {
		f.refuse(name, v, fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0
	}
	return int(n)
}

// duration reads a number of seconds, or a text such as 90m or 4h30m.
func (f *fields) duration(name string) time.Duration {
	v, ok := f.take(name)
	if !ok {
		return 0
	}
	if s, isText := v.(string); isText {
		if d, err := time.ParseDuration(strings.TrimSpace(s)); err == nil {
			return d
		}
	}
	n, ok := numberOf(v)
	if !ok || math.IsNaN(n) || math.Abs(n) > 1e9 {
		f.refuse(name, v, "a number of seconds, or a text such as 90m or 4h30m")
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// interval reads a number of seconds or a cron expression as text; ok reports whether it was given.
func (f *fields) interval(name string) (text string, ok bool) {
	v, ok := f.take(name)
	if !ok {
		return "", false
	}
	text, isText := v.(string)
	if n, isNumber := numberOf(v); !isText && isNumber {
		text = strconv.FormatFloat(n, 'f', -1, 64)
	} else if !isText {
		f.refuse(name, v, "a number of seconds or a cron expression")
		return "", false
	}
	schedule, err := ParseInterval(text)
	switch {
	case err != nil && f.err == nil:
		f.err = fmt.Errorf("%s: %w", name, err)
	case schedule != nil && schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero():
		f.refuse(name, text, "a cron expression that ever comes")
	}
	return strings.TrimSpace(text), true
}

// texts reads a list of texts, or one text in which commas separate them.
func (f *fields) texts(name string) (out []string) {
	v, ok := f.take(name)
	if !ok {
		return nil
	}
	var list []any
	switch v := v.(type) {
	case string:
		for _, part := range splitPatterns(v) {
			list = append(list, part)
		}
	case []any:
		list = v
	default:
		f.refuse(name, v, "a list of texts")
	}
	for _, item := range list {
		s, ok := item.(string)
		if s = strings.TrimSpace(s); !ok || s == "" {
			f.refuse(name, item, "a text that says something")
			continue
		}
		out = append(out, s)
	}
	if len(out) == 0 && f.err == nil {
		f.err = fmt.Errorf("%s names nothing: leave it out to mean all", name)
	}
	return out
}

// done returns the first error. An unknown field is an error too.
func (f *fields) done() error {
	if f.err != nil {
		return f.err
	}
	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		if !slices.Contains(f.known, name) {
			return fmt.Errorf("there is no field %q: it has %s", name, strings.Join(f.known, ", "))
		}
	}
	return nil
}

func numberOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case string:
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return n, err == nil
	}
	return 0, false
}

// checkAgentPattern rejects text that is neither the name of an agent nor a pattern of names.
func checkAgentPattern(p string) error {
	if strings.TrimSpace(p) == "" || len(p) > maxPatternLength || strings.ContainsFunc(p, unicode.IsControl) ||
		strings.ContainsAny(p, "[],") {
		return fmt.Errorf(
			"%q is neither the name of an agent nor a pattern such as web* (* stands for any text, ? for any "+
				"character)",
			p,
		)
	}
	return nil
}
