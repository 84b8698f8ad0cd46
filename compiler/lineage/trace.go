package lineage

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/provenance"
)

// Tracer fills a provenance table from a model. It must not be used by several goroutines at once.
type Tracer struct {
	*provenance.Builder
	files      map[*syntax.File]*located
	statements map[settingKey]*spot
	steps      map[*eval.Origin]int
	calls      map[callKey]provenance.Call
	// Template returns the text of a template of a module, and its path for people.
	Template func(module, path string) (shown, text string, ok bool)

	result    *eval.Result
	variables map[string]types.Value // those at module level, by full name
	templates map[string]*template
	limit     int // how long the entry may become with what a value was computed from
}

// settingKey is everything on which the statement of a setting depends.
type settingKey struct {
	at        *syntax.Span
	attribute string
	argument  bool // at is the constructor of the instance itself
}

type callKey struct {
	entity   *types.Entity
	at       *syntax.Span // of the implementation
	selected *syntax.Span
}

// New makes a tracer for a model, with an empty table.
func New(result *eval.Result) *Tracer {
	return &Tracer{
		Builder: provenance.NewBuilder(), files: map[*syntax.File]*located{}, result: result,
		templates:  map[string]*template{},
		statements: map[settingKey]*spot{}, steps: map[*eval.Origin]int{}, calls: map[callKey]provenance.Call{},
	}
}

// maxElements bounds how many elements of one relation are recorded.
const maxElements = 50

// maxInputElements bounds how many elements of a relation are recorded that a value was computed from.
const maxInputElements = 3

// maxMarks bounds how much is recorded of what one value was computed from.
const maxMarks = 40

// Attribute records under a name where an attribute of an instance was set, and what its value was
// computed from. input: it is not a field of its own, but was read by the function recorded last.
func (t *Tracer) Attribute(into *provenance.Entry, name string, i *eval.Instance, attribute string, input bool) {
	m := provenance.Mark{Name: t.Text(name)}
	if input {
		m.Depth = 1
	} else {
		t.limit = into.Len() + maxMarks
	}
	t.attribute(into, m, i, attribute)
}

func (t *Tracer) attribute(into *provenance.Entry, m provenance.Mark, i *eval.Instance, attribute string) {
	var room [8]eval.Setting
	settings := i.Settings(room[:0], attribute)
	if len(settings) == 0 {
		m.Statement, m.Step = t.Statement(t.unset(i, attribute)), provenance.TopLevel
		into.Set(m)
		return
	}
	most := maxElements
	if m.Depth > 0 {
		most = maxInputElements
	}
	a := i.Entity().Attribute(attribute)
	for _, s := range settings[:min(len(settings), most)] {
		from := t.statement(i, attribute, s)
		m.Implied = s.Implied
		t.set(into, m, from, s.By)
		if a != nil && a.End == nil {
			t.follow(into, from, frame{s.By, i}, m.Depth+1)
		}
	}
}

// unset is the definition of an attribute that nothing set.
func (t *Tracer) unset(i *eval.Instance, attribute string) provenance.Statement {
	s := provenance.Statement{Kind: provenance.Unset}
	if a := i.Entity().Attribute(attribute); a != nil {
		s.Place = t.Place(&a.At)
	}
	return s
}

// Function records that a Python function computed a field.
func (t *Tracer) Function(into *provenance.Entry, name string, at provenance.Place, function string) {
	t.limit = into.Len() + maxMarks
	into.Set(provenance.Mark{
		Name: t.Text(name),
		Statement: t.Statement(provenance.Statement{
			Kind: provenance.Function, Place: at, Plugin: function,
		}),
		Step: provenance.TopLevel,
	})
}

// BuiltIn records a field that has its own default, because the model does not set it.
func (t *Tracer) BuiltIn(into *provenance.Entry, name string) {
	into.Set(provenance.Mark{
		Name: t.Text(name), Statement: t.Statement(provenance.Statement{Kind: provenance.Unset}),
		Step: provenance.TopLevel,
	})
}

func (t *Tracer) located(file *syntax.File) *located {
	l, ok := t.files[file]
	if !ok {
		l = locate(file)
		t.files[file] = l
	}
	return l
}

