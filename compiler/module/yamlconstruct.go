package module

import (
	"fmt"

	"ordain.dev/ordain/compiler/pyyaml"
)

// Classes of errors that Python raises while PyYAML makes values.
const (
	classKey       = KindNoKey
	classType      = KindNoMapping
	classAttribute = KindNoSection
	classIndex     = "builtins.IndexError"
	classOverflow  = "builtins.OverflowError"
	classMemory    = "builtins.MemoryError"
)

// deepestCalls is how many calls in each other Python takes while values are
// made. To find a node it needs two for each collection.
const deepestCalls = 2 * pyyaml.Deepest

// construction makes the values of a document.
//
// A collection is made empty and filled later, after those that were made before
// it: level by level, not depth first. So which of two errors is told does not
// follow the order of the lines.
type construction struct {
	name    string
	made    map[*pyyaml.Node]any
	later   []func() error
	aliases bool
	merged  int // keys
}

func construct(name string, root *pyyaml.Node) (value, error) {
	c := &construction{name: name, made: map[*pyyaml.Node]any{}}
	v, err := c.of(root)
	for len(c.later) > 0 && err == nil {
		fill := c.later[0]
		c.later = c.later[1:]
		err = fill()
	}
	if err != nil {
		return value{}, err
	}
	if c.aliases {
		untangle(v)
	}
	return v, nil
}

// refuse is an error of PyYAML itself. The context may be empty.
func (c *construction) refuse(context string, start *pyyaml.Node, at *pyyaml.Node, format string, args ...any) error {
	e := &pyyaml.Error{
		Class:       pyyaml.ClassConstructor,
		Name:        c.name,
		Context:     context,
		Problem:     fmt.Sprintf(format, args...),
		ProblemMark: at.Mark,
	}
	if start != nil {
		e.ContextMark = start.Mark
	}
	return e
}

// raise is an error of Python.
func (c *construction) raise(class string, at *pyyaml.Node, format string, args ...any) error {
	return &pyyaml.Error{Class: class, Name: c.name, Problem: fmt.Sprintf(format, args...), ProblemMark: at.Mark}
}

func (c *construction) of(n *pyyaml.Node) (value, error) {
	t := n.Target()
	c.aliases = c.aliases || t != n
	is, known := c.made[t]
	if !known {
		var err error
		if is, err = c.make(t); err != nil {
			return value{}, err
		}
		c.made[t] = is
	}
	return value{n, is}, nil
}

func (c *construction) make(n *pyyaml.Node) (any, error) {
	switch n.Tag {
	case pyyaml.TagSequence:
		list := []value{}
		if n.Kind == pyyaml.Sequence {
			list = make([]value, len(n.Content)) // the copies of it that exist by then see it filled
		}
		c.fill(func() error { return c.sequence(list, n) })
		return list, nil
	case pyyaml.TagMap:
		m := &mapping{at: map[any]int{}}
		c.fill(func() error { return c.mapping(m, n) })
		return m, nil
	case pyyaml.TagSet:
		m := &mapping{at: map[any]int{}}
		c.fill(func() error { return c.mapping(m, n) })
		return set{m}, nil
	case pyyaml.TagOrdered:
		list := make([]value, len(n.Content))
		c.fill(func() error { return c.pairs(list, "while constructing an ordered map", n) })
		return list, nil
	case pyyaml.TagPairs:
		list := make([]value, len(n.Content))
		c.fill(func() error { return c.pairs(list, "while constructing pairs", n) })
		return list, nil
	}
	return c.scalar(n)
}

func (c *construction) fill(later func() error) { c.later = append(c.later, later) }

func (c *construction) sequence(list []value, n *pyyaml.Node) (err error) {
	if n.Kind != pyyaml.Sequence {
		return c.refuse("", nil, n, "expected a sequence node, but found %s", n.Kind)
	}
	for i, item := range n.Content {
		if list[i], err = c.of(item); err != nil {
			return err
		}
	}
	return nil
}

func (c *construction) mapping(m *mapping, n *pyyaml.Node) error {
	if n.Kind != pyyaml.Mapping {
		return c.refuse("", nil, n, "expected a mapping node, but found %s", n.Kind)
	}
	if err := c.merge(n, 0); err != nil {
		return err
	}
	for i := 0; i < len(n.Content); i += 2 {
		k, err := c.of(n.Content[i])
		if err != nil {
			return err
		}
		switch k.is.(type) {
		case []value, *mapping, set:
			return c.refuse("while constructing a mapping", n, n.Content[i].Target(), "found unhashable key")
		}
		v, err := c.of(n.Content[i+1])
		if err != nil {
			return err
		}
		m.put(k, v)
	}
	return nil
}

// pairs fills a list from mappings with one key each.
func (c *construction) pairs(list []value, context string, n *pyyaml.Node) (err error) {
	if n.Kind != pyyaml.Sequence {
		return c.refuse(context, n, n, "expected a sequence, but found %s", n.Kind)
	}
	for i, item := range n.Content {
		item = item.Target()
		switch {
		case item.Kind != pyyaml.Mapping:
			return c.refuse(context, n, item, "expected a mapping of length 1, but found %s", item.Kind)
		case len(item.Content) != 2:
			return c.refuse(context, n, item, "expected a single mapping item, but found %d items", len(item.Content)/2)
		}
		pair := &tuple{}
		if pair.key, err = c.of(item.Content[0]); err != nil {
			return err
		}
		if pair.value, err = c.of(item.Content[1]); err != nil {
			return err
		}
		list[i] = value{item, pair}
	}
	return nil
}
