package lineage

import (
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/provenance"
)

// located maps places in a file to statements.
type located struct {
	file *syntax.File
	// at has statements by the place of the expression that is their value, or of a part of
	// that.
	at map[syntax.Pos]*spot
	// arguments has the statements of the arguments of a constructor, by its place.
	arguments map[syntax.Pos]map[string]*spot
	top       *block            // the module level
	in        *block            // the block that is being read
	made      *syntax.Construct // the constructor whose arguments are being read
	members   map[syntax.Expr]*spot
}

func locate(file *syntax.File) *located {
	l := &located{
		file:      file,
		at:        map[syntax.Pos]*spot{},
		arguments: map[syntax.Pos]map[string]*spot{},
		top:       &block{},
		members:   map[syntax.Expr]*spot{},
	}
	l.top.file = l
	l.in = l.top
	l.block(file.Statements, provenance.Place{})
	return l
}

// maxSource is how much of a source line is kept.
const maxSource = 200

// Shown shortens the path of a file of an installed module, so that it is the same on every machine.
func Shown(path string) string {
	if i := strings.LastIndex(path, "/site-packages/"); i >= 0 {
		return path[i+len("/site-packages/"):]
	}
	return path
}

// place is a range of lines of the file.
func (l *located) place(start syntax.Pos, end int32) provenance.Place {
	p := provenance.Place{
		File:    Shown(l.file.Path),
		Line:    int(start.Line),
		Column:  int(start.Col),
		EndLine: int(max(end, start.Line)),
	}
	if n := p.Line; n >= 1 && n <= len(l.file.Lines) {
		p.Source = l.file.Lines[n-1]
		if runes := []rune(p.Source); len(p.Source) > maxSource && len(runes) > maxSource {
			p.Source = string(runes[:maxSource])
		}
	}
	return p
}

func (l *located) block(statements []syntax.Stmt, loop provenance.Place) {
	for _, s := range statements {
		l.statement(s, loop)
	}
}

func (l *located) statement(s syntax.Stmt, loop provenance.Place) {
	of := provenance.Statement{Kind: provenance.Expression, Loop: loop}
	switch s := s.(type) {
	case *syntax.Assign:
		of.Kind = provenance.Assignment
		if s.Extend {
			of.Kind = provenance.Extension
		}
		of.Place = l.place(first(s.Target).Start, last(s))
		l.expression(s.Value, of)
		if name, is := s.Target.(*syntax.Ref); is {
			of.Plugin = plugin(s.Value)
			l.in.assign(name.Name.Text, &spot{Statement: of, value: s.Value, in: l.in})
		}
	case *syntax.For:
		of.Place = l.place(s.At.Start, last(s.Iter))
		l.expression(s.Iter, of)
		l.inside(&block{loop: s.Var.Name, element: l.element(s.Iter, of)}, s.Body, of.Place)
	case *syntax.If:
		of.Place = l.place(s.At.Start, last(s.Cond))
		l.expression(s.Cond, of)
		when := &spot{Statement: of, value: s.Cond, in: l.in}
		l.inside(&block{when: when}, s.Then, loop)
		l.inside(&block{when: when}, s.Else, loop)
	case *syntax.Implementation:
		l.inside(&block{}, s.Body, loop)
	case *syntax.Entity:
		for _, a := range s.Attributes {
			if a.Default != nil {
				of.Kind, of.Place = provenance.Default, l.place(a.Name.At.Start, last(a.Default))
				l.expression(a.Default, of)
			}
		}
	case *syntax.Relation:
		for _, note := range s.Annotations {
			of.Place = l.place(first(note).Start, last(note))
			l.expression(note, of)
		}
	case syntax.Expr:
		of.Place = l.place(first(s).Start, last(s))
		l.expression(s, of)
	}
}

// expression records that an expression and its parts are the value of a statement. The arguments of
// a constructor are statements of their own.
func (l *located) expression(e syntax.Expr, of provenance.Statement) {
	if e == nil {
		return
	}
	if _, taken := l.at[e.Where().Start]; !taken {
		noted := &spot{Statement: of, value: e, in: l.in, made: l.made}
		noted.Plugin = plugin(e)
		l.at[e.Where().Start] = noted
	}
	switch e := e.(type) {
	case *syntax.Construct:
		l.construct(e, of)
		return
	case *syntax.Comprehension:
		l.expression(e.Iter, of)
		of.Loop = l.place(first(e).Start, last(e))
		outer := l.in
		l.in = l.comprehension(e, outer)
		l.expression(e.Value, of)
		l.expression(e.Guard, of)
		l.in = outer
		return
	}
	for _, part := range operands(e) {
		l.expression(part, of)
	}
}

