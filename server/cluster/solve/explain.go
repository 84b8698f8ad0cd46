package solve

import (
	"context"
	"slices"
	"strings"
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
	c.Hint = s.hint(ctx, left)
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

// hint says what to change: another size if that is enough, else one of the rules that alone would be enough.
func (s *scope) hint(ctx context.Context, rules []rule) string {
	if slices.ContainsFunc(rules, func(r rule) bool { return r.kind == ruleSize }) {
		if n, found := s.otherSize(ctx); found {
			return "There is a layout with " + nodeCount(n) + "."
		}
	}
	var enough []string
	for _, r := range slices.Backward(rules) { // the rules that are changed most easily are last
		if advice := s.advice(r); advice != "" && possible(ctx, s, map[key]bool{r.key(): true}) {
			enough = append(enough, advice)
		}
	}
	if len(enough) == 0 {
		return "More than one thing stands in the way: loosen one of these conditions first, and try again."
	}
	text := orNames(enough[:min(len(enough), 3)])
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// otherSize looks for the size nearest to the wanted one that has a layout.
func (s *scope) otherSize(ctx context.Context) (int, bool) {
	sizes := s.sizes()
	try := func(n int) bool {
		if n < sizes.Min || n > sizes.Max {
			return false
		}
		other := *s
		other.Size = n
		p := newProblem(&other, nil)
		if p == nil {
			return false
		}
		_, _, ok := newSolver(ctx, p).first()
		return ok
	}
	if s.Size < sizes.Min && try(sizes.Min) {
		return sizes.Min, true
	}
	if s.Size > sizes.Max && try(sizes.Max) {
		return sizes.Max, true
	}
	for d := 1; d <= 8; d++ {
		if try(s.Size + d) {
			return s.Size + d, true
		}
		if try(s.Size - d) {
			return s.Size - d, true
		}
	}
	// Far away: once there is a layout for more nodes, there is one for more again, until they cannot be filled.
	for _, far := range []int{2 * s.Size, 4 * s.Size, sizes.Max} {
		if try(far) {
			return s.Size + least(far-s.Size, func(d int) bool { return try(s.Size + d) }), true
		}
	}
	return 0, false
}

// advice says how to change a rule, as part of a sentence.
func (s *scope) advice(r rule) string {
	switch r.kind {
	case ruleMust:
		return "let the template have " + andNames(s.must[r.index]) + " on different nodes"
	case ruleCant:
		return "let the template have " + andNames(s.cant[r.index]) + " on the same node"
	case ruleMin:
		if given := s.Template.Constraints.Services[r.name].Quantities; given != nil && given.Min > 1 {
			return "let the template have " + r.name + " on fewer nodes"
		}
		return "leave out " + r.name
	case ruleMax:
		return "let the template have " + r.name + " on more nodes"
	case ruleHardware:
		return "allow " + r.name + " other hardware types"
	case ruleImage:
		return "allow " + r.name + " other image types"
	case ruleUsableHardware:
		return "map more hardware types for " + s.provider + " and allow them in the template"
	case ruleUsableImage:
		return "map more image types for " + s.provider + " and allow them in the template"
	case ruleNewHardware:
		return "choose another hardware type than " + s.HardwareType
	case ruleNewImage:
		return "choose another image type than " + s.ImageType
	case ruleFilled:
		return "add a service that may be on every node"
	case ruleKeepService, ruleKeepHardware, ruleKeepImage:
		return "make a new cluster instead of changing this one"
	case ruleSizeMin, ruleSizeMax:
		return "let the template have other sizes"
	default:
		return ""
	}
}
