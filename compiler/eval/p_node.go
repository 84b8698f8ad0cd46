package eval

import (
	"fmt"

	"ordain.dev/ordain/compiler/syntax"
)

// node is a resolved piece of the program. String is the text that the
// reference prints for it.
type node interface {
	fmt.Stringer
	where() *place
	tree() syntax.Node
}

// expr is a resolved expression.
type expr interface {
	node
	// layout gives the node and its parts their places in the frame of the
	// expression that they belong to.
	layout(l *layouter)
}

// at is embedded in nodes: where they stand.
type at struct {
	ast  syntax.Node
	span place
}

func (a *at) tree() syntax.Node { return a.ast }

func (a *at) where() *place { return &a.span }

func (a *at) String() string { return syntax.Render(a.ast) }

func standing(n syntax.Node) at { return at{n, n.Where()} }

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
type root struct {
	expr expr
	size int // of the frame
}

func newRoot(x expr) root {
	if _, constant := x.(*literal); constant {
		return root{expr: x}
	}
	l := &layouter{}
	x.layout(l)
	return root{x, l.size}
}
