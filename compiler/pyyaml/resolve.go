package pyyaml

import (
	"regexp"
	"strings"
	"sync"
)

// Tags of YAML itself.
const (
	TagPrefix    = "tag:yaml.org,2002:"
	TagNull      = TagPrefix + "null"
	TagBool      = TagPrefix + "bool"
	TagInt       = TagPrefix + "int"
	TagFloat     = TagPrefix + "float"
	TagTimestamp = TagPrefix + "timestamp"
	TagBinary    = TagPrefix + "binary"
	TagString    = TagPrefix + "str"
	TagSequence  = TagPrefix + "seq"
	TagMap       = TagPrefix + "map"
	TagSet       = TagPrefix + "set"
	TagOrdered   = TagPrefix + "omap"
	TagPairs     = TagPrefix + "pairs"
	TagMerge     = TagPrefix + "merge"
	TagValue     = TagPrefix + "value"
	tagYAML      = TagPrefix + "yaml"
)

// resolve gives a tag to a node that has none. A single ! says the same as none,
// but of a scalar in quotes that it is read as if it had none.
func (n *Node) resolve() {
	plain := n.Tag == "" && n.Style == Plain || n.Tag == "!"
	switch {
	case n.Tag != "" && n.Tag != "!":
	case n.Kind == Sequence:
		n.Tag = TagSequence
	case n.Kind == Mapping:
		n.Tag = TagMap
	case plain:
		n.Tag = plainTag(n.Value)
	default:
		n.Tag = TagString
	}
}

// What stands in no quotes is a number or a date where it looks like one to YAML 1.1.
var (
	floatPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|` +
				`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`,
		)
	})
	intPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^[-+]?(?:0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$`,
		)
	})
	timePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^[0-9]{4}-(?:[0-9]{2}-[0-9]{2}|[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?` +
				`(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$`,
		)
	})
)

// plainTag tells what a scalar is taken for.
func plainTag(text string) string {
	if text != "" && text != "\n" {
		text = strings.TrimSuffix(text, "\n") // as Python's $ does
	}
	switch text {
	case "", "~", "null", "Null", "NULL":
		return TagNull
	case "yes",
		"Yes",
		"YES",
		"no",
		"No",
		"NO",
		"true",
		"True",
		"TRUE",
		"false",
		"False",
		"FALSE",
		"on",
		"On",
		"ON",
		"off",
		"Off",
		"OFF":
		return TagBool
	case "<<":
		return TagMerge
	case "=":
		return TagValue
	case "!", "&", "*":
		return tagYAML
	}
	if strings.IndexByte("-+.0123456789", text[0]) < 0 {
		return TagString
	}
	switch {
	case floatPattern().MatchString(text):
		return TagFloat
	case text[0] != '.' && intPattern().MatchString(text):
		return TagInt
	case timePattern().MatchString(text):
		return TagTimestamp
	}
	return TagString
}
