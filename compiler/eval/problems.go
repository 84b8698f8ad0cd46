package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/types"
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
			p.direct.failed = true
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

// tell puts the problems into a result.
func (p *program) tell(result *Result) {
	for _, w := range p.warnings[:p.warnedAt] {
		// names are looked at for shadows once everything is resolved
		if w.Kind != "VariableShadowWarning" || p.in.Static {
			result.Warnings = append(result.Warnings, w)
		}
	}
	result.Output = append(result.Output, p.output...)
	result.Err, result.Further = p.found.list[0], p.found.further()
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
