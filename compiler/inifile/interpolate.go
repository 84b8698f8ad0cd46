package inifile

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/python/pytext"
)

// deepest is how many values may be taken in by one another.
const deepest = 10

// Get gives a value of a section, or of DEFAULT, with others taken in; found is
// false when the section or the key is not there. The error is an *Error.
func (f *File) Get(section, option string) (text string, found bool, err error) {
	s := f.sections[section]
	if s == nil {
		return "", false, nil
	}
	i := interpolation{file: f, section: s, option: lower(option)}
	if i.raw, found = i.look(i.option); !found {
		return "", false, nil
	}
	if err := i.add(i.raw, 1); err != nil {
		return "", true, err
	}
	return i.out.String(), true, nil
}

// interpolation is a value that is put together.
type interpolation struct {
	file    *File
	section *section
	option  string
	raw     string // the value as it is written
	out     strings.Builder
}

// look finds a value as it is written, in the section or in DEFAULT.
func (i *interpolation) look(option string) (string, bool) {
	v := i.section.values[option]
	if v == nil {
		v = i.file.defaults.values[option]
	}
	if v == nil {
		return "", false
	}
	return v.text(), true
}

// add writes a text with the values in it that it names.
func (i *interpolation) add(rest string, depth int) error {
	if depth > deepest {
		return i.fail(
			"Recursion limit exceeded in value substitution: option %s in section %s contains an interpolation key which cannot be substituted in %d steps. Raw value: %s",
			pytext.Quote(i.option),
			pytext.Quote(i.section.name),
			deepest,
			pytext.Quote(i.raw),
		)
	}
	for {
		before, after, found := strings.Cut(rest, "%")
		i.out.WriteString(before)
		if !found {
			return nil
		}
		rest = "%" + after
		switch {
		case strings.HasPrefix(after, "%"):
			i.out.WriteByte('%')
			rest = after[1:]
		case strings.HasPrefix(after, "("):
			name, behind, closed := strings.Cut(after[1:], ")")
			if !closed || name == "" || !strings.HasPrefix(behind, "s") {
				return i.fail("bad interpolation variable reference %s", pytext.Quote(rest))
			}
			rest = behind[1:]
			name = lower(name)
			v, ok := i.look(name)
			if !ok {
				return i.fail(
					"Bad value substitution: option %s in section %s contains an interpolation key %s which is not a valid option name. Raw value: %s",
					pytext.Quote(i.option),
					pytext.Quote(i.section.name),
					pytext.Quote(name),
					pytext.Quote(i.raw),
				)
			}
			if !strings.Contains(v, "%") { // at any depth
				i.out.WriteString(v)
			} else if err := i.add(v, depth+1); err != nil {
				return err
			}
		default:
			return i.fail("'%%' must be followed by '%%' or '(', found: %s", pytext.Quote(rest))
		}
	}
}

func (i *interpolation) fail(format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}
