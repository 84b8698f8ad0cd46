package eval

import (
	"fmt"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
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
func (a *at) where() *place     { return &a.span }
func (a *at) String() string    { return syntax.Render(a.ast) }

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

// scope holds the variables of a block while it runs.
type scope struct {
	vars []variable
	up   *scope
	// self is the instance of an implementation, in the scope of its body.
	self *Instance
	by   *origin
	ns   *namespace
}

// inner makes the scope of a block in s.
func (r *run) inner(s *scope, n int, ns *namespace) *scope {
	return &scope{vars: make([]variable, n), up: s, by: s.by, ns: ns}
}

// inOrder gives the elements of a list to a collector.
func inOrder(r *run, v types.Value, at *place, c collector) *Error {
	if l, ok := v.(*types.List); ok {
		for _, item := range l.Items {
			if err := c.receive(r, item, at, nil); err != nil {
				return err
			}
		}
		return nil
	}
	return c.receive(r, v, at, nil)
}

func isUnknown(v types.Value) bool {
	_, ok := v.(types.Unknown)
	return ok
}

// unknown is a value that is not known, and no other such value.
func (r *run) unknown() types.Value {
	r.unknowns++
	return types.Unknown{Number: r.unknowns}
}

var (
	null    = types.Null{}
	unknown = types.Unknown{}
)
