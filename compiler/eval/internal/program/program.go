package program

import (
	"fmt"
	"slices"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// Program is a model with all names resolved.
type Program struct {
	in              Input
	Namespaces      map[string]*Namespace
	Order           []*Namespace // of the files
	Entities        []*types.Entity
	Info            []*EntityInfo // by number of the entity
	Typedefs        []*TypedefInfo
	Implementations []*ImplementationInfo
	Warnings        []Warning
	Plugins         []*PluginInfo
	hidden          int // how many hidden variables there are
	dataclasses     []Dataclass
	nameless        []*Error               // errors about twins of entities that have no name
	twins           map[string]*EntityInfo // by class; see TwinOf
	holds           Holds
	AsksPlugins     bool                                    // the condition of some typedef calls a plug-in
	Output          []string                                // what Python printed during the definition
	annotated       map[*syntax.Relation][]*types.Attribute // the ends of relations that have annotations
	problems
}

// Holds evaluates the condition of a typedef for a value.
type Holds func(p *Program, condition Root, v types.Value) (bool, error)

// nextHidden numbers the hidden variables of constructors.
func (p *Program) nextHidden() int {
	p.hidden++
	return p.hidden
}

func (p *Program) Warn(kind string, at syntax.Span, text string, args ...any) {
	p.Warnings = append(p.Warnings, Warning{Kind: kind, Message: fmt.Sprintf(text, args...), At: at})
}

// definitions are the statements that define something, by kind and in order.
type definitions struct {
	typedefs []*TypedefInfo
	entities []*EntityInfo
	impls    []*ImplementationInfo
	// targeted are the implementations and relations, in the order in which the
	// entities they name are looked up.
	targeted   []any // *implementationInfo or placed[*syntax.Relation]
	indexes    []placed[*syntax.Index]
	implements []placed[*syntax.Implement]
}

type placed[T any] struct {
	ast T
	ns  *Namespace
}

// Define resolves a model. Failure has what is wrong with it.
func Define(in Input, loaded *Loaded, holds Holds) *Program {
	p := &Program{
		in:         in,
		holds:      holds,
		Namespaces: map[string]*Namespace{},
		annotated:  map[*syntax.Relation][]*types.Attribute{},
	}
	p.dataclasses = loaded.Dataclasses
	for _, f := range in.Files {
		p.addSpace(f.Namespace, f)
	}
	if p.Namespaces["std"] == nil {
		p.addSpace("std", nil)
	}
	for name := range in.Missing {
		if p.Namespaces[name] == nil {
			p.Namespaces[name] = p.emptySpace(name)
		}
		p.Namespaces[name].missing = true
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

func (p *Program) addSpace(name string, f *syntax.File) {
	if ns := p.Namespaces[name]; ns != nil {
		return
	}
	ns := &Namespace{
		Name:    name,
		file:    f,
		Things:  map[string]any{},
		imports: map[string]*Namespace{},
		Vars:    map[string]int{},
		p:       p,
	}
	p.Namespaces[name] = ns
	p.Order = append(p.Order, ns)
	// The namespaces above exist too, even if they only have plug-ins.
	if up, _, qualified := CutName(name); qualified && p.Namespaces[up] == nil {
		p.Namespaces[up] = p.emptySpace(up)
	}
}

func (p *Program) emptySpace(name string) *Namespace {
	return &Namespace{
		Name:    name,
		Things:  map[string]any{},
		imports: map[string]*Namespace{},
		Vars:    map[string]int{},
		p:       p,
	}
}

// Files returns the files of the model in the order in which they were loaded.
func (p *Program) Files() []*syntax.File {
	files := make([]*syntax.File, 0, len(p.Order))
	for _, ns := range p.Order {
		if ns.file != nil {
			files = append(files, ns.file)
		}
	}
	return files
}

// problems are the errors of the definition phase. The first is the error of the
// compile. The phase then goes on and leaves out what only follows from an earlier
// error: a name whose definition failed stays defined, as something that may be
// anything.
type problems struct {
	found    *Collected
	early    int // how many of them are errors in definitions
	warnedAt int // how many warnings there were before the first error
}

// report adds errors; nil and excused ones are ignored.
func (p *Program) report(errs ...*Error) {
	for _, e := range errs {
		if e == nil || e.excused {
			continue
		}
		if p.found == nil {
			p.found = &Collected{seen: map[topic]*Error{}, definition: true}
			p.warnedAt = len(p.Warnings)
		}
		p.found.Add(e)
	}
}

// noteEarly notes how many errors there are before bodies are resolved.
func (p *Program) noteEarly(*definitions) {
	if p.Wrong() {
		p.early = len(p.found.list)
	}
}

func (p *Program) Wrong() bool { return p.found != nil }

// step runs a part of the definition phase. After an error it may panic over
// something that is not defined, which is not reported.
func (p *Program) step(do func()) {
	defer func() {
		if p.Wrong() {
			_ = recover()
		}
	}()
	if !p.Wrong() || !p.found.Full() {
		do()
	}
}

// Failure returns the error of the compile, the errors that were found after it,
// and the warnings that the reference prints beside it.
func (p *Program) Failure() (first *Error, further []*Error, warnings []Warning) {
	for _, w := range p.Warnings[:p.warnedAt] {
		// shadowed variables are looked for once everything is resolved
		if w.Kind != "VariableShadowWarning" || p.in.Static {
			warnings = append(warnings, w)
		}
	}
	return p.found.list[0], p.found.Further(), warnings
}

// BesideLoadErrors joins the problems with the errors of importing the plug-ins,
// of which first is the one that the reference reports.
func (p *Program) BesideLoadErrors(first *Error, further []*Error) (*Error, []*Error) {
	found := p.found.list
	if first.code == diag.Code("InvalidTypeAnnotation") && first.Kind != "RuntimeException" && p.early > 0 {
		// In the reference, annotations are resolved after everything is defined;
		// only whether each parameter has one is checked earlier.
		further = append([]*Error{first}, further...)
		first, found = found[0], found[1:]
	}
	return first, append(further, found...)
}

// unsure reports whether an entity may have attributes and parents that are not
// known.
func (p *Program) unsure(e *types.Entity) bool {
	return slices.ContainsFunc(p.Info[e.Number].Ancestry(),
		func(e *types.Entity) bool { return p.Info[e.Number].broken })
}
