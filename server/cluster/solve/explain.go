package solve

import (
	"context"
	"slices"
	"strings"
)

// explainer looks for rules that contradict each other. Its effort is bounded: what it cannot decide counts as
// possible, so that a rule is rather named than left out.
type explainer struct {
	*scope
	ctx    context.Context
	off    map[key]bool
	effort int
}

// explainingEffort bounds the steps of an explanation.
const explainingEffort = 40_000

// explain finds rules that contradict each other, and of which none can be left out.
func explain(ctx context.Context, s *scope) error {
	e := &explainer{scope: s, ctx: ctx, off: map[key]bool{}, effort: explainingEffort}
	rules := s.rules()
	// Services that need not be anywhere take most rules with them, so they come first.
	needs := pick(rules, func(r rule) bool { return r.kind == ruleMin })
	e.leaveOut(needs)
	idle := pick(rules, func(r rule) bool { return r.kind != ruleMin && e.idle(r) })
	e.leaveOut(idle)
	e.leaveOut(pick(rules, func(r rule) bool {
		return !e.off[r.key()] && r.kind != ruleMin && !slices.Contains(idle, r)
	}))
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &Contradiction{}
	left := pick(rules, func(r rule) bool { return !e.off[r.key()] })
	for _, r := range left {
		c.Reasons = append(c.Reasons, r.text)
	}
	e.effort = explainingEffort / 2
	c.Hint = e.hint(left)
	return c
}

func pick(rules []rule, want func(rule) bool) []rule {
	var out []rule
	for _, r := range rules {
		if want(r) {
			out = append(out, r)
		}
	}
	return out
}

// leaveOut turns off as many of the rules as it can while the others still contradict each other: all, or else as
// many as it can of either half. A rule that has to stay has to stay with fewer others, too.
func (e *explainer) leaveOut(rules []rule) {
	if len(rules) == 0 {
		return
	}
	for _, r := range rules {
		e.off[r.key()] = true
	}
	if !e.possible(e.off) {
		return
	}
	for _, r := range rules {
		delete(e.off, r.key())
	}
	if half := len(rules) / 2; half > 0 {
		e.leaveOut(rules[:half])
		e.leaveOut(rules[half:])
	}
}

// idle reports whether a rule is about services only that need not be anywhere.
func (e *explainer) idle(r rule) bool {
	var names []string
	switch r.kind {
	case ruleMust:
		names = e.must[r.index]
	case ruleCant:
		names = e.cant[r.index]
	case ruleMax, ruleHardware, ruleImage, ruleKeepService:
		names = []string{r.name}
	default:
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !e.off[key{ruleMin, name, 0}] })
}

// possible reports whether there is a layout without the rules that are off.
func (e *explainer) possible(off map[key]bool) bool {
	p := newProblem(e.scope, off)
	if p == nil {
		return true
	}
	sv := newSolver(e.ctx, p)
	sv.effort, sv.hasty = &e.effort, true
	return sv.possible() || sv.gaveUp
}

// certainly is possible without the benefit of the doubt.
func (e *explainer) certainly(off map[key]bool) bool {
	p := newProblem(e.scope, off)
	if p == nil {
		return false
	}
	sv := newSolver(e.ctx, p)
	sv.effort, sv.hasty = &e.effort, true
	return sv.possible()
}

// hint says what to change: another size if that is enough, else one of the rules that alone would be enough.
func (e *explainer) hint(rules []rule) string {
	if slices.ContainsFunc(rules, func(r rule) bool { return r.kind == ruleSize }) {
		if n, found := e.otherSize(); found {
			return "There is a layout with " + nodeCount(n) + "."
		}
	}
	var enough []string
	for _, r := range slices.Backward(rules) { // the rules that are changed most easily are last
		if advice := e.advice(r); advice != "" && e.certainly(map[key]bool{r.key(): true}) {
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
func (e *explainer) otherSize() (int, bool) {
	sizes := e.sizes()
	try := func(n int) bool {
		if n < sizes.Min || n > sizes.Max {
			return false
		}
		other := *e.scope
		other.Size = n
		p := newProblem(&other, nil)
		if p == nil {
			return false
		}
		sv := newSolver(e.ctx, p)
		sv.effort, sv.hasty = &e.effort, true
		_, _, ok := sv.first()
		return ok
	}
	if e.Size < sizes.Min && try(sizes.Min) {
		return sizes.Min, true
	}
	if e.Size > sizes.Max && try(sizes.Max) {
		return sizes.Max, true
	}
	for d := 1; d <= 8; d++ {
		if try(e.Size + d) {
			return e.Size + d, true
		}
		if try(e.Size - d) {
			return e.Size - d, true
		}
	}
	// Far away: once there is a layout for more nodes, there is one for more again, until they cannot be filled.
	for _, far := range []int{2 * e.Size, 4 * e.Size, sizes.Max} {
		if try(far) {
			return e.Size + least(far-e.Size, func(d int) bool { return try(e.Size + d) }), true
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
