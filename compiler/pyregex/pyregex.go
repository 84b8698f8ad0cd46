package pyregex

import (
	"errors"
	"time"
	"unicode/utf8"
)

// Regexp is a compiled pattern. It may be used by several goroutines.
type Regexp struct {
	program []inst
	groups  int
}

// Error is Python's error for a wrong pattern.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

// ErrTooLong means that matching took too long, or too much memory.
var ErrTooLong = errors.New("it took too long to know whether the text matches")

// Names returns the character that \N{…} names.
type Names func(name string) (char rune, known bool)

// Compile compiles a pattern. The error for a wrong pattern is an *Error.
func Compile(pattern string, names Names) (_ *Regexp, err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case *Error:
			err = problem
		default:
			panic(problem)
		}
	}()
	p := newParser(pattern, names)
	tree := p.pattern()
	c := compiler{groups: p.groupCount()}
	c.sequence(tree, p.flags)
	c.emit(inst{op: opMatch})
	return &Regexp{program: c.program, groups: c.groups}, nil
}

// Match reports whether the pattern matches at the beginning of a text. It returns ErrTooLong when that
// takes longer than the limit.
func (r *Regexp) Match(text string, limit time.Duration) (bool, error) {
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // a byte that is not UTF-8 is one character
	}
	m := machines.Get().(*machine)
	ok, err := m.run(r, text, limit)
	m.recycle()
	return ok, err
}
