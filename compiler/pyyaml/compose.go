package pyyaml

import (
	"maps"

	"ordain.dev/ordain/internal/python/pytext"
)

// Deepest is how many collections may stand in each other. It is where the
// reference's Python gives up when `inmanta compile` reads a project.
const Deepest = 488

// defaultHandles are those that need no directive.
var defaultHandles = map[string]string{"!": "!", "!!": TagPrefix}

// composer makes nodes of tokens.
type composer struct {
	*scanner
	handles map[string]string
	anchors map[string]*Node
}

// Parse reads a text that holds one document; nil if it holds none. The error is
// an *Error, which calls the text by its name.
func Parse(name string, text []byte) (root *Node, err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case *Error:
			root, err = nil, failed
		default:
			panic(failed)
		}
	}()
	c := &composer{scanner: newScanner(name, text), anchors: map[string]*Node{}}
	if root = c.document(); root == nil {
		return nil, nil
	}
	if start := c.explicitStart(); !start.None() {
		c.refuse(
			ClassComposer,
			"expected a single document in the stream",
			root.Mark,
			"but found another document",
			start,
		)
	}
	return root, nil
}

func (c *composer) refuse(class, context string, start Mark, problem string, at Mark) {
	panic(&Error{Class: class, Name: c.name, Context: context, ContextMark: start, Problem: problem, ProblemMark: at})
}

// document reads the first document.
func (c *composer) document() *Node {
	var root *Node
	switch {
	case !c.next(directive, documentStart, streamEnd):
		c.handles = defaultHandles
		root = c.node(place{block: true}, 1)
	case c.explicitStart().None():
		return nil
	case c.next(directive, documentStart, documentEnd, streamEnd):
		root = c.empty(c.peekToken().start)
	default:
		root = c.node(place{block: true}, 1)
	}
	if c.next(documentEnd) {
		c.takeToken()
	}
	return root
}

// explicitStart goes over the ends of documents, directives and ---, and gives
// where they begin; none at the end of the text.
func (c *composer) explicitStart() Mark {
	for c.next(documentEnd) {
		c.takeToken()
	}
	if c.next(streamEnd) {
		return Mark{}
	}
	start := c.peekToken().start
	c.directives()
	if !c.next(documentStart) {
		t := c.peekToken()
		c.refuse(ClassParser, "", Mark{}, "expected '<document start>', but found "+t.kind.quoted(), t.start)
	}
	c.takeToken()
	return start
}

func (c *composer) directives() {
	version := false
	c.handles = map[string]string{}
	for c.next(directive) {
		t := c.takeToken()
		switch {
		case t.value == "YAML" && version:
			c.refuse(ClassParser, "", Mark{}, "found duplicate YAML directive", t.start)
		case t.value == "YAML":
			version = true
			if !isOne(t.detail) {
				c.refuse(ClassParser, "", Mark{}, "found incompatible YAML document (version 1.* is required)", t.start)
			}
		case t.value == "TAG":
			if _, ok := c.handles[t.handle]; ok {
				c.refuse(ClassParser, "", Mark{}, "duplicate tag handle "+pytext.Quote(t.handle), t.start)
			}
			c.handles[t.handle] = t.detail
		}
	}
	declared := c.handles
	c.handles = maps.Clone(defaultHandles)
	maps.Copy(c.handles, declared)
}

// isOne tells whether digits are those of the number 1.
func isOne(digits string) bool {
	for len(digits) > 1 && digits[0] == '0' {
		digits = digits[1:]
	}
	return digits == "1"
}

// place is what may stand where a node does.
type place struct {
	block bool // block collections
	// indentless: a sequence in the column of its key.
	indentless bool
}

