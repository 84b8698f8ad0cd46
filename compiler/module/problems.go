package module

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// problems collects everything that is wrong with one file, so that its author
// can mend all of it at once.
type problems struct {
	path string
	all  []problem
}

// problem is one thing that is wrong.
type problem struct {
	kind         string // the reference's class; empty: KindInvalidMetadata
	line, column int    // column 0: unknown
	text         string // what is wrong
	fix          string // what to do about it
}

func (p *problems) add(one problem) { p.all = append(p.all, one) }

// mostShown is how many problems of a file are listed.
const mostShown = 20

// err returns one error that lists all problems by line, or nil. Its kind is that
// of the problem which was added first.
func (p *problems) err() *Error {
	if len(p.all) == 0 {
		return nil
	}
	kind := cmp.Or(p.all[0].kind, KindInvalidMetadata)
	slices.SortStableFunc(p.all, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	first := p.all[0]
	e := &Error{
		Kind: kind, Message: p.path + " is not valid: " + first.text, Hint: first.fix,
		At: at(p.path, max(1, first.line), first.column),
	}
	if len(p.all) > 1 {
		var b strings.Builder
		fmt.Fprintf(&b, "%s is not valid:", p.path)
		for _, one := range p.all[:min(len(p.all), mostShown)] {
			fmt.Fprintf(&b, "\n  line %d: %s", one.line, one.text)
			if one.fix != "" {
				fmt.Fprintf(&b, "; %s", one.fix)
			}
		}
		if more := len(p.all) - mostShown; more > 0 {
			fmt.Fprintf(&b, "\n  and %d more", more)
		}
		e.Message, e.Hint = b.String(), ""
	}
	return e
}
