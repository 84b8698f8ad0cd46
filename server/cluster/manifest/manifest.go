// Package manifest reads and writes the file of a cluster, clusters/NAME.yaml in the
// environment's repository: its intent, and the layout that was solved for it.
//
//	file ── Read ──▶ Manifest ── Write ──▶ file, the same for the same manifest
//
// The file is hostile until it was read: its size and depth are bounded, and unknown
// fields are errors, since a misspelt "sise" would otherwise be ignored. Whether the
// nodes follow from the rest is checked by server/cluster, which has the catalogue.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// Folder has the files of all clusters of an environment, below the folder of its project file.
const Folder = "clusters"

// Limits.
const (
	MaxFile  = 4 << 20 // bytes: 10,000 nodes fit
	MaxFiles = 1000    // of an environment
	maxDepth = 50
)

// Manifest is the intent of one cluster.
type Manifest struct {
	Name         string   `yaml:"cluster" json:"name"`
	Owner        string   `yaml:"owner" json:"owner"` // who asked for it
	Description  string   `yaml:"description,omitempty" json:"description,omitempty"`
	Template     string   `yaml:"template" json:"template"`
	Size         int      `yaml:"size" json:"size"`
	Provider     string   `yaml:"provider,omitempty" json:"provider,omitempty"`
	HardwareType string   `yaml:"hardwaretype,omitempty" json:"hardwaretype,omitempty"`
	ImageType    string   `yaml:"imagetype,omitempty" json:"imagetype,omitempty"`
	Services     []string `yaml:"services" json:"services"`
	// Stopped are services that are not to run.
	Stopped []string `yaml:"stopped,omitempty" json:"stopped,omitempty"`
	// Restarts counts how often a person asked for the restart of a service.
	Restarts  map[string]int `yaml:"restarts,omitempty" json:"restarts,omitempty"`
	DNSSuffix string         `yaml:"dnsSuffix,omitempty" json:"dnsSuffix,omitempty"`
	// Expires is the end of the lease; nil: never.
	Expires *time.Time `yaml:"expires,omitempty" json:"expires,omitempty"`
	// Fields are the values of the provider's fields that users give, but for sensitive ones.
	Fields map[string]any `yaml:"fields,omitempty" json:"fields,omitempty"`
	// Config is added to the template's, key by key.
	Config map[string]any `yaml:"config,omitempty" json:"config,omitempty"`
	// Catalogue has the versions that the cluster is made from, so that it changes only when somebody asks for newer
	// ones.
	Catalogue Pins `yaml:"catalogue,omitempty" json:"catalogue,omitempty"`
	// Nodes are the layout. Next is the number of the next new node.
	Nodes []Node `yaml:"nodes,omitempty" json:"nodes,omitempty"`
	Next  int    `yaml:"next,omitempty" json:"next,omitempty"`
}

// Pins are versions by kind and name.
type Pins map[catalogue.Kind]map[string]int

// Node is a machine of the layout.
type Node struct {
	Number       int      `yaml:"number" json:"number"`
	Hostname     string   `yaml:"hostname" json:"hostname"`
	HardwareType string   `yaml:"hardwaretype" json:"hardwaretype"`
	ImageType    string   `yaml:"imagetype" json:"imagetype"`
	Services     []string `yaml:"services,flow" json:"services"`
}

// FirstNode is the number of the first node of a cluster.
const FirstNode = 1000

// PathOf returns the path of a cluster's file below the folder of the project file.
func PathOf(name string) string { return path.Join(Folder, name+".yaml") }

// NameOf returns the name of the cluster that a file of the folder is for; empty: it is for none.
func NameOf(file string) string {
	name, yes := strings.CutSuffix(path.Base(file), ".yaml")
	if !yes || strings.HasPrefix(name, ".") {
		return ""
	}
	return name
}