// node reads a node: an alias, or a scalar or collection with what stands before it.
func (c *composer) node(p place, depth int) *Node {
	if c.next(alias) {
		return c.alias()
	}
	n := c.properties()
	bare := n.Mark.None() // neither tag nor anchor
	t := c.peekToken()
	if bare {
		n.Mark, n.End = t.start, t.start
	}
	// What there is is told from the token, which is not taken yet: an anchor that
	// is there twice is found before the collection is.
	var fill func(*Node, int)
	switch {
	case p.indentless && t.kind == blockEntry:
		n.Kind, n.Style, fill = Sequence, Indentless, c.indentlessSequence
	case t.kind == scalar:
		n.Kind, n.Style, n.Value, n.End = Scalar, t.style, t.value, t.end
		c.takeToken()
	case t.kind == flowSequenceStart:
		n.Kind, n.Style, fill = Sequence, Flow, c.flowSequence
	case t.kind == flowMappingStart:
		n.Kind, n.Style, fill = Mapping, Flow, c.flowMapping
	case p.block && t.kind == blockSequenceStart:
		n.Kind, n.Style, fill = Sequence, Block, c.blockSequence
	case p.block && t.kind == blockMappingStart:
		n.Kind, n.Style, fill = Mapping, Block, c.blockMapping
	case !bare:
		n.Kind = Scalar
	default:
		context := "while parsing a flow node"
		if p.block {
			context = "while parsing a block node"
		}
		c.refuse(ClassParser, context, n.Mark, "expected the node content, but found "+t.kind.quoted(), t.start)
	}
	c.declare(n)
	n.resolve()
	if fill != nil {
		c.limit(n, depth)
		n.End = Mark{}
		fill(n, depth+1)
	}
	return n
}

// limit refuses a collection in too many others.
func (c *composer) limit(n *Node, depth int) {
	if depth > Deepest {
		panic(
			&Error{
				Class:       ClassRecursion,
				Name:        c.name,
				Problem:     "maximum recursion depth exceeded",
				ProblemMark: n.Mark,
			},
		)
	}
}

// properties reads a tag and an anchor, in either order. Its mark is where they
// begin; none if there are none.
func (c *composer) properties() *Node {
	n := &Node{}
	var tagged token
	take := func(k kind) {
		if !c.next(k) {
			return
		}
		t := c.takeToken()
		if n.Mark.None() {
			n.Mark = t.start
		}
		n.End = t.end
		if k == tag {
			tagged = t
		} else {
			n.Anchor = t.value
		}
	}
	if c.next(anchor) {
		take(anchor)
		take(tag)
	} else {
		take(tag)
		take(anchor)
	}
	n.Tag = tagged.value
	if tagged.handle != "" {
		prefix, ok := c.handles[tagged.handle]
		if !ok {
			c.refuse(
				ClassParser,
				"while parsing a node",
				n.Mark,
				"found undefined tag handle "+pytext.Quote(tagged.handle),
				tagged.start,
			)
		}
		n.Tag = prefix + tagged.value
	}
	return n
}

func (c *composer) alias() *Node {
	t := c.takeToken()
	to, ok := c.anchors[t.value]
	if !ok {
		c.refuse(ClassComposer, "", Mark{}, "found undefined alias "+pytext.Quote(t.value), t.start)
	}
	return &Node{
		Kind:   Alias,
		Value:  to.Value,
		Tag:    to.Tag,
		Style:  to.Style,
		Mark:   t.start,
		End:    t.end,
		Alias:  to,
		Within: to.End.None(),
	}
}

// declare remembers what aliases may name.
func (c *composer) declare(n *Node) {
	if n.Anchor == "" {
		return
	}
	if first := c.anchors[n.Anchor]; first != nil {
		c.refuse(
			ClassComposer,
			"found duplicate anchor "+pytext.Quote(n.Anchor)+"; first occurrence",
			first.Mark,
			"second occurrence",
			n.Mark,
		)
	}
	c.anchors[n.Anchor] = n
}

// empty is a node of which nothing is written.
func (c *composer) empty(at Mark) *Node {
	return &Node{Kind: Scalar, Tag: TagNull, Mark: at, End: at}
}
