package module

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// value is what a node of a YAML file means, in the reading of YAML 1.1, which
// differs from what the library takes from YAML 1.2: `yes` is true, 010 is
// eight, 1:30 is ninety, 2020-01-01 is a date, and `<<` merges.
type value struct {
	node *yaml.Node
	// is nil, bool, *big.Int, float64, string, []byte, time.Time, []value,
	// *mapping or set.
	is any
}

type (
	// mapping holds its keys in the order in which they were first there.
	mapping struct {
		keys, values []value
		at           map[any]int // by what a key is
	}
	// set is a set, a list of pairs, or a collection in itself: nothing that a key
	// of ours takes.
	set struct{}
)

// get finds the value of a text key; nil when there is none.
func (m *mapping) get(key string) *value {
	if i, ok := m.at[key]; ok {
		return &m.values[i]
	}
	return nil
}

func (m *mapping) put(key, v value, hash any) {
	if i, ok := m.at[hash]; ok {
		m.values[i] = v
		return
	}
	m.at[hash] = len(m.keys)
	m.keys, m.values = append(m.keys, key), append(m.values, v)
}

// deepest is how many collections may stand in each other: about what the
// reference's Python can take.
const deepest = 400

// notYAML is a value that cannot be: of a kind of its own where the reference's
// reader of YAML fails with one.
type notYAML struct {
	kind string
	node *yaml.Node
	text string
}

func (e *notYAML) Error() string { return e.text }

var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`line (\d+)`) })

// yamlParserError matches what the library's parser finds, not its scanner.
var yamlParserError = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^line \d+: did not find expected ('[-,]|key|node|<)`)
})

// parseYAML reads a file that holds one document; an empty one is null.
func parseYAML(path string) (value, error) {
	text, err := readText(path)
	if err != nil {
		return value{}, err
	}
	refuse := func(line, column int, hint, format string, args ...any) error {
		return &Error{
			Kind: KindInvalidMetadata, Message: "Invalid yaml syntax in " + path + ": " + fmt.Sprintf(format, args...),
			At: at(path, line, column), Hint: hint,
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(withoutDirectives(text)))
	var doc, second yaml.Node
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		line, problem := yamlProblem(err)
		return value{}, refuse(line, 0, "", "%s", problem)
	}
	if err := d.Decode(&second); err == nil {
		return value{}, refuse(max(1, second.Line), 0, "remove the line `---` in the midst of the file", "another document begins, and there must be one only")
	} else if !errors.Is(err, io.EOF) {
		line, problem := yamlProblem(err)
		return value{}, refuse(line, 0, "", "%s", problem)
	}
	if len(doc.Content) == 0 {
		return value{node: &doc}, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.MappingNode && root.Style&yaml.FlowStyle == 0 {
		if line := behindMapping(text, root); line > 0 {
			return value{}, refuse(line, 0, "begin all keys at the first column", "a line is indented less than the keys before it")
		}
	}
	v, err := reading{map[string]*yaml.Node{}, map[*yaml.Node]bool{}, map[*yaml.Node]value{}}.of(root, 0)
	var not *notYAML
	if !errors.As(err, &not) {
		return v, err
	}
	if not.kind == "" {
		return value{}, refuse(max(1, not.node.Line), not.node.Column, "", "%s", not.text)
	}
	return value{}, &Error{Kind: not.kind, Message: "Invalid value in " + path + ": " + not.text, At: at(path, max(1, not.node.Line), not.node.Column)}
}

// yamlProblem takes the library's words apart.
func yamlProblem(err error) (line int, problem string) {
	line, problem = 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine().FindStringSubmatch(problem); m != nil {
		line, _ = strconv.Atoi(m[1])
	}
	if yamlParserError().MatchString(problem) {
		line++ // the library counts these from 0
		problem = yamlLine().ReplaceAllString(problem, "line "+strconv.Itoa(line))
	}
	return line, problem
}

// withoutDirectives blanks `%YAML 1.2` and unknown directives before the
// document, which the library refuses and which say nothing here.
func withoutDirectives(text []byte) []byte {
	if !bytes.HasPrefix(text, []byte("%")) {
		return text
	}
	out := bytes.Clone(text)
	start := 0
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("---")) {
			return out
		}
		if len(bytes.TrimSpace(line)) > 0 && line[0] != '#' && line[0] != '%' {
			break // a directive wants a document that begins with ---
		}
		if bytes.HasPrefix(line, []byte("%")) && !bytes.HasPrefix(line, []byte("%TAG")) && !bytes.HasPrefix(line, []byte("%YAML 2")) {
			out[start] = '#'
		}
		start += len(line)
	}
	return text
}

// behindMapping gives the line of a key that is indented less than the first
// one of the document: there the document ends. The library reads on.
func behindMapping(text []byte, root *yaml.Node) int {
	indent := root.Column - 1
	if indent <= 0 {
		return 0
	}
	for i := 0; i < len(root.Content); i += 2 {
		if key := root.Content[i]; key.Column-1 < indent {
			return key.Line
		}
	}
	return 0
}

