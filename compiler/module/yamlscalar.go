package module

import (
	"fmt"
	"strings"
	"unicode"

	"ordain.dev/ordain/compiler/pyyaml"
	"ordain.dev/ordain/internal/python/pytext"
)

// scalar makes a value of a node by its tag.
func (c *construction) scalar(n *pyyaml.Node) (any, error) {
	switch n.Tag {
	case pyyaml.TagNull,
		pyyaml.TagBool,
		pyyaml.TagInt,
		pyyaml.TagFloat,
		pyyaml.TagBinary,
		pyyaml.TagTimestamp,
		pyyaml.TagString:
	default:
		return nil, c.refuse("", nil, n, "could not determine a constructor for the tag %s", pytext.Quote(n.Tag))
	}
	text, err := c.text(n, 0)
	if err != nil {
		return nil, err
	}
	switch n.Tag {
	case pyyaml.TagNull:
		return nil, nil
	case pyyaml.TagBool:
		return c.truth(n, lower(text))
	case pyyaml.TagInt:
		return c.integer(n, text)
	case pyyaml.TagFloat:
		return c.float(n, text)
	case pyyaml.TagBinary:
		return c.binary(n, text)
	case pyyaml.TagTimestamp:
		return c.timestamp(n)
	}
	return text, nil
}

// text gives the text of a scalar, or of the one that a mapping has behind `=`.
func (c *construction) text(n *pyyaml.Node, depth int) (string, error) {
	n = n.Target()
	if depth > deepestCalls {
		return "", c.raise(pyyaml.ClassRecursion, n, "maximum recursion depth exceeded")
	}
	switch n.Kind {
	case pyyaml.Scalar:
		return n.Value, nil
	case pyyaml.Mapping:
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Target().Tag == pyyaml.TagValue {
				return c.text(n.Content[i+1], depth+1)
			}
		}
	}
	return "", c.refuse("", nil, n, "expected a scalar node, but found %s", n.Kind)
}

func (c *construction) truth(n *pyyaml.Node, text string) (any, error) {
	switch text {
	case "yes", "true", "on":
		return true, nil
	case "no", "false", "off":
		return false, nil
	}
	return nil, c.raise(classKey, n, "%s", pytext.Quote(text))
}

// lower is Python's, which keeps halves of characters.
func lower(text string) string {
	var b strings.Builder
	for text != "" {
		r, size := pytext.Decode(text)
		switch {
		case r >= 0xd800 && r <= 0xdfff:
			b.WriteString(text[:size])
		case r == 'İ':
			b.WriteString("i\u0307")
		default:
			b.WriteRune(unicode.ToLower(r))
		}
		text = text[size:]
	}
	return b.String()
}

// binary reads base64 as Python does: what is no letter of the code is passed
// over, and a full group of letters and = ends it.
func (c *construction) binary(n *pyyaml.Node, text string) (any, error) {
	if problem := notASCII(text); problem != "" {
		return nil, c.refuse("", nil, n, "failed to convert base64 data into ascii: %s", problem)
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	data := []byte{}
	group, pads, left := 0, 0, 0
	for i := 0; i < len(text); i++ {
		if text[i] == '=' {
			if group >= 2 {
				if pads++; group+pads >= 4 {
					return data, nil
				}
			}
			continue
		}
		bits := strings.IndexByte(letters, text[i])
		if bits < 0 {
			continue
		}
		pads = 0
		switch group {
		case 1:
			data = append(data, byte(left<<2|bits>>4))
		case 2:
			data = append(data, byte(left<<4|bits>>2))
		case 3:
			data = append(data, byte(left<<6|bits))
		}
		left = bits
		group = (group + 1) % 4
	}
	switch group {
	case 0:
		return data, nil
	case 1:
		return nil, c.refuse(
			"",
			nil,
			n,
			"failed to decode base64 data: Invalid base64-encoded string: number of data characters (%d) cannot be 1 more than a multiple of 4",
			len(data)/3*4+1,
		)
	}
	return nil, c.refuse("", nil, n, "failed to decode base64 data: Incorrect padding")
}

// notASCII is what Python says of a text with other characters.
func notASCII(text string) string {
	first, last, at := -1, -1, 0
	char := ""
	for rest := text; rest != ""; at++ {
		_, size := pytext.Decode(rest)
		if ascii := rest[0] < 0x80; !ascii && first < 0 {
			first, char = at, rest[:size]
		} else if ascii && first >= 0 {
			break
		}
		if first >= 0 {
			last = at
		}
		rest = rest[size:]
	}
	switch {
	case first < 0:
		return ""
	case first == last:
		return fmt.Sprintf(
			"'ascii' codec can't encode character '%s' in position %d: ordinal not in range(128)",
			pytext.ASCII(char),
			first,
		)
	}
	return fmt.Sprintf(
		"'ascii' codec can't encode characters in position %d-%d: ordinal not in range(128)",
		first,
		last,
	)
}