func (l *located) construct(e *syntax.Construct, of provenance.Statement) {
	outer := l.made
	l.made = e
	defer func() { l.made = outer }()
	arguments := make(map[string]*spot, len(e.Named)+len(e.Splats))
	for _, a := range e.Named {
		one := of
		one.Kind, one.Place = provenance.Argument, l.place(a.Name.At.Start, max(last(a.Value), a.Name.At.End.Line))
		l.expression(a.Value, one)
		one.Plugin = plugin(a.Value)
		arguments[a.Name.Name] = &spot{Statement: one, value: a.Value, in: l.in, made: e}
	}
	for _, s := range e.Splats {
		one := of
		one.Kind, one.Place = provenance.Argument, l.place(first(s.Expr).Start, last(s.Expr))
		l.expression(s.Expr, one)
		arguments[""] = &spot{Statement: one, value: s.Expr, in: l.in, made: e} // for arguments without an entry
	}
	l.arguments[e.At.Start] = arguments
}

// plugin is the name of the plug-in that an expression calls; empty when it is something else, such
// as a cast.
func plugin(e syntax.Expr) string {
	call, is := e.(*syntax.Call)
	if !is {
		return ""
	}
	if _, cast := types.LookupPrimitive(call.Func.Text); cast {
		return ""
	}
	return call.Func.Text
}

func spread(splats []syntax.Splat) []syntax.Expr {
	out := make([]syntax.Expr, len(splats))
	for i, s := range splats {
		out[i] = s.Expr
	}
	return out
}

// operands are the expressions directly in an expression.
func operands(e syntax.Expr) []syntax.Expr {
	named := func(list []syntax.Argument) []syntax.Expr {
		out := make([]syntax.Expr, len(list))
		for i, a := range list {
			out[i] = a.Value
		}
		return out
	}
	switch e := e.(type) {
	case *syntax.AttrRef:
		return []syntax.Expr{e.X}
	case *syntax.Call:
		return slices.Concat(e.Args, named(e.Named), spread(e.Splats))
	case *syntax.Construct:
		return slices.Concat(named(e.Named), spread(e.Splats))
	case *syntax.Lookup:
		return slices.Concat(named(e.Named), spread(e.Splats))
	case *syntax.ShortLookup:
		return slices.Concat([]syntax.Expr{e.X}, named(e.Named), spread(e.Splats))
	case *syntax.MapLookup:
		return []syntax.Expr{e.X, e.Key}
	case *syntax.List:
		return e.Items
	case *syntax.Dict:
		var out []syntax.Expr
		for _, entry := range e.Entries {
			out = append(out, entry.Value)
		}
		return out
	case *syntax.Comprehension:
		return withoutNil(e.Value, e.Iter, e.Guard)
	case *syntax.Conditional:
		return []syntax.Expr{e.Cond, e.Then, e.Else}
	case *syntax.Not:
		return []syntax.Expr{e.X}
	case *syntax.Binary:
		return []syntax.Expr{e.L, e.R}
	case *syntax.IsDefined:
		return withoutNil(e.X)
	}
	return nil
}

func withoutNil(list ...syntax.Expr) []syntax.Expr {
	return slices.DeleteFunc(list, func(e syntax.Expr) bool { return e == nil })
}

// first is the leftmost place of an expression.
func first(e syntax.Expr) syntax.Span {
	at := e.Where()
	switch e := e.(type) {
	case *syntax.Call:
		at = e.Func.At
	case *syntax.Construct:
		at = e.Type.At
	case *syntax.Lookup:
		at = e.Type.At
	}
	for _, part := range operands(e) {
		if p := first(part); p.Start.Line < at.Start.Line ||
			p.Start.Line == at.Start.Line && p.Start.Col < at.Start.Col {
			at = p
		}
	}
	return at
}

// last is the last line of a statement that is not a block.
func last(n syntax.Node) int32 {
	line := n.Where().End.Line
	switch n := n.(type) {
	case *syntax.Assign:
		return max(line, last(n.Target), last(n.Value))
	case syntax.Expr:
		for _, part := range operands(n) {
			line = max(line, last(part))
		}
	}
	return line
}
