package module

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Limits for files that come from strangers. inmanta-core takes as many
// collections inside each other as the stack of Python holds, about as many.
const (
	maxYAMLSize  = 1 << 20
	maxYAMLDepth = 450
	maxMerged    = 100_000 // keys that << brings in
)

// value is a node of a YAML file and what it means.
type value struct {
	node *yaml.Node
	// is nil, bool, *big.Int, float64, string, []value, *section, other, or
	// invalid, whose problem is known already.
	is any
}

type (
	// section is a mapping. Its keys are in the order in which they came first.
	section struct {
		keys, values []value
		index        map[string]int
	}
	// other is a kind of value that no field of a project has, such as a date.
	other   string
	invalid struct{}
)

// get returns the value of a text key, or nil.
func (s *section) get(key string) *value {
	if i, ok := s.index[indexOf(key)]; ok {
		return &s.values[i]
	}
	return nil
}

// put sets the value of a key. The last of several wins.
func (s *section) put(key, v value) {
	index := indexOf(key.is)
	if i, ok := s.index[index]; ok {
		s.values[i] = v
		return
	}
	s.index[index] = len(s.keys)
	s.keys, s.values = append(s.keys, key), append(s.values, v)
}

func indexOf(key any) string { return fmt.Sprintf("%T %v", key, key) }

// openYAML reads a file that must hold one section.
func openYAML(path string) (*yamlFile, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	return parseYAML(path, text)
}

// yamlFile is a file whose fields are read. Readers of fields add what is wrong
// to its problems.
type yamlFile struct {
	problems
	top  value
	root *section // what top is
}

func parseYAML(path string, text []byte) (*yamlFile, error) {
	f := &yamlFile{problems: problems{path: path}}
	if len(text) > maxYAMLSize {
		f.add(problem{text: fmt.Sprintf("it is larger than %d bytes", maxYAMLSize), fix: "keep data elsewhere"})
		return nil, f.err()
	}
	node, wrong := decodeYAML(text)
	if wrong != nil {
		f.add(*wrong)
		return nil, f.err()
	}
	f.top = value{node: node}
	if len(node.Content) > 0 {
		t := tree{problems: &f.problems, made: map[*yaml.Node]any{}}
		f.top = t.value(node.Content[0], 0)
	}
	switch is := f.top.is.(type) {
	case *section:
		f.root = is
		for _, k := range is.keys {
			if _, ok := k.is.(string); !ok {
				f.wrong(k, KindNoMapping, "a key is "+whatIs(k), "write the key in quotes, or leave it out")
			}
		}
		return f, nil
	case invalid:
	default:
		f.wrong(f.top, KindNoMapping, "it must hold lines `key: value`, but is "+whatIs(f.top),
			"write at least a line such as `name: example`")
	}
	return nil, f.err()
}

// wrong notes a problem of a value.
func (f *yamlFile) wrong(v value, kind, text, fix string) {
	f.add(problem{kind, v.node.Line, v.node.Column, text, fix})
}

