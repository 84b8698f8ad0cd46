package module

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"ordain.dev/ordain/compiler/pyyaml"
)

// mostMerged is how many keys the merges of a file may bring. A file of some
// lines can ask for billions; the reference would use up its memory.
const mostMerged = 1 << 20

// merge puts what `<<` names before the keys of a mapping, which come over it.
// The node is changed, once and for all.
func (c *construction) merge(n *pyyaml.Node, depth int) error {
	if depth > deepestCalls {
		return c.raise(pyyaml.ClassRecursion, n, "maximum recursion depth exceeded")
	}
	var found []*pyyaml.Node
	seen := map[any]bool{}
	take := func(from *pyyaml.Node) error {
		if err := c.merge(from, depth+1); err != nil {
			return err
		}
		for i := 0; i < len(from.Content); i += 2 {
			if id := identity(from.Content[i].Target()); !seen[id] {
				seen[id] = true
				found = append(found, from.Content[i], from.Content[i+1])
				c.merged++
			}
		}
		if c.merged > mostMerged {
			return c.raise(classMemory, n, "more than %d keys are merged", mostMerged)
		}
		return nil
	}
	for i := 0; i < len(n.Content); {
		key := n.Content[i].Target()
		if key.Tag != pyyaml.TagMerge {
			if key.Tag == pyyaml.TagValue {
				key.Tag = pyyaml.TagString
			}
			i += 2
			continue
		}
		from := n.Content[i+1].Target()
		n.Content = slices.Delete(slices.Clone(n.Content), i, i+2)
		switch from.Kind {
		case pyyaml.Mapping:
			if err := take(from); err != nil {
				return err
			}
		case pyyaml.Sequence:
			for _, part := range from.Content {
				part = part.Target()
				if part.Kind != pyyaml.Mapping {
					return c.refuse(
						"while constructing a mapping",
						n,
						part,
						"expected a mapping for merging, but found %s",
						part.Kind,
					)
				}
				if err := take(part); err != nil {
					return err
				}
			}
		default:
			return c.refuse(
				"while constructing a mapping",
				n,
				from,
				"expected a mapping or list of mappings for merging, but found %s",
				from.Kind,
			)
		}
	}
	if len(found) > 0 {
		n.Content = append(found, n.Content...)
	}
	return nil
}

// identity tells keys apart as PyYAML does where it merges: as objects of
// Python. Each node has a text of its own, except that Python makes no second
// object of an empty text or of one Latin-1 character. So of two keys `a` the
// first counts, of two keys `name` the second.
func identity(key *pyyaml.Node) any {
	r, size := utf8.DecodeRuneInString(key.Value)
	if key.Kind == pyyaml.Scalar && size == len(key.Value) && (size == 0 || r <= unicode.MaxLatin1) {
		return key.Value
	}
	return key
}
