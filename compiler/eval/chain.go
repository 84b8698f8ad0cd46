package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// A statement in the body of an implementation runs for an instance, which was made
// by a statement that ran for another one. This needs no record: an instance knows
// what made it, and an error has the first link.
//
//	error ─▶ origin{instance, implementation} ─▶ instance.made ─▶ … ─▶ top level

// chainEnds is how many steps are shown at each end of a long chain.
const chainEnds = 6

// withOrigin sets the implementation that ran when the error arose, unless it is
// set.
func withOrigin(e *Error, s *scope) *Error {
	if e == nil || e.By != nil || s == nil {
		return e
	}
	for ; s != nil; s = s.up {
		if s.by != nil {
			e.By = s.by
			return e
		}
		if s.self != nil { // the condition of an implement statement
			e.By = &origin{instance: s.self}
			return e
		}
	}
	return e
}

// ofInstance sets the instance that the error is about.
func ofInstance(e *Error, i *Instance) *Error {
	if e.By == nil {
		e.By = &origin{instance: i}
	}
	return e
}

// Steps implements program.Chain. The innermost instance comes first.
func (o *origin) Steps() []diag.Step {
	var links []*origin
	for ; o != nil; o = o.instance.made {
		links = append(links, o)
	}
	skipped := len(links) - 2*chainEnds
	steps := make([]diag.Step, 0, min(len(links), 2*chainEnds))
	for n, o := range links {
		if skipped > 0 && n >= chainEnds && n < chainEnds+skipped {
			continue
		}
		step := diag.Step{Instance: o.instance.Title()}
		if o.impl != nil {
			step.Implementation = o.impl.Name
		}
		if at := o.instance.at; at.File != nil && at.Start.Line > 0 {
			step.Made, step.Source = program.Locate(*at)
		}
		if skipped > 0 && n == chainEnds-1 {
			step.Skipped = skipped
		}
		steps = append(steps, step)
	}
	return steps
}

// Title names an instance as people do, by the key of its index or by its name.
//
//	web::Site(name="shop")
func (i *Instance) Title() string {
	var names []string
	if len(i.entity.Indexes) > 0 {
		names = i.entity.Indexes[0].Attributes
	} else if a := i.entity.Attribute("name"); a != nil && a.End == nil {
		names = []string{"name"}
	}
	parts := make([]string, 0, len(names))
	for _, name := range names {
		v, ok := i.variable(name).peek()
		if !ok {
			continue
		}
		parts = append(parts, name+"="+titleOf(v))
	}
	if len(parts) == 0 {
		return i.entity.Name
	}
	return i.entity.Name + "(" + strings.Join(parts, ", ") + ")"
}

// titleOf is the text of a value in a title: short, and without the instances in it.
func titleOf(v types.Value) string {
	const most = 40
	text := ""
	switch v := v.(type) {
	case *Instance:
		return v.entity.Name
	case types.Str:
		text = `"` + string(v) + `"`
	case *types.List, *types.Dict:
		return "…"
	default:
		text = types.Text(v)
	}
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
