package syntax

import (
	"math/big"
	"strings"
)

// Pos is a place in a file: line and column count from 1, columns in characters.
type Pos struct{ Line, Col int32 }

// Span is a piece of a file, from Start up to but not including End.
type Span struct {
	File       *File
	Start, End Pos
	// Coarse: the reference knows only the line of this place and prints file:line.
	// The columns are for the carets below a source line.
	Coarse bool
}

// File is one parsed model file.
type File struct {
	Path       string // as shown to people: relative to the project if it is inside
	Namespace  string // such as __config__ or std::testing
	Doc        string // leading multi-line string
	Statements []Stmt // in source order
	Warnings   []Warning
	Lines      []string // the text, for carets
}

// Warning is a problem that does not stop the parser, such as a bad escape.
type Warning struct {
	Kind    string // the reference's class, such as inmanta.parser.ParserWarning
	Message string
	At      Span
}

// Node is a node of the tree. Where returns its place: of a definition its name, of a
// statement the token that the reference reports.
type Node interface{ Where() Span }

// Stmt is a definition or a statement. Any Expr is one too.
type Stmt interface {
	Node
	stmt()
}

// Expr is an expression.
type Expr interface {
	Stmt
	expr()
}

// Ident is a name with its place.
type Ident struct {
	Name string
	At   Span
}

// Name is a possibly qualified name: a::b::C. Parts are joined by "::".
type Name struct {
	Text string
	At   Span
}

// Qualified reports whether the name has a namespace part.
func (n Name) Qualified() bool { return strings.Contains(n.Text, "::") }

// Where returns the place of the name.
func (n Name) Where() Span { return n.At }

// Where returns the place of the identifier.
func (i Ident) Where() Span { return i.At }

// TypeRef is a type as written: name, [] and ?.
type TypeRef struct {
	Name     Name
	List     bool // name[]
	Nullable bool // trailing ?
}

// Definitions.
type (
	// Import is `import a::b as c`.
	Import struct {
		Module Name
		Alias  string // empty: visible under its own name
		At     Span
	}

	// Entity is `entity C extends P: … end`.
	Entity struct {
		Name       Ident
		Parents    []Name
		Doc        string
		Attributes []*Attribute
		At         Span // the name
		Word       Span // the keyword
	}

	// Attribute is one line of an entity.
	Attribute struct {
		Type    TypeRef // for dict attributes Name.Text is "dict"
		Name    Ident
		Default Expr // nil: none; a *Literal, *List or *Dict of constants
		Undef   bool // = undef: like an attribute without a default, it removes an inherited one
		At      Span
	}

	// Implementation is `implementation n for C: … end`. Body is in source
	// order; it is evaluated in reverse order, as the reference does.
	Implementation struct {
		Name Ident
		For  Name
		Doc  string
		Body []Stmt
		At   Span
	}

	// Implement is `implement C using a, b when cond`.
	Implement struct {
		Entity Name
		Using  []Name // without `parents`
		// Parents: `using parents` was among them.
		Parents bool
		When    Expr // nil: always
		Doc     string
		At      Span
	}

	// Multiplicity is [n], [l:], [:h] or [l:h]. Without a limit High is
	// Unlimited; the language takes bounds below zero too.
	Multiplicity struct{ Low, High int }

	// RelationEnd is one side of a relation: `C.x [m]`. A side without a name
	// (one-directional relation) has an empty Attribute.
	RelationEnd struct {
		Entity       Name
		Attribute    Ident
		Multiplicity Multiplicity
	}

	// Relation is `A.x [m] -- B.y [n]`, or `A.x [m] e1, e2 B.y [n]` with annotations.
	// Left.Multiplicity is the one written beside A.x.
	Relation struct {
		Left, Right RelationEnd
		Annotations []Expr
		Doc         string
		At          Span
	}

	// Typedef is `typedef n as base matching expression` or, when
	// Constructor is set, the rejected form with an upper-case name.
	Typedef struct {
		Name  Ident
		Base  Name
		Match Expr // boolean over `self`, or a *Regex
		Doc   string
		At    Span
	}

	// Index is `index C(a, b)`.
	Index struct {
		Entity     Name
		Attributes []Ident
		At         Span
	}
)