// yamlVersion matches the directive of any version that PyYAML takes; the library
// takes 1.1 only.
var yamlVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^%YAML 1\.\d+`) })

// decodeYAML parses a text that must hold one document.
func decodeYAML(text []byte) (*yaml.Node, *problem) {
	if bytes.HasPrefix(text, []byte("%")) {
		text = yamlVersion().ReplaceAll(text, []byte("%YAML 1.1"))
	}
	var doc, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return &doc, nil
	}
	if err == nil {
		err = d.Decode(&second)
		if err == nil {
			return nil, &problem{line: second.Line, text: "it holds more than one document",
				fix: "remove the line --- in the midst of the file"}
		}
		if errors.Is(err, io.EOF) {
			return &doc, nil
		}
	}
	return nil, syntaxProblem(text, err)
}

// syntaxProblems translates what the library says into sentences for authors of
// project files.
var syntaxProblems = []struct{ found, text, fix string }{
	{"tab character", "a line is indented with a tab", "indent with spaces"},
	{"cannot start any token", "a value begins with a character that YAML keeps for itself",
		"put a text in quotes; indent with spaces, not with tabs"},
	{"mapping values are not allowed", "a colon stands where no key can be",
		"put a text that holds `: ` in quotes, and begin the keys that belong together in the same column"},
	{"could not find expected ':'", "a key has no colon", "write `key: value`, with a space after the colon"},
	{"did not find expected key", "a line is indented in another way than the keys above it",
		"begin the keys that belong together in the same column"},
	{"did not find expected '-' indicator", "a line is indented in another way than the list above it",
		"begin the elements of a list in the same column"},
	{"did not find expected ',' or", "a list or section in brackets is not closed, or lacks a comma",
		"separate the elements with commas, and close the bracket"},
	{"unexpected end of stream", "a quote is not closed", "close the quote"},
	{"unexpected document indicator", "a quote is not closed before the line with --- or ...", "close the quote"},
	{
		"block sequence entries are not allowed",
		"a list begins in the midst of a line",
		"begin a list on a line of its own",
	},
	{"unknown escape character", "a text in double quotes holds a backslash before a letter that means nothing",
		`write \\ for a backslash, or use single quotes`},
	{"unknown anchor", "an alias (*) names no anchor above it", "put a text that begins with * in quotes"},
	{"control characters", "there is a control character", "remove the character: most editors do not show it"},
}

func syntaxProblem(text []byte, err error) *problem {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, said, ok := strings.Cut(rest, ": "); ok {
			line, _ = strconv.Atoi(number)
			message = said
		}
	}
	p := &problem{line: cmp.Or(lineOfProblem(text), line), text: "it is not YAML: " + message}
	for _, known := range syntaxProblems {
		if strings.Contains(message, known.found) {
			p.text, p.fix = known.text, known.fix
			break
		}
	}
	return p
}

// lineOfProblem returns the first line after the longest beginning of a text that
// parses. The line that the library names is that of the collection around it.
// Long texts are not looked through: it returns 0 for them.
func lineOfProblem(text []byte) int {
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines) > 500 || len(text) > 64<<10 {
		return 0
	}
	for n := len(lines) - 1; n > 0; n-- {
		text = text[:len(text)-len(lines[n])]
		if yaml.Unmarshal(text, &yaml.Node{}) == nil {
			return n + 1
		}
	}
	return 1
}

// tree makes values of nodes.
type tree struct {
	*problems
	made   map[*yaml.Node]any // by the nodes that aliases may name
	merged int
}

func (t *tree) wrong(n *yaml.Node, kind, text, fix string) any {
	t.add(problem{kind, n.Line, n.Column, text, fix})
	return invalid{}
}

// value makes the value of a node. What several aliases name is made once.
func (t *tree) value(n *yaml.Node, depth int) value {
	target := n
	if n.Kind == yaml.AliasNode {
		target = n.Alias
	}
	is, known := t.made[target]
	switch {
	case known && is == underway:
		is = t.wrong(n, "", "*"+n.Value+" stands within what it names", "write the value out")
	case !known:
		t.made[target] = underway
		is = t.make(target, depth)
		t.made[target] = is
	}
	return value{n, is}
}

const mendTag = "leave the tag out, or put a text that begins with ! in quotes"

// underway marks a node whose value is being made.
const underway = other("underway")

func (t *tree) make(n *yaml.Node, depth int) any {
	if depth > maxYAMLDepth {
		return t.wrong(n, KindTooDeep, "too many lists and sections stand inside each other", "write fewer of them")
	}
	tag := n.ShortTag()
	switch {
	case n.Kind == yaml.ScalarNode:
		is, wrong := scalar(n)
		if wrong != "" {
			kind := ""
			if wrong == aNumber {
				kind = KindNoValue
			}
			return t.wrong(n, kind, n.Tag+" "+n.Value+" is not "+wrong, mendTag)
		}
		return is
	case n.Kind == yaml.SequenceNode && (tag == "!!seq" || tag == "!!omap" || tag == "!!pairs"):
		list := make([]value, len(n.Content))
		for i, item := range n.Content {
			list[i] = t.value(item, depth+1)
		}
		if tag != "!!seq" {
			return other("a list of pairs")
		}
		return list
	case n.Kind == yaml.MappingNode && (tag == "!!map" || tag == "!!set"):
		s := t.section(n, depth)
		if tag == "!!set" {
			return other("a set")
		}
		return s
	}
	return t.wrong(n, "", "the tag "+n.Tag+" has no meaning here", mendTag)
}

func (t *tree) section(n *yaml.Node, depth int) *section {
	s := &section{index: map[string]int{}}
	for i := 0; i < len(n.Content); i += 2 { // what << brings in comes first: own keys win
		if n.Content[i].Tag == "!!merge" {
			t.merge(s, t.value(n.Content[i+1], depth+1))
		}
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			continue
		}
		k := t.value(n.Content[i], depth+1)
		v := t.value(n.Content[i+1], depth+1)
		switch k.is.(type) {
		case []value, *section:
			t.wrong(n.Content[i], "", "a key is "+whatIs(k), "put a text that begins with [ or { in quotes")
		case invalid:
		default:
			s.put(k, v)
		}
	}
	return s
}

// merge puts the keys of a section, or of several in a list, into another one.
// As in PyYAML 6.0.4, the last section of a list wins.
func (t *tree) merge(into *section, v value) {
	list, ok := v.is.([]value)
	if !ok {
		list = []value{v}
	}
	for _, from := range list {
		switch is := from.is.(type) {
		case *section:
			if t.merged += len(is.keys); t.merged > maxMerged {
				if t.merged-len(is.keys) <= maxMerged {
					t.wrong(v.node, "", fmt.Sprintf("more than %d keys are merged", maxMerged), "merge less with <<")
				}
				return
			}
			for i, k := range is.keys {
				into.put(k, is.values[i])
			}
		case invalid:
		default:
			t.wrong(from.node, "", "<< takes a section or a list of sections, not "+whatIs(from),
				"write `<<: *name`, where &name marks a section")
		}
	}
}
