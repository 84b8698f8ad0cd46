package program

import (
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// assignNode is an assignment, in the errors of its promise.
type assignNode struct{ Written }

// Stmt is a resolved statement.
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

// Block is a list of statements with variables of its own.
type Block struct {
	Namespace *Namespace
	Vars      []string // a loop's variable first
	Stmts     []Stmt   // in the order of execution
	// Promises are the assignments to attributes inside. They are promised before it
	// is known whether the block runs.
	Promises []PromiseSpec
}

// PromiseSpec is an assignment to an attribute in a block: `a.b.c = …`.
type PromiseSpec struct {
	Of   Root
	Attr string
	Node Node
}

// Assign is `x = e` for a variable of the block. Of is set for `a::x = e`, which
// sets the same variable as x = e in namespace a.
type Assign struct {
	Written
	Of    *Namespace
	Index int
	Value Root
	// Absent is the error for a variable that does not exist, which is reported when
	// the statement runs.
	Absent *Error
}

// SetAttr is `x.a = e` or `x.a += e`.
type SetAttr struct {
	Written
	Of     Root
	Attr   string
	Extend bool
	Value  Root
}

// For is `for x in l: … end`.
type For struct {
	Written
	Iter Root
	Body *Block
}

// If is `if c: … else: … end`.
type If struct {
	Written
	Cond       Root
	Then, Else *Block
	Promises   []PromiseSpec
}

// ExprStmt is an expression as a statement.
type ExprStmt struct {
	Written
	Root Root
}

// Implement is `implement C using a, b when cond`.
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

// Implementation is a body of statements that runs for instances.
type Implementation struct {
	Name      string
	Namespace *Namespace
	At        *Place
	Body      *Block
}

// Idle reports whether the statement always holds and runs nothing.
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

// Annotations are the expressions between the ends of a relation, which are
// evaluated like statements.
type Annotations struct {
	Written
	Notes []*ExprStmt
	Ends  []*types.Attribute // the ends that have a name: each is annotated
}