// Statements.
type (
	// Assign is `ref = expr` or, when Extend is set, `ref += expr`.
	Assign struct {
		Target Expr // *Ref or *AttrRef
		Extend bool
		Value  Expr
		At     Span
	}

	// For is `for x in expr: … end`. Body in source order, evaluated in reverse.
	For struct {
		Var  Ident
		Iter Expr
		Body []Stmt
		At   Span
	}

	// If is `if …: … elif …: … else: … end`; an elif is an If alone in Else.
	If struct {
		Cond Expr
		Then []Stmt
		Else []Stmt
		At   Span
	}
)

// LiteralKind is the kind of a constant.
type LiteralKind uint8

// Kinds of constants.
const (
	NullLiteral LiteralKind = iota
	BoolLiteral
	IntLiteral
	FloatLiteral
	StringLiteral
)

// Op is a binary operator, spelt as in the source: "and", "==", "not in" …
type Op string

// Expressions.
type (
	// Literal is a constant without interpolation.
	Literal struct {
		Kind  LiteralKind
		Bool  bool
		Int   *big.Int // IntLiteral
		Float float64
		Str   string
		At    Span
	}

	// Regex is the /…/ of `matching /…/`, without the slashes and `\/` undone.
	Regex struct {
		Pattern string
		At      Span
	}

	// Format is a string with {{ a.b }} in it. Text is the whole string; each Part has
	// the text to replace (with its braces) and the reference.
	Format struct {
		Text  string
		Parts []FormatPart
		At    Span
	}

	// FormatPart is one {{ … }}.
	FormatPart struct {
		Match string // as written, with braces
		Ref   Expr   // *Ref or *AttrRef
	}

	// FString is f"…": literal pieces and fields in order.
	FString struct {
		Text   string // the whole string, with escapes decoded
		Pieces []FPiece
		At     Span
	}

	// FPiece is literal text, or a field when Field is set.
	FPiece struct {
		Text string
		// Field is the name in a field as written, with blanks; Ref is the reference. Ref
		// is nil for a field that inmanta-core forgets, because it follows an empty field
		// or an escaped brace: evaluating it is an error.
		Field      string
		IsField    bool
		Ref        Expr     // *Ref or *AttrRef
		Conversion rune     // 0, 'r', 's' or 'a'
		Spec       []FPiece // format specification; it may have fields
	}

	// Ref is a variable, possibly qualified.
	Ref struct {
		Name Name
	}

	// AttrRef is `x.a`.
	AttrRef struct {
		X    Expr
		Attr Ident
		At   Span
	}

	// Argument is `k = v` of a constructor, call or lookup.
	Argument struct {
		Name  Ident
		Value Expr
	}

	// Splat is the d of `**d` in arguments.
	Splat struct {
		Expr
		At Span // the two stars
	}

	// Call is `ns::f(args, k=v, **d)`.
	Call struct {
		Func   Name
		Args   []Expr
		Named  []Argument
		Splats []Splat // each **d
		At     Span
	}

	// Construct is `ns::C(k=v, **d)`.
	Construct struct {
		Type   Name
		Named  []Argument
		Splats []Splat
		At     Span
	}

	// Lookup is `C[k=v]`.
	Lookup struct {
		Type   Name
		Named  []Argument
		Splats []Splat
		At     Span
	}

	// ShortLookup is `x.rel[k=v]`.
	ShortLookup struct {
		X      Expr // what stands before .rel
		Rel    Ident
		Named  []Argument
		Splats []Splat
		At     Span
	}

	// MapLookup is `d["k"]`.
	MapLookup struct {
		X, Key Expr
		At     Span
	}

	// List is `[a, b]`.
	List struct {
		Items []Expr
		At    Span
	}

	// Comprehension is `[e for x in l … if g …]`. Nested `for` clauses are
	// nested in Value: only the outermost is at the top.
	Comprehension struct {
		Value Expr
		Var   Ident
		Iter  Expr
		Guard Expr // nil: none; several are joined by and
		At    Span
	}

	// DictEntry is one `"k": v`.
	DictEntry struct {
		Key   string
		Value Expr
	}

	// Dict is `{"k": v}`.
	Dict struct {
		Entries []DictEntry
		At      Span
	}

	// Conditional is `c ? a : b`.
	Conditional struct {
		Cond, Then, Else Expr
		At               Span
	}

	// Not is `not x`.
	Not struct {
		X  Expr
		At Span
	}

	// Binary is `l op r`.
	Binary struct {
		Op   Op
		L, R Expr
		At   Span
		// Negated marks the `in` of `l not in r`, which stands in a Not.
		Negated bool
	}

	// IsDefined is `x.y is defined` or `x is defined`. X is nil in the second
	// form, where Attr is the variable.
	IsDefined struct {
		X    Expr
		Attr Ident
		At   Span
	}
)

