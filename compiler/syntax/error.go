package syntax

import "fmt"

// Kinds of errors: the classes that the reference raises while it parses.
const (
	KindParser          = "inmanta.parser.ParserException"
	KindNamespaceAccess = "inmanta.parser.InvalidNamespaceAccess"
	KindWarning         = "inmanta.parser.ParserWarning"
	KindHyphen          = "inmanta.ast.HyphenException"
	KindDuplicate       = "inmanta.ast.DuplicateException"
	KindTyping          = "inmanta.ast.TypingException"
	KindRuntime         = "inmanta.ast.RuntimeException"
	KindRuntimeWarning  = "inmanta.ast.CompilerRuntimeWarning"
	KindCompiler        = "inmanta.ast.CompilerException"
	KindDecode          = "builtins.UnicodeDecodeError"
	KindValue           = "builtins.ValueError"
)

// Messages that several productions share.
const (
	msgEntityName         = "Invalid identifier: Entity names must start with a capital"
	msgAttributeName      = "Invalid identifier: attribute names must start with a lower case character"
	msgDefaultConstructor = "The use of default constructors is no longer supported"
)

// Error is why a file was refused.
type Error struct {
	Kind    string // the reference's class
	Message string
	At      Span
	// Statement is the text of the statement that reported it; empty for a syntax error.
	Statement string
	// Other is the other place of a DuplicateException.
	Other *Span
	Hint  string
	// Expected and Found say in words what could have followed, and what did.
	Expected, Found string
	// Focus is where a person should look, when that is not At.
	Focus Span
	// Further are errors in later statements.
	Further []*Error
}

// Error is the message as the reference prints it, with the place.
func (e *Error) Error() string {
	switch {
	case e.Other != nil:
		return fmt.Sprintf("%s (original at (%s)) (duplicate at (%s))", e.Message, e.At, e.Other)
	case e.Statement != "":
		return fmt.Sprintf("%s (reported in %s (%s))", e.Message, e.Statement, e.At)
	case e.At.Start.Line == 0:
		return e.Message
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.At)
}

// String is the place as the reference prints it: file:line:column, or file:line where it knows
// no column.
func (s Span) String() string {
	path := ""
	if s.File != nil {
		path = s.File.Path
	}
	if s.Coarse || s.Start.Col == 0 {
		return fmt.Sprintf("%s:%d", path, s.Start.Line)
	}
	return fmt.Sprintf("%s:%d:%d", path, s.Start.Line, s.Start.Col)
}
