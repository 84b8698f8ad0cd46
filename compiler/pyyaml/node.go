package pyyaml

// Kind is a kind of node.
type Kind uint8

// Kinds of nodes.
const (
	Scalar Kind = iota + 1
	Sequence
	Mapping
	Alias
)

// String is the kind in PyYAML's words.
func (k Kind) String() string {
	switch k {
	case Scalar:
		return "scalar"
	case Sequence:
		return "sequence"
	case Mapping:
		return "mapping"
	case Alias:
		return "alias"
	}
	return "none"
}

// Style is how a node is written.
type Style uint8

// Styles of nodes.
const (
	Plain Style = iota // a scalar without quotes, or none at all
	SingleQuoted
	DoubleQuoted
	Literal
	Folded
	Block
	Flow
	// Indentless is a sequence that begins in the column of its key.
	Indentless
)

// Node is a value as it is written.
type Node struct {
	Kind Kind
	// Tag is the kind of value that it is, with what its handle stands for; of a
	// node without a tag, the one that PyYAML takes it for.
	Tag string
	// Value is the text of a scalar. Half of a character, which an escape may
	// write, has the three bytes of its number; no other text is not UTF-8.
	Value  string
	Style  Style
	Anchor string
	Mark   // where it begins, with its tag and anchor
	End    Mark
	// Content has the elements of a sequence; keys and values of a mapping in turn.
	Content []*Node
	// Alias is the node that an alias stands for, and Within tells that the alias
	// is inside of it.
	Alias  *Node
	Within bool
}

// Target gives the node that is meant: the one that an alias names, or itself.
func (n *Node) Target() *Node {
	if n.Kind == Alias {
		return n.Alias
	}
	return n
}