// reading is what is known of a document while its values are made.
type reading struct {
	anchors map[string]*yaml.Node
	within  map[*yaml.Node]bool  // what is being read
	made    map[*yaml.Node]value // of what has an anchor: aliases may multiply it
}

const (
	tagPrefix = "tag:yaml.org,2002:"
	tagMerge  = tagPrefix + "merge"
	tagValue  = tagPrefix + "value"
	tagString = tagPrefix + "str"
)

func (r reading) of(n *yaml.Node, depth int) (value, error) {
	if depth > deepest {
		return value{}, &notYAML{KindTooDeep, n, "too many lists and sections in each other"}
	}
	if n.Kind == yaml.AliasNode {
		if r.within[n.Alias] { // it holds itself
			return value{n, set{}}, nil
		}
		v, known := r.made[n.Alias]
		if !known { // which a key that is merged may be
			var err error
			if v, err = r.of(n.Alias, depth+1); err != nil {
				return value{}, err
			}
		}
		return value{n, v.is}, nil
	}
	if n.Anchor != "" {
		if first := r.anchors[n.Anchor]; first != nil && first != n {
			return value{}, &notYAML{"", n, "the anchor " + n.Anchor + " is there twice"}
		}
		r.anchors[n.Anchor] = n
		r.within[n] = true
		v, err := r.make(n, depth)
		delete(r.within, n)
		r.made[n] = v
		return v, err
	}
	return r.make(n, depth)
}

func (r reading) make(n *yaml.Node, depth int) (value, error) {
	switch n.Kind {
	case yaml.SequenceNode:
		return r.sequence(n, depth)
	case yaml.MappingNode:
		return r.mapping(n, depth)
	}
	is, err := scalarOf(n)
	return value{n, is}, err
}

func tagOf(n *yaml.Node) string {
	if n.Style&yaml.TaggedStyle != 0 {
		return n.LongTag()
	}
	switch n.Kind {
	case yaml.SequenceNode:
		return tagPrefix + "seq"
	case yaml.MappingNode:
		return tagPrefix + "map"
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return tagString
	}
	return plainTag(n.Value)
}

func noConstructor(n *yaml.Node) error {
	return &notYAML{"", n, "a value of the tag " + tagOf(n) + " cannot be read"}
}

func (r reading) sequence(n *yaml.Node, depth int) (value, error) {
	tag := strings.TrimPrefix(tagOf(n), tagPrefix)
	list := make([]value, 0, len(n.Content))
	for _, item := range n.Content {
		v, err := r.of(item, depth+1)
		if err != nil {
			return value{}, err
		}
		list = append(list, v)
	}
	switch tag {
	case "seq":
		return value{n, list}, nil
	case "omap", "pairs":
		for _, v := range list {
			if m, ok := v.is.(*mapping); !ok || len(m.keys) != 1 {
				return value{}, &notYAML{"", v.node, "each element must be one `key: value`"}
			}
		}
		return value{n, set{}}, nil
	}
	return value{}, noConstructor(n)
}

func (r reading) mapping(n *yaml.Node, depth int) (value, error) {
	m := &mapping{at: map[any]int{}}
	if err := r.merged(m, n, depth); err != nil {
		return value{}, err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.ScalarNode && tagOf(key) == tagMerge {
			continue
		}
		k, err := r.key(key, depth)
		if err != nil {
			return value{}, err
		}
		v, err := r.of(n.Content[i+1], depth+1)
		if err != nil {
			return value{}, err
		}
		m.put(k, v, hashOf(k.is))
	}
	switch strings.TrimPrefix(tagOf(n), tagPrefix) {
	case "map":
		return value{n, m}, nil
	case "set":
		return value{n, set{}}, nil
	}
	return value{}, noConstructor(n)
}

func (r reading) key(n *yaml.Node, depth int) (value, error) {
	if n.Kind == yaml.ScalarNode && tagOf(n) == tagValue {
		return value{n, n.Value}, nil
	}
	k, err := r.of(n, depth+1)
	if err != nil {
		return value{}, err
	}
	switch k.is.(type) {
	case []value, *mapping, set:
		return value{}, &notYAML{"", n, "a list or a section cannot be a key"}
	}
	return k, nil
}

// merged puts in what `<<` names; the keys that are written come over it.
func (r reading) merged(m *mapping, n *yaml.Node, depth int) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind != yaml.ScalarNode || tagOf(key) != tagMerge {
			continue
		}
		from := n.Content[i+1]
		v, err := r.of(from, depth+1)
		if err != nil {
			return err
		}
		list, ok := v.is.([]value)
		if !ok {
			list = []value{v}
		}
		for i := len(list) - 1; i >= 0; i-- {
			part, ok := list[i].is.(*mapping)
			if !ok {
				return &notYAML{"", list[i].node, "`<<` merges a section, or a list of sections"}
			}
			for j, k := range part.keys {
				m.put(k, part.values[j], hashOf(k.is))
			}
		}
	}
	return nil
}

