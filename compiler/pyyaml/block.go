package pyyaml

// blockSequence reads entries to the end of their column.
func (c *composer) blockSequence(n *Node, depth int) {
	start := c.takeToken().start
	for c.next(blockEntry) {
		c.entry(n, depth, blockEntry, blockEnd)
	}
	n.End = c.endBlock("while parsing a block collection", start)
}

// indentlessSequence reads entries as long as there are some. No token ends it.
func (c *composer) indentlessSequence(n *Node, depth int) {
	for c.next(blockEntry) {
		c.entry(n, depth, blockEntry, keyMark, valueMark, blockEnd)
	}
	n.End = c.peekToken().start
}

// entry reads a - and a node, unless a token comes that says there is none.
func (c *composer) entry(n *Node, depth int, none ...kind) {
	n.Content = append(n.Content, c.behind(c.takeToken(), place{block: true}, depth, none...))
}

// behind reads the node behind an indicator.
func (c *composer) behind(t token, p place, depth int, none ...kind) *Node {
	if c.next(none...) {
		return c.empty(t.end)
	}
	return c.node(p, depth)
}

// blockMapping reads keys and values to the end of their column. Either may be
// missing.
func (c *composer) blockMapping(n *Node, depth int) {
	p := place{block: true, indentless: true}
	start := c.takeToken().start
	for c.next(keyMark) {
		key := c.behind(c.takeToken(), p, depth, keyMark, valueMark, blockEnd)
		var value *Node
		if c.next(valueMark) {
			value = c.behind(c.takeToken(), p, depth, keyMark, valueMark, blockEnd)
		} else {
			value = c.empty(c.peekToken().start)
		}
		n.Content = append(n.Content, key, value)
	}
	n.End = c.endBlock("while parsing a block mapping", start)
}

func (c *composer) endBlock(context string, start Mark) Mark {
	if !c.next(blockEnd) {
		t := c.peekToken()
		c.refuse(ClassParser, context, start, "expected <block end>, but found "+t.kind.quoted(), t.start)
	}
	return c.takeToken().end
}
