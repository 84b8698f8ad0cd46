package intent

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Unit is what the number of a setting counts. People may write other units of the same kind: 2 h is kept as 7200 by a
// setting in seconds.
type Unit string

// The units.
const (
	Seconds Unit = "seconds"
	Hours   Unit = "hours"
	Days    Unit = "days"
	MiB     Unit = "MiB"
	Percent Unit = "percent"
)

// unitSize is a unit that people may write, in terms of the smallest one of its kind.
// The tables hold the largest first.
type unitSize struct {
	word  string
	also  []string
	times float64
}

var (
	times = []unitSize{
		{"weeks", []string{"week", "w"}, 7 * 86400},
		{"days", []string{"day", "d"}, 86400},
		{"h", []string{"hours", "hour"}, 3600},
		{"min", []string{"minutes", "minute", "m"}, 60},
		{"s", []string{"seconds", "second", "sec"}, 1},
	}
	sizes = []unitSize{
		{"GiB", []string{"gib", "gb", "g"}, 1024},
		{"MiB", []string{"mib", "mb", "m"}, 1},
	}
	shares = []unitSize{{"%", []string{"percent"}, 1}}
)

// kind returns the units of the same kind, and how much of the smallest of them this one is.
func (u Unit) kind() (all []unitSize, size float64) {
	switch u {
	case Seconds:
		return times, 1
	case Hours:
		return times, 3600
	case Days:
		return times, 86400
	case MiB:
		return sizes, 1
	case Percent:
		return shares, 1
	}
	return nil, 1
}

// Format writes a number for people: 7200 seconds are 2 h. It uses the largest unit of which the number is a whole
// multiple, weeks excepted, so that Parse reads the same number again.
func (u Unit) Format(n float64) string {
	all, size := u.kind()
	if n == 0 || len(all) == 0 {
		return number(n)
	}
	total := n * size
	for _, one := range all {
		if one.word == "weeks" || total < one.times || math.Mod(total, one.times) != 0 {
			continue
		}
		word := one.word
		if word == "days" && total == one.times {
			word = "day"
		}
		return number(total/one.times) + " " + word
	}
	return number(total) + " " + all[len(all)-1].word
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Parse reads what a person wrote: a bare number, or numbers with units such as 1 h 30 min.
func (u Unit) Parse(text string) (float64, error) {
	text = strings.TrimSpace(text)
	bad := fmt.Errorf("%q cannot be read", cutText(text, 40)) // the advice is in the hint of the setting
	if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
		return n, nil
	}
	all, size := u.kind()
	total, rest := 0.0, text
	for rest != "" {
		end := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsDigit(r) && r != '.' })
		if end <= 0 {
			return 0, bad
		}
		n, err := strconv.ParseFloat(rest[:end], 64)
		if err != nil {
			return 0, bad
		}
		rest = strings.TrimLeft(rest[end:], " ")
		end = strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) && r != '%' })
		if end < 0 {
			end = len(rest)
		}
		times, ok := named(all, rest[:end])
		if !ok {
			return 0, bad
		}
		total += n * times
		rest = strings.TrimLeft(rest[end:], " ")
	}
	if text == "" {
		return 0, bad
	}
	return total / size, nil
}

func named(all []unitSize, word string) (float64, bool) {
	for _, one := range all {
		if strings.EqualFold(word, one.word) {
			return one.times, true
		}
		for _, also := range one.also {
			if strings.EqualFold(word, also) {
				return one.times, true
			}
		}
	}
	return 0, false
}

// example shows how a number may be written with a unit.
func (u Unit) example() string {
	switch u {
	case Seconds:
		return "a length of time such as 90 s, 10 min or 2 h"
	case Hours:
		return "a length of time such as 12 h or 14 days"
	case Days:
		return "a length of time such as 30 days or 2 weeks"
	case MiB:
		return "a size such as 256 MiB or 2 GiB"
	case Percent:
		return "a share such as 20 %"
	}
	return "a number"
}

func cutText(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// Text writes a value of the setting for people, as Convert reads it again: 7200 as 2 h where it counts seconds.
func (s Setting) Text(value any) string {
	switch v := value.(type) {
	case int:
		return s.Unit.Format(float64(v))
	case float64:
		return s.Unit.Format(v)
	case string:
		if n, err := strconv.Atoi(v); err == nil && s.Unit != "" {
			return s.Unit.Format(float64(n))
		}
		return v
	}
	return fmt.Sprint(value)
}
