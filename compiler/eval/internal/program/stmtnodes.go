package program

import (
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// assignNode names an assignment in the errors of its promise.
type assignNode struct{ Written }

// stmt is a resolved statement.
type Stmt interface {
	Node
	isStmt()
}

func (*Assign) isStmt() {}

func (*SetAttr) isStmt() {}

func (*For) isStmt() {}

func (*If) isStmt() {}

func (*ExprStmt) isStmt() {}

func (*Annotations) isStmt() {}

// block is a list of statements with variables of its own.
type Block struct {
	Namespace *Namespace
	Vars      []string // names of the variables, a loop's variable first
	Stmts     []Stmt   // in the order of execution
	// promises are the assignments to attributes inside, which are promised
	// before it is known whether the block runs.
	Promises []PromiseSpec
}

// promiseSpec is an assignment to an attribute in a block: `a.b.c = …`.
type PromiseSpec struct {
	Of   Root
	Attr string
	Node Node
}

// assign is `x = e` for a variable of the block, or for one of the namespace
// of, where that is set: what `a::x = e` sets is what a sets itself.
type Assign struct {
	Written
	Of    *Namespace
	Index int
	Value Root
	// absent: there is no such variable, which is told when the statement runs.
	Absent *Error
}

// setAttr is `x.a = e` or `x.a += e`.
type SetAttr struct {
	Written
	Of     Root
	Attr   string
	Extend bool
	Value  Root
}

// forLoop is `for x in l: … end`.
type For struct {
	Written
	Iter Root
	Body *Block
}

// ifStmt is `if c: … else: … end`.
type If struct {
	Written
	Cond       Root
	Then, Else *Block
	Promises   []PromiseSpec
}

// bare is an expression that stands as a statement.
type ExprStmt struct {
	Written
	Root Root
}

// implement is `implement C using a, b when cond`.
type Implement struct {
	Written
	Info  *EntityInfo
	Using []*Implementation
	When  Root
}

func (n *Implement) String() string {
	def := n.Syntax.(*syntax.Implement)
	names := make([]string, len(def.Using))
	for i, name := range def.Using {
		names[i] = name.Text
	}
	text := "implement " + n.Info.Entity.Name + " using " + strings.Join(names, ", ")
	if def.When != nil {
		text += " when " + syntax.RenderSource(def.When)
	}
	return text
}

// implementation is a body that runs for instances.
type Implementation struct {
	Name      string
	Namespace *Namespace
	At        *Place
	Body      *Block
}

// idle reports whether the statement always holds and makes nothing run.
func (n *Implement) Idle() bool {
	if when, constant := n.When.Expr.(*Literal); !constant || when.Value != types.Bool(true) {
		return false
	}
	for _, impl := range n.Using {
		if len(impl.Body.Stmts) > 0 {
			return false
		}
	}
	return true
}

// annotations are the expressions between the ends of a relation, which are
// evaluated like statements.
type Annotations struct {
	Written
	Notes []*ExprStmt
	Ends  []*types.Attribute // of the relation that have a name: each is annotated
}