// hashOf is what equal keys have in common: 1, 1.0 and true are one key.
func hashOf(is any) any {
	switch is := is.(type) {
	case bool:
		if is {
			return float64(1)
		}
		return float64(0)
	case *big.Int:
		if f, exact := new(big.Float).SetInt(is).Float64(); exact == big.Exact {
			return f
		}
		return "int " + is.String()
	case []byte:
		return "bytes " + string(is)
	}
	return is
}

// What stands in no quotes is a number or a date where it looks like one to YAML 1.1.
var (
	floatPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|` +
			`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	})
	intPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[-+]?(?:0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	})
	noBase64    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9+/=]`) })
	timePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[0-9]{4}-(?:[0-9]{2}-[0-9]{2}|[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?` +
			`(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$`)
	})
)

func plainTag(text string) string {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return tagPrefix + "null"
	case "yes", "Yes", "YES", "no", "No", "NO", "true", "True", "TRUE", "false", "False", "FALSE", "on", "On", "ON", "off", "Off", "OFF":
		return tagPrefix + "bool"
	case "<<":
		return tagMerge
	case "=":
		return tagValue
	}
	if strings.IndexByte("-+.0123456789", text[0]) < 0 {
		return tagString
	}
	switch {
	case floatPattern().MatchString(text):
		return tagPrefix + "float"
	case intPattern().MatchString(text):
		return tagPrefix + "int"
	case timePattern().MatchString(text):
		return tagPrefix + "timestamp"
	}
	return tagString
}

func scalarOf(n *yaml.Node) (any, error) {
	wrong := func(kind string) (any, error) {
		return nil, &notYAML{kind, n, fmt.Sprintf("%q is not what its tag says", n.Value)}
	}
	switch tag := tagOf(n); strings.TrimPrefix(tag, tagPrefix) {
	case "str":
		return n.Value, nil
	case "null":
		return nil, nil
	case "bool":
		switch strings.ToLower(n.Value) {
		case "yes", "true", "on":
			return true, nil
		case "no", "false", "off":
			return false, nil
		}
		return wrong(KindNoKey)
	case "int":
		if i := oldInt(n.Value); i != nil {
			return i, nil
		}
		return wrong(KindNoValue)
	case "float":
		if f, ok := oldFloat(n.Value); ok {
			return f, nil
		}
		return wrong(KindNoValue)
	case "timestamp":
		if !timePattern().MatchString(n.Value) {
			return wrong(KindNoSection)
		}
		if t, ok := oldTime(n.Value); ok {
			return t, nil
		}
		return wrong(KindNoValue)
	case "binary":
		// What is no letter of the code is passed over, as in Python.
		if data, err := base64.StdEncoding.DecodeString(noBase64().ReplaceAllString(n.Value, "")); err == nil {
			return data, nil
		}
		return wrong("")
	}
	return nil, noConstructor(n)
}

// oldInt reads a number as YAML 1.1 writes them; nil: it is none.
func oldInt(text string) *big.Int {
	text = strings.ReplaceAll(text, "_", "")
	digits := strings.TrimLeft(text, "+-")
	if digits == "" || len(text)-len(digits) > 1 {
		return nil
	}
	i := new(big.Int)
	ok := true
	switch {
	case digits == "0":
	case strings.HasPrefix(digits, "0b"):
		_, ok = i.SetString(digits[2:], 2)
	case strings.HasPrefix(digits, "0x"):
		_, ok = i.SetString(digits[2:], 16)
	case digits[0] == '0':
		_, ok = i.SetString(digits, 8)
	default:
		for part := range strings.SplitSeq(digits, ":") {
			d, good := new(big.Int).SetString(part, 10)
			if !good {
				return nil
			}
			i.Mul(i, big.NewInt(60)).Add(i, d)
		}
	}
	if !ok {
		return nil
	}
	if text[0] == '-' {
		i.Neg(i)
	}
	return i
}

// oldFloat reads a number with a point as YAML 1.1 writes them.
func oldFloat(text string) (float64, bool) {
	text = strings.ToLower(strings.ReplaceAll(text, "_", ""))
	digits := strings.TrimLeft(text, "+-")
	sign := 1.0
	if strings.HasPrefix(text, "-") {
		sign = -1
	}
	switch digits {
	case ".inf":
		return sign * math.Inf(1), true
	case ".nan":
		return math.NaN(), true
	}
	total := 0.0
	for part := range strings.SplitSeq(digits, ":") {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, false
		}
		total = total*60 + f
	}
	return sign * total, true
}

// oldTime tells whether a date and time can be.
func oldTime(text string) (time.Time, bool) {
	fields := strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	number := func(i int) int {
		if i >= len(fields) {
			return 0
		}
		n, _ := strconv.Atoi(fields[i])
		return n
	}
	year, month, day, hour, minute, second := number(0), number(1), number(2), number(3), number(4), number(5)
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	same := t.Year() == year && int(t.Month()) == month && t.Day() == day && t.Hour() == hour && t.Minute() == minute && t.Second() == second
	return t, same && year > 0
}
