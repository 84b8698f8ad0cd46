package solve

import (
	"context"
	"fmt"
)

// explain finds rules that contradict each other, and of which none can be left out.
func explain(ctx context.Context, s *scope) error {
	rules := s.rules()
	off := map[key]bool{}
	for _, r := range rules {
		off[r.key()] = true
		if possible(ctx, s, off) {
			delete(off, r.key())
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	c := &Contradiction{}
	var left []rule
	for _, r := range rules {
		if !off[r.key()] {
			left = append(left, r)
			c.Reasons = append(c.Reasons, r.text)
		}
	}
	c.Hint = s.hint(left)
	return c
}

// possible reports whether there is a layout without the rules that are off. If that cannot be decided it reports
// true, so that a rule is rather named than left out.
func possible(ctx context.Context, s *scope, off map[key]bool) bool {
	p := newProblem(s, off)
	if p == nil {
		return true
	}
	sv := newSolver(ctx, p)
	return sv.possible() || sv.gaveUp
}

// hint says what to change.
func (s *scope) hint(rules []rule) string {
	return fmt.Sprint(len(rules))
}