func (n *Import) Where() Span         { return n.At }
func (n *Entity) Where() Span         { return n.At }
func (n *Attribute) Where() Span      { return n.At }
func (n *Implementation) Where() Span { return n.At }
func (n *Implement) Where() Span      { return n.At }
func (n *Relation) Where() Span       { return n.At }
func (n *Typedef) Where() Span        { return n.At }
func (n *Index) Where() Span          { return n.At }
func (n *Assign) Where() Span         { return n.At }
func (n *For) Where() Span            { return n.At }
func (n *If) Where() Span             { return n.At }
func (n *Literal) Where() Span        { return n.At }
func (n *Regex) Where() Span          { return n.At }
func (n *Format) Where() Span         { return n.At }
func (n *FString) Where() Span        { return n.At }
func (n *Ref) Where() Span            { return n.Name.At }
func (n *AttrRef) Where() Span        { return n.At }
func (n *Call) Where() Span           { return n.At }
func (n *Construct) Where() Span      { return n.At }
func (n *Lookup) Where() Span         { return n.At }
func (n *ShortLookup) Where() Span    { return n.At }
func (n *MapLookup) Where() Span      { return n.At }
func (n *List) Where() Span           { return n.At }
func (n *Comprehension) Where() Span  { return n.At }
func (n *Dict) Where() Span           { return n.At }
func (n *Conditional) Where() Span    { return n.At }
func (n *Not) Where() Span            { return n.At }
func (n *Binary) Where() Span         { return n.At }
func (n *IsDefined) Where() Span      { return n.At }

func (*Import) stmt()         {}
func (*Entity) stmt()         {}
func (*Implementation) stmt() {}
func (*Implement) stmt()      {}
func (*Relation) stmt()       {}
func (*Typedef) stmt()        {}
func (*Index) stmt()          {}
func (*Assign) stmt()         {}
func (*For) stmt()            {}
func (*If) stmt()             {}
func (*Literal) stmt()        {}
func (*Regex) stmt()          {}
func (*Format) stmt()         {}
func (*FString) stmt()        {}
func (*Ref) stmt()            {}
func (*AttrRef) stmt()        {}
func (*Call) stmt()           {}
func (*Construct) stmt()      {}
func (*Lookup) stmt()         {}
func (*ShortLookup) stmt()    {}
func (*MapLookup) stmt()      {}
func (*List) stmt()           {}
func (*Comprehension) stmt()  {}
func (*Dict) stmt()           {}
func (*Conditional) stmt()    {}
func (*Not) stmt()            {}
func (*Binary) stmt()         {}
func (*IsDefined) stmt()      {}

func (*Literal) expr()       {}
func (*Regex) expr()         {}
func (*Format) expr()        {}
func (*FString) expr()       {}
func (*Ref) expr()           {}
func (*AttrRef) expr()       {}
func (*Call) expr()          {}
func (*Construct) expr()     {}
func (*Lookup) expr()        {}
func (*ShortLookup) expr()   {}
func (*MapLookup) expr()     {}
func (*List) expr()          {}
func (*Comprehension) expr() {}
func (*Dict) expr()          {}
func (*Conditional) expr()   {}
func (*Not) expr()           {}
func (*Binary) expr()        {}
func (*IsDefined) expr()     {}
