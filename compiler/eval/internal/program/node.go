package program

import (
	"fmt"

	"ordain.dev/ordain/compiler/syntax"
)

// Node is a resolved piece of a model. String is the text that the reference prints
// for it.
type Node interface {
	fmt.Stringer
	Where() *Place
	Tree() syntax.Node
}

// Expr is a resolved expression.
type Expr interface {
	Node
	// layout gives the node and its parts their places in the frame of the
	// expression that they belong to.
	layout(l *layouter)
}

// Written is embedded in nodes. It is the syntax tree of the node and its place.
type Written struct {
	Syntax syntax.Node
	Span   Place
}

func (a *Written) Tree() syntax.Node { return a.Syntax }

func (a *Written) Where() *Place { return &a.Span }

func (a *Written) String() string { return syntax.Render(a.Syntax) }

func standing(n syntax.Node) Written { return Written{n, n.Where()} }

// layouter gives out the places of one frame.
type layouter struct {
	size  int
	names map[string]int
}

func (l *layouter) next() int {
	l.size++
	return l.size - 1
}

// name returns the place of a variable, which all its mentions share.
func (l *layouter) name(name string) int {
	if i, ok := l.names[name]; ok {
		return i
	}
	i := l.next()
	if l.names == nil {
		l.names = map[string]int{}
	}
	l.names[name] = i
	return i
}

// Root is an expression that is evaluated in a frame of its own.
type Root struct {
	Expr Expr
	Size int // the number of variables in the frame
}

func newRoot(x Expr) Root {
	switch x := x.(type) {
	case *Literal:
		return Root{Expr: x}
	case *Ref: // Slot is 0
		return Root{Expr: x, Size: 1}
	}
	l := &layouter{}
	x.layout(l)
	return Root{x, l.size}
}
