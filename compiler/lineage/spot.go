package lineage

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/provenance"
)

// spot is a statement with the expression that gave the value.
type spot struct {
	provenance.Statement
	value syntax.Expr // nil when the tree has none
	in    *block
	// made is the constructor that takes the value as an argument, if there is one.
	made *syntax.Construct
	// element is set for the variable of a loop: value is the list.
	element bool

	number  int // of the statement in the table, once indexed
	indexed bool
	plan    []mention // see planned
	planned bool
}

// block is a list of statements with variables of its own: a module, an
// implementation, a branch, the body of a loop or a comprehension.
type block struct {
	file    *located
	outer   *block // nil for a module
	names   map[string]*spot
	loop    string // the variable of a loop
	element *spot
	when    *spot // the condition under which the block runs
}

func (b *block) assign(name string, s *spot) {
	if b.names == nil {
		b.names = map[string]*spot{}
	}
	if _, taken := b.names[name]; !taken {
		b.names[name] = s
	}
}

// find returns the variable of a block or of one around it, below the module level.
func (b *block) find(name string) *spot {
	for ; b != nil && b.outer != nil; b = b.outer {
		if found, ok := b.names[name]; ok {
			return found
		}
		if b.loop == name {
			return b.element
		}
	}
	return nil
}

// inside reads the statements of a block.
func (l *located) inside(b *block, statements []syntax.Stmt, loop provenance.Place) {
	b.file, b.outer = l, l.in
	l.in = b
	l.block(statements, loop)
	l.in = b.outer
}

// element is the variable of a loop through a list.
func (l *located) element(list syntax.Expr, of provenance.Statement) *spot {
	of.Kind = provenance.Element
	return &spot{Statement: of, value: list, in: l.in, element: true}
}

// comprehension is the block of the variable of a comprehension.
func (l *located) comprehension(e *syntax.Comprehension, outer *block) *block {
	of := provenance.Statement{Kind: provenance.Element, Place: l.place(first(e).Start, last(e))}
	return &block{
		file: l, outer: outer, loop: e.Var.Name,
		element: &spot{Statement: of, value: e.Iter, in: outer, element: true},
	}
}

// member is the spot of an entry of a dict.
func (l *located) member(value syntax.Expr, in *block) *spot {
	s, ok := l.members[value]
	if !ok {
		s = &spot{
			Statement: provenance.Statement{
				Kind: provenance.Member, Place: l.place(first(value).Start, last(value)), Plugin: plugin(value),
			},
			value: value, in: in,
		}
		l.members[value] = s
	}
	return s
}
