package lineage

import (
	"strings"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/provenance"
)

// frame is the run in which a statement was evaluated: in an implementation, or at
// module level when by is nil. Of an argument of a constructor, of is the instance.
type frame struct {
	by *eval.Origin
	of *eval.Instance
}

// follow records what the value of a statement was computed from. Variables of blocks
// are gone by now; where they cannot be told from the tree and the instances that are
// left, the statement that gave them is recorded all the same.
func (t *Tracer) follow(into *provenance.Entry, s *spot, f frame, depth int) {
	if depth > provenance.MaxDepth || s.value == nil {
		return
	}
	for _, m := range s.mentions() {
		t.mention(into, m, s, f, provenance.Mark{Depth: depth})
	}
	for b := s.in; b != nil; b = b.outer {
		if b.when == nil {
			continue
		}
		for _, m := range b.when.mentions() {
			t.mention(into, m, s, f, provenance.Mark{Depth: depth, Condition: true})
		}
	}
}

// mention records one thing that the value of s was computed from.
func (t *Tracer) mention(into *provenance.Entry, m mention, s *spot, f frame, mark provenance.Mark) {
	if into.Len() >= t.limit || mark.Depth > provenance.MaxDepth {
		return
	}
	switch e := m.expr.(type) {
	case *syntax.Conditional:
		t.conditional(into, m, e, s, f, mark)
	case *syntax.Call:
		t.pluginCall(into, m, e, s, f, mark)
	case *syntax.Ref:
		t.variable(into, m, e.Name.Text, f, mark)
	case *syntax.AttrRef:
		t.member(into, m, e, s, f, mark)
	case *syntax.MapLookup:
		t.entry(into, m, e, s, f, mark)
	}
}

// all records several things.
func (t *Tracer) all(into *provenance.Entry, list []mention, s *spot, f frame, mark provenance.Mark) {
	for _, m := range list {
		t.mention(into, m, s, f, mark)
	}
}

// conditional records what the condition read, and what the branch that was taken did:
// both, when it cannot be told which.
func (t *Tracer) conditional(
	into *provenance.Entry,
	m mention,
	e *syntax.Conditional,
	s *spot,
	f frame,
	mark provenance.Mark,
) {
	truth, known := t.truth(e.Cond, place{m.in, s, f})
	if !known || truth {
		t.all(into, m.then, s, f, mark)
	}
	if !known || !truth {
		t.all(into, m.other, s, f, mark)
	}
	mark.Condition = true
	t.all(into, m.parts, s, f, mark)
}

// pluginCall records a call of a plug-in inside of an expression, and its arguments.
func (t *Tracer) pluginCall(
	into *provenance.Entry,
	m mention,
	e *syntax.Call,
	s *spot,
	f frame,
	mark provenance.Mark,
) {
	if e != s.value {
		called := m.in.file.member(e, m.in)
		called.Kind = provenance.Expression
		mark.Name = t.Text(m.name)
		t.set(into, mark, called, f.by)
		mark = provenance.Mark{Depth: mark.Depth + 1}
	}
	t.all(into, m.parts, s, f, mark)
	t.template(into, m, e, s, f, mark)
}

// variable records a variable: one of a block, an attribute of the instance that the
// implementation runs for, or one at module level.
func (t *Tracer) variable(into *provenance.Entry, m mention, name string, f frame, mark provenance.Mark) {
	mark.Name = t.Text(m.name)
	if found := m.in.find(name); found != nil {
		t.spot(into, found, f, mark)
		return
	}
	if f.by != nil {
		of := f.by.Instance()
		if name == "self" {
			made := provenance.Statement{Kind: provenance.Constructor, Place: t.Place(of.Made()[0])}
			mark.Statement = t.Statement(made)
			mark.Step, mark.Own = t.step(of.MadeBy()), true
			into.Set(mark)
			return
		}
		if of.Entity().Attribute(name) != nil {
			t.attribute(into, mark, of, name)
			return
		}
	}
	if found := t.global(name, m.in); found != nil {
		t.spot(into, found, frame{}, mark)
	}
}

// spot records the statement that gave a variable its value.
func (t *Tracer) spot(into *provenance.Entry, s *spot, f frame, mark provenance.Mark) {
	t.set(into, mark, s, f.by)
	t.follow(into, s, frame{by: f.by}, mark.Depth+1)
}

// member records an attribute, and how the instance was reached that has it.
func (t *Tracer) member(
	into *provenance.Entry,
	m mention,
	e *syntax.AttrRef,
	s *spot,
	f frame,
	mark provenance.Mark,
) {
	at := place{m.in, s, f}
	mark.Name = t.Text(m.name)
	if i, ok := t.value(e.X, at).(*eval.Instance); ok && i.Entity().Attribute(e.Attr.Name) != nil {
		t.attribute(into, mark, i, e.Attr.Name)
	} else if from, in := t.definition(e, at); from != nil {
		t.spot(into, from, in, mark)
	}
	if x, is := e.X.(*syntax.Ref); is && x.Name.Text == "self" {
		return
	}
	t.all(into, reads(e.X, m.in), s, f, mark)
}

// entry records an entry of a dict.
func (t *Tracer) entry(
	into *provenance.Entry,
	m mention,
	e *syntax.MapLookup,
	s *spot,
	f frame,
	mark provenance.Mark,
) {
	if from, in := t.definition(e, place{m.in, s, f}); from != nil {
		mark.Name = t.Text(m.name)
		t.spot(into, from, in, mark)
	} else {
		t.all(into, reads(e.X, m.in), s, f, mark)
	}
	t.all(into, reads(e.Key, m.in), s, f, mark)
}

// global finds a variable at module level.
func (t *Tracer) global(name string, from *block) *spot {
	file, last := t.space(name, from)
	if file == nil {
		return nil
	}
	return t.located(file).top.names[last]
}

// space returns the file that a name belongs to, and the name in it.
func (t *Tracer) space(name string, from *block) (*syntax.File, string) {
	file := from.file.file
	cut := strings.LastIndex(name, "::")
	if cut < 0 {
		return file, name
	}
	space := name[:cut]
	for _, s := range file.Statements {
		if i, is := s.(*syntax.Import); is && i.Alias == space {
			space = i.Module.Text
			break
		}
	}
	for _, f := range t.result.Files {
		if f.Namespace == space {
			return f, name[cut+2:]
		}
	}
	return nil, ""
}
