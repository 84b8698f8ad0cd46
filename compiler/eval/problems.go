package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// problems are what the definition phase finds wrong. The first is the error
// of the compile. After it the phase goes on for what else can be known, and
// what only follows from an earlier problem is left out: a name whose
// definition failed stays defined, as something that may be anything.
type problems struct {
	found    *collected
	early    int // how many of found are wrong with definitions
	warnedAt int // how many warnings there were at the first one
}

// report notes errors; nil is none.
func (p *program) report(errs ...*Error) {
	for _, e := range errs {
		if e == nil || e.excused {
			continue
		}
		if p.found == nil {
			p.found = &collected{seen: map[topic]*Error{}, definition: true}
			p.warnedAt = len(p.warnings)
		}
		p.found.add(e)
	}
}

// noteEarly notes how many problems there are before types are resolved.
func (p *program) noteEarly(*definitions) {
	if p.wrong() {
		p.early = len(p.found.list)
	}
}

func (p *program) wrong() bool { return p.found != nil }

// step does a part of the definition phase. After an error it may fall over
// what that left undone, which is then not told.
func (p *program) step(do func()) {
	defer func() {
		if p.wrong() {
			_ = recover()
		}
	}()
	if !p.wrong() || !p.found.full() {
		do()
	}
}

// failure returns the error of the compile, the errors that were found after it,
// and the warnings that the reference prints beside it.
func (p *program) failure() (first *Error, further []*Error, warnings []Warning) {
	for _, w := range p.warnings[:p.warnedAt] {
		// shadowed variables are looked for once everything is resolved
		if w.Kind != "VariableShadowWarning" || p.in.Static {
			warnings = append(warnings, w)
		}
	}
	return p.found.list[0], p.found.further(), warnings
}

// besideLoadErrors joins the problems with the errors of importing the plug-ins,
// of which first is the one that the reference reports.
func (p *program) besideLoadErrors(first *Error, further []*Error) (*Error, []*Error) {
	found := p.found.list
	if first.code == diag.Code("InvalidTypeAnnotation") && first.Kind != "RuntimeException" && p.early > 0 {
		// annotations are looked at once everything is defined; only whether
		// each parameter has one is seen before
		further = append([]*Error{first}, further...)
		first, found = found[0], found[1:]
	}
	return first, append(further, found...)
}

// unsure tells entities that may have attributes and parents nobody knows of.
func (p *program) unsure(e *types.Entity) bool {
	return slices.ContainsFunc(
		p.info[e.Number].ancestry(),
		func(e *types.Entity) bool { return p.info[e.Number].broken },
	)
}

// excused is an error that only follows from another one.
func excused() *Error { return &Error{excused: true} }
