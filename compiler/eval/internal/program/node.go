package program

import (
	"fmt"

	"ordain.dev/ordain/compiler/syntax"
)

// node is a resolved piece of the program. String is the text that the
// reference prints for it.
type Node interface {
	fmt.Stringer
	Where() *Place
	Tree() syntax.Node
}

// expr is a resolved expression.
type Expr interface {
	Node
	// layout gives the node and its parts their places in the frame of the
	// expression that they belong to.
	layout(l *layouter)
}

// at is embedded in nodes: where they stand.
type Written struct {
	Syntax syntax.Node
	Span   Place
}

func (a *Written) Tree() syntax.Node { return a.Syntax }

func (a *Written) Where() *Place { return &a.Span }

func (a *Written) String() string { return syntax.Render(a.Syntax) }

func standing(n syntax.Node) Written { return Written{n, n.Where()} }

// layouter deals out the places of one frame.
type layouter struct {
	size  int
	names map[string]int
}

func (l *layouter) next() int {
	l.size++
	return l.size - 1
}

// name gives the place of a variable: one for all its mentions.
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

// root is an expression with a frame of its own.
type Root struct {
	Expr Expr
	Size int // of the frame
}

func newRoot(x Expr) Root {
	if _, constant := x.(*Literal); constant {
		return Root{Expr: x}
	}
	l := &layouter{}
	x.layout(l)
	return Root{x, l.size}
}
