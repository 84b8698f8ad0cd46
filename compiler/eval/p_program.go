package eval

import (
	"fmt"
	"slices"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// program is the definition side of a compile: all names resolved.
//
// The phases follow each other in the order of the reference, because the
// first error ends the compile:
//
//	names → typedefs → entities (parents first) → implementations, relations
//	→ indexes → implements → bodies: others, entities, implementations → top level
type program struct {
	in          Input
	spaces      map[string]*namespace
	order       []*namespace // of the files
	entities    []*types.Entity
	info        []*entityInfo // by number of the entity
	typedefs    []*typedefInfo
	impls       []*implementationInfo
	warnings    []Warning
	plugins     []*pluginInfo
	hidden      int // hidden variables so far
	dataclasses []Dataclass
	nameless    []*Error               // about what is the twin of an entity and cannot be named
	twins       map[string]*entityInfo // by class; of twinOf
	holds       Holds
	asks        bool                                    // some typedef calls a plug-in
	output      []string                                // what plug-ins printed, in the order of their calls
	annotated   map[*syntax.Relation][]*types.Attribute // the ends of relations with annotations
	problems                                            // what was found wrong
}

// Holds evaluates the condition of a typedef for a value.
type Holds func(p *program, condition root, v types.Value) (bool, error)

// nextHidden numbers the hidden variables of constructors.
func (p *program) nextHidden() int {
	p.hidden++
	return p.hidden
}

func (p *program) warn(kind string, at syntax.Span, text string, args ...any) {
	p.warnings = append(p.warnings, Warning{Kind: kind, Message: fmt.Sprintf(text, args...), At: at})
}

// definitions are all statements that define something, by kind, in order.
type definitions struct {
	typedefs []*typedefInfo
	entities []*entityInfo
	impls    []*implementationInfo
	// targeted are the implementations and relations in the order of their
	// text, in which what they name is looked up.
	targeted   []any // *implementationInfo or placed[*syntax.Relation]
	indexes    []placed[*syntax.Index]
	implements []placed[*syntax.Implement]
}

type placed[T any] struct {
	ast T
	ns  *namespace
}

// define resolves a program. What is wrong with it is in its problems.
func define(in Input, loaded *Loaded, holds Holds) *program {
	p := &program{in: in, holds: holds, spaces: map[string]*namespace{}, annotated: map[*syntax.Relation][]*types.Attribute{}}
	p.dataclasses = loaded.Dataclasses
	for _, f := range in.Files {
		p.addSpace(f.Namespace, f)
	}
	if p.spaces["std"] == nil {
		p.addSpace("std", nil)
	}
	for name := range in.Missing {
		if p.spaces[name] == nil {
			p.spaces[name] = p.emptySpace(name)
		}
		p.spaces[name].missing = true
	}
	d := &definitions{}
	p.step(func() { p.collect(d) })
	p.step(func() { p.addPlugins(loaded.Plugins) })
	for _, step := range []func(*definitions){
		p.defineTypedefs, p.defineEntities, p.defineRelations, p.defineIndexes, p.defineImplements,
		p.noteEarly, p.resolveTypedefs, p.resolvePlugins, p.checkDataclasses, p.resolveBodies, p.applyPrecedence,
	} {
		p.step(func() { step(d) })
	}
	return p
}

func (p *program) addSpace(name string, f *syntax.File) {
	if ns := p.spaces[name]; ns != nil {
		return
	}
	ns := &namespace{
		name:    name,
		file:    f,
		things:  map[string]any{},
		imports: map[string]*namespace{},
		vars:    map[string]int{},
		p:       p,
	}
	p.spaces[name] = ns
	p.order = append(p.order, ns)
	// the namespaces above exist too, if only to hold plug-ins
	if up, _, qualified := cutLast(name); qualified && p.spaces[up] == nil {
		p.spaces[up] = p.emptySpace(up)
	}
}

func (p *program) emptySpace(name string) *namespace {
	return &namespace{
		name:    name,
		things:  map[string]any{},
		imports: map[string]*namespace{},
		vars:    map[string]int{},
		p:       p,
	}
}

// files are the files of the model in the order in which they were loaded.
func (p *program) files() []*syntax.File {
	files := make([]*syntax.File, 0, len(p.order))
	for _, ns := range p.order {
		if ns.file != nil {
			files = append(files, ns.file)
		}
	}
	return files
}

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
