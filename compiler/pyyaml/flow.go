package pyyaml

// flowSequence reads [a, b, c: d]: a pair is a mapping of its own.
func (c *composer) flowSequence(n *Node, depth int) {
	start := c.takeToken().start
	for c.more(n, start, flowSequenceEnd) {
		if c.next(keyMark) {
			n.Content = append(n.Content, c.pair(depth))
		} else {
			n.Content = append(n.Content, c.node(place{}, depth))
		}
	}
	n.End = c.takeToken().end
}

// more tells whether an element comes, and goes over the comma before it. A
// comma may end the list.
func (c *composer) more(n *Node, start Mark, end kind) bool {
	if len(n.Content) > 0 && !c.next(end) {
		if !c.next(flowEntry) {
			t := c.peekToken()
			c.refuse(
				ClassParser,
				"while parsing a flow "+n.Kind.String(),
				start,
				"expected ',' or '"+string(end)+"', but got "+t.kind.quoted(),
				t.start,
			)
		}
		c.takeToken()
	}
	return !c.next(end)
}

// pair reads a key and a value in a list.
func (c *composer) pair(depth int) *Node {
	key := c.takeToken()
	n := &Node{Kind: Mapping, Tag: TagMap, Style: Flow, Mark: key.start}
	c.limit(n, depth)
	n.Content = append(n.Content, c.behind(key, place{}, depth+1, valueMark, flowEntry, flowSequenceEnd))
	n.Content = append(n.Content, c.flowValue(depth+1, flowSequenceEnd))
	n.End = c.peekToken().start
	return n
}

func (c *composer) flowValue(depth int, end kind) *Node {
	if !c.next(valueMark) {
		return c.empty(c.peekToken().start)
	}
	return c.behind(c.takeToken(), place{}, depth, flowEntry, end)
}

// flowMapping reads {a: b, c}: a key may have no value.
func (c *composer) flowMapping(n *Node, depth int) {
	start := c.takeToken().start
	for c.more(n, start, flowMappingEnd) {
		if c.next(keyMark) {
			key := c.behind(c.takeToken(), place{}, depth, valueMark, flowEntry, flowMappingEnd)
			n.Content = append(n.Content, key, c.flowValue(depth, flowMappingEnd))
		} else {
			key := c.node(place{}, depth)
			n.Content = append(n.Content, key, c.empty(c.peekToken().start))
		}
	}
	n.End = c.takeToken().end
}