var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9]([A-Za-z0-9-]{0,62}))*$`)
)

// CheckName refuses what cannot be the name of a cluster.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf(
			"%.110q cannot be the name of a cluster: it has 1 to 100 letters, digits, '.', '_' and '-', "+
				"and begins with a letter or a digit",
			name,
		)
	}
	return nil
}

// Read reads a file. The name is that of the cluster, by its path. The error has the line where there is one, and all
// that is wrong with the values.
func Read(name string, text []byte) (*Manifest, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if len(text) > MaxFile {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(text), MaxFile)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, plainYAML(err)
	}
	if err := bounded(&root, 0); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	m := &Manifest{}
	if err := decoder.Decode(m); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty; to delete the cluster, delete the file")
		}
		return nil, plainYAML(err)
	}
	m.normalize()
	return m, m.check(name)
}

// bounded refuses deep values, and aliases, which make small files large.
func bounded(n *yaml.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("line %d: the file is nested more than %d deep", n.Line, maxDepth)
	}
	if n.Kind == yaml.AliasNode {
		return fmt.Errorf("line %d: aliases such as *%.20s are not supported here", n.Line, n.Value)
	}
	for _, c := range n.Content {
		if err := bounded(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// plainYAML takes words of the library out of an error.
func plainYAML(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n  ")
	text = strings.ReplaceAll(text, " not found in type manifest.Manifest", " is not known here")
	text = strings.ReplaceAll(text, " not found in type manifest.Node", " is not known in a node")
	return errors.New(strings.ReplaceAll(text, "\n  ", "; "))
}

// normalize sorts what has no order.
func (m *Manifest) normalize() {
	sortUnique := func(list []string) []string {
		slices.Sort(list)
		return slices.Compact(list)
	}
	m.Services, m.Stopped = sortUnique(m.Services), sortUnique(m.Stopped)
	for i := range m.Nodes {
		m.Nodes[i].Services = sortUnique(m.Nodes[i].Services)
	}
	slices.SortStableFunc(m.Nodes, func(a, b Node) int { return a.Number - b.Number })
	for _, n := range m.Nodes {
		m.Next = max(m.Next, n.Number+1)
	}
	if m.Next == 0 {
		m.Next = FirstNode
	}
	m.plainNumbers()
	if m.Expires != nil {
		at := m.Expires.UTC().Truncate(time.Second)
		m.Expires = &at
	}
}

// check says all that is wrong with a manifest by itself.
func (m *Manifest) check(name string) error {
	var wrong []string
	say := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	say(m.Name != name, "cluster is %.110q, and the file is named %s.yaml", m.Name, name)
	say(m.Template == "", "template is missing")
	say(m.Owner == "", "owner is missing")
	say(len(m.Owner) > 500, "owner has more than 500 bytes")
	say(m.Size < 1 || m.Size > catalogue.MaxSize, "size is %d, and may be 1 to %d", m.Size, catalogue.MaxSize)
	for _, s := range m.Stopped {
		say(!slices.Contains(m.Services, s), "stopped has %.100q, which is none of the services", s)
	}
	for i, n := range m.Nodes {
		say(
			n.Number < FirstNode || n.Number > FirstNode+10_000_000,
			"a node has the number %d, and numbers begin with %d",
			n.Number,
			FirstNode,
		)
		say(i > 0 && m.Nodes[i-1].Number == n.Number, "two nodes have the number %d", n.Number)
		say(
			!hostForm.MatchString(n.Hostname) || len(n.Hostname) > 253,
			"%.100q cannot be the host name of a node",
			n.Hostname,
		)
	}
	if _, err := json.Marshal([]any{m.Config, m.Fields}); err != nil {
		wrong = append(wrong, "config or fields have a value that JSON cannot have, as a key that is no text")
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

const heading = `# A cluster, written by Ordain. What stands here is what there will be once it is
# deployed; change it by hand, or with "ordain cluster".
`

// Write returns the file of a manifest. It is the same for the same manifest.
func Write(m *Manifest) ([]byte, error) {
	m.normalize()
	var out bytes.Buffer
	out.WriteString(heading)
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(m); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// Clone returns a copy that shares nothing.
func (m *Manifest) Clone() *Manifest {
	if m == nil {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic("a manifest cannot be encoded: " + err.Error()) // Read and the verbs have encoded it before
	}
	out, err := Decode(text)
	if err != nil {
		panic("a manifest cannot be decoded: " + err.Error())
	}
	return out
}

// Decode reads a manifest from its JSON. Numbers stay as exact as the file had them.
func Decode(raw []byte) (*Manifest, error) {
	m := &Manifest{}
	return m, json.Unmarshal(raw, m)
}

// UnmarshalJSON reads a manifest with its numbers as they are, also those that no float64 has.
func (m *Manifest) UnmarshalJSON(raw []byte) error {
	type plain Manifest
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode((*plain)(m)); err != nil {
		return err
	}
	m.plainNumbers()
	return nil
}

// Value reads a value of the configuration, or of a field, from JSON. Numbers stay as they are.
func Value(raw []byte) (value any, err error) {
	if !json.Valid(raw) {
		return nil, errors.New("it is no JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return plainNumbers(value), err
}

func (m *Manifest) plainNumbers() {
	for _, values := range []map[string]any{m.Fields, m.Config} {
		for key, value := range values {
			values[key] = plainNumbers(value)
		}
	}
}

// plainNumbers turns numbers of JSON into those that YAML has.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return int(n)
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64() // beyond its range it is infinite, as YAML would have it
		return f
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = plainNumbers(v[key])
		}
	}
	return value
}

// Hostname returns the name of a node: a cluster called Hadoop_dev has hadoop-dev-1000.SUFFIX.
func Hostname(cluster string, number int, suffix string) string {
	label := strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(cluster))
	label = strings.TrimLeft(label, "0123456789-")
	tail := fmt.Sprintf("-%d", number)
	label = strings.TrimRight(label[:min(len(label), 63-len(tail))], "-")
	if label == "" {
		label = "node"
	}
	if suffix == "" {
		suffix = "local"
	}
	return label + tail + "." + suffix
}
