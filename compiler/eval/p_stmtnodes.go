package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// assignNode names an assignment in the errors of its promise.
type assignNode struct{ at }

// stmt is a resolved statement.
type stmt interface {
	node
	isStmt()
}

func (*assign) isStmt() {}

func (*setAttr) isStmt() {}

func (*forLoop) isStmt() {}

func (*ifStmt) isStmt() {}

func (*bare) isStmt() {}

func (*annotations) isStmt() {}

// block is a list of statements with variables of its own.
type block struct {
	ns    *namespace
	vars  []string // names of the variables, a loop's variable first
	stmts []stmt   // in the order of execution
	// promises are the assignments to attributes inside, which are promised
	// before it is known whether the block runs.
	promises []promiseSpec
}

// promiseSpec is an assignment to an attribute in a block: `a.b.c = …`.
type promiseSpec struct {
	of   root
	attr string
	n    node
}

// assign is `x = e` for a variable of the block, or for one of the namespace
// of, where that is set: what `a::x = e` sets is what a sets itself.
type assign struct {
	at
	of    *namespace
	index int
	value root
	// absent: there is no such variable, which is told when the statement runs.
	absent *Error
}

// setAttr is `x.a = e` or `x.a += e`.
type setAttr struct {
	at
	of     root
	attr   string
	extend bool
	value  root
}

// forLoop is `for x in l: … end`.
type forLoop struct {
	at
	iter root
	body *block
}

// ifStmt is `if c: … else: … end`.
type ifStmt struct {
	at
	cond      root
	then, els *block
	promises  []promiseSpec
}

// bare is an expression that stands as a statement.
type bare struct {
	at
	root root
}

// implement is `implement C using a, b when cond`.
type implement struct {
	at
	info  *entityInfo
	using []*implementation
	when  root
}

func (n *implement) String() string {
	def := n.ast.(*syntax.Implement)
	names := make([]string, len(def.Using))
	for i, name := range def.Using {
		names[i] = name.Text
	}
	text := "implement " + n.info.entity.Name + " using " + strings.Join(names, ", ")
	if def.When != nil {
		text += " when " + syntax.RenderSource(def.When)
	}
	return text
}

// implementation is a body that runs for instances.
type implementation struct {
	name string
	ns   *namespace
	at   *place
	body *block
}

// idle reports whether the statement always holds and makes nothing run.
func (n *implement) idle() bool {
	if when, constant := n.when.expr.(*literal); !constant || when.value != types.Bool(true) {
		return false
	}
	for _, impl := range n.using {
		if len(impl.body.stmts) > 0 {
			return false
		}
	}
	return true
}

// annotations are the expressions between the ends of a relation, which are
// evaluated like statements.
type annotations struct {
	at
	notes []*bare
	ends  []*types.Attribute // of the relation that have a name: each is annotated
}