// set records the statement of a spot, which ran in an implementation.
func (t *Tracer) set(into *provenance.Entry, m provenance.Mark, s *spot, by *eval.Origin) {
	m.Statement, m.Step = t.index(s), t.step(by)
	switch s.Kind {
	case provenance.Default, provenance.Unset, provenance.Template:
	default:
		m.Own = true
	}
	into.Set(m)
}

// index is that of the statement of a spot.
func (t *Tracer) index(s *spot) int {
	if !s.indexed {
		s.number, s.indexed = t.Statement(s.Statement), true
	}
	return s.number
}

func (t *Tracer) statement(i *eval.Instance, attribute string, s eval.Setting) *spot {
	key := settingKey{s.At, attribute, false}
	if s.Expr != nil {
		key.at = s.Expr
	} else {
		for _, made := range i.Made() {
			key.argument = key.argument || made == s.At
		}
	}
	if known, ok := t.statements[key]; ok {
		return known
	}
	found := t.resolve(key, s.Implied)
	t.statements[key] = found
	return found
}

// resolve finds the statement at a place.
func (t *Tracer) resolve(key settingKey, implied bool) *spot {
	if key.at.File == nil {
		return &spot{Statement: provenance.Statement{Kind: provenance.Expression}}
	}
	l := t.located(key.at.File)
	if key.argument && !implied {
		arguments := l.arguments[key.at.Start]
		for _, name := range []string{key.attribute, ""} {
			if found, ok := arguments[name]; ok {
				return found
			}
		}
	}
	if found, ok := l.at[key.at.Start]; ok {
		return found
	}
	return &spot{
		Statement: provenance.Statement{Kind: provenance.Expression, Place: l.place(key.at.Start, key.at.End.Line)},
	}
}

// step returns the index of a step, and adds it with those above it when it is new.
func (t *Tracer) step(o *eval.Origin) int {
	var missing []*eval.Origin
	parent := provenance.TopLevel
	for ; o != nil; o = o.Instance().MadeBy() {
		if known, ok := t.steps[o]; ok {
			parent = known
			break
		}
		missing = append(missing, o)
	}
	for n := len(missing) - 1; n >= 0; n-- {
		i := missing[n].Instance()
		made := t.Statement(provenance.Statement{Kind: provenance.Constructor, Place: t.Place(i.Made()[0])})
		parent = t.Step(t.call(missing[n]), Label(i), parent, made)
		t.steps[missing[n]] = parent
	}
	return parent
}

func (t *Tracer) call(o *eval.Origin) provenance.Call {
	i := o.Instance()
	key := callKey{i.Entity(), o.At(), o.Selected()}
	c, ok := t.calls[key]
	if !ok {
		c = provenance.Call{
			Type: i.Entity().Name, Implementation: o.Implementation(),
			At: t.Place(o.At()), Selected: t.Place(o.Selected()),
		}
		t.calls[key] = c
	}
	return c
}

// Place converts a place in the text.
func (t *Tracer) Place(at *syntax.Span) provenance.Place {
	if at == nil || at.File == nil {
		return provenance.Place{}
	}
	return t.located(at.File).place(at.Start, at.End.Line)
}

// Label names an instance for people: by the attributes of an index, else by
// its name, else by the place where it was made.
func Label(i *eval.Instance) string {
	e := i.Entity()
	names := []string{"name"}
	if len(e.Indexes) > 0 {
		names = e.Indexes[0].Attributes
	}
	var keys []string
	for _, name := range names {
		a := e.Attribute(name)
		if a == nil {
			continue
		}
		v, ok := i.Value(a)
		if !ok {
			continue
		}
		switch v := v.(type) {
		case types.Str, types.Int, types.Bool, types.Float:
			keys = append(keys, name+"="+shorten(types.Text(v)))
		}
	}
	if keys == nil {
		return fmt.Sprintf("%s (%s:%d)", e.Name, i.At().File.Path, i.At().Start.Line)
	}
	return e.Name + "[" + strings.Join(keys, ",") + "]"
}

func shorten(s string) string {
	if runes := []rune(s); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return s
}
