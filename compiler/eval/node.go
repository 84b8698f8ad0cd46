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

// expr is a resolved expression. An evaluation has two steps:
//
//	need   finds or makes the variables that must have a value first
//	eval   computes the value, once they all have one
//
// Between the two lies any amount of time. What need found lies in a frame
// that both see; layout gave every node its place in it.
type expr interface {
	node
	// need fills the frame and starts the units that the parts require.
	need(r *run, s *scope, f frame) *Error
	// needGradual is need for an expression that feeds a list: elements that
	// are known early go to c. It reports whether eval's value still has to
	// be given to c as well.
	needGradual(r *run, s *scope, f frame, c collector) (bool, *Error)
	eval(r *run, s *scope, f frame) (types.Value, *Error)
	// layout gives the node and its parts places in the frame.
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
	expr
	size int
}

func newRoot(x expr) root {
	if _, constant := x.(*literal); constant {
		return root{expr: x}
	}
	l := &layouter{}
	x.layout(l)
	return root{x, l.size}
}

func (x root) frame() frame {
	if x.size == 0 {
		return nil
	}
	return make(frame, x.size)
}

// prepare makes a frame and fills it.
func (x root) prepare(r *run, s *scope) (frame, *Error) {
	f := x.frame()
	return f, x.need(r, s, f)
}

func (x root) prepareGradual(r *run, s *scope, c collector) (frame, bool, *Error) {
	f := x.frame()
	report, err := x.needGradual(r, s, f, c)
	return f, report, err
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
	r.prog.unknowns++
	return types.Unknown{Number: r.prog.unknowns}
}

var (
	null    = types.Null{}
	unknown = types.Unknown{}
)
