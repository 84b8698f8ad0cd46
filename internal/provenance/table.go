package provenance

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
)

// Kind is how a value was set.
type Kind string

// Kinds of statements.
const (
	Argument   Kind = "argument"   // of a constructor
	Default    Kind = "default"    // of an entity
	Assignment Kind = "assignment" // x.a = …
	Extension  Kind = "extension"  // x.a += …
	Expression Kind = "expression" // anything else
	Element    Kind = "element"    // of the list that a loop goes through
	Member     Kind = "member"     // an entry of a dict
	Template   Kind = "template"   // a file that std::template filled in
	Function   Kind = "function"   // get_<field> or a map, in Python
	Unset      Kind = "unset"      // nothing set it: it has the field's own default
	// Constructor is the statement that makes an instance.
	Constructor Kind = "constructor"
)

// Place is a piece of a file: line and column count from 1.
type Place struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	EndLine int    `json:"end_line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Source  string `json:"source,omitempty"` // the text of Line
}

// Statement is a statement that set a value.
type Statement struct {
	Kind Kind `json:"kind"`
	Place
	// Plugin is the plug-in that returned the value, or the Python function.
	Plugin string `json:"plugin,omitempty"`
	// Loop is the loop or comprehension around it.
	Loop Place `json:"loop,omitzero"`
}

// Call is an implementation, and what selected it.
type Call struct {
	Type           string `json:"type"` // of the instance that it ran for
	Implementation string `json:"implementation"`
	At             Place  `json:"at,omitzero"`       // the implementation
	Selected       Place  `json:"selected,omitzero"` // the implement statement that chose it
}

// step is a Call for one instance: index of the call, of the label among the
// texts, of the step that made the instance, -1 for the top level, and of the
// constructor among the statements.
type step [4]int

// row of a shape: depth (0 a field, 1 what it was computed from, 2 what that was
// computed from …), name among the texts, statement, flags, and the step, -1 for the
// top level. The step is the position of its index in the entry of the resource, after
// the shape. So is -1-n for the statement, for one that only few resources share.
type row [5]int

// statement returns the index of the statement of a row, for the entry of a resource.
func (r row) statement(entry []int) int {
	if r[2] < 0 {
		return entry[-r[2]]
	}
	return r[2]
}

// step returns the index of the step of a row, for the entry of a resource.
func (r row) step(entry []int) int {
	if r[4] < 0 {
		return TopLevel
	}
	return entry[1+r[4]]
}

// Flags of a row.
const (
	isImplied   = 1 << iota // the other side of a relation was set
	isCondition             // it decided which of several values it is
)

// MaxDepth bounds how far a value is followed.
const MaxDepth = 8

// Table has the provenance of all resources of a version.
type Table struct {
	Texts      []string    `json:"texts"`
	Statements []Statement `json:"statements"`
	Calls      []Call      `json:"calls"`
	Steps      []step      `json:"steps"`
	Shapes     [][]row     `json:"shapes"`
	// Resources has, by id, the shape and the steps and statements that it speaks of.
	Resources map[string][]int `json:"resources"`
}

// Pack returns the table in the form that is stored.
func (t *Table) Pack() ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(t); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxUnpacked bounds the size of an unpacked table.
const maxUnpacked = 1 << 30

// Unpack reads a table that Pack wrote, and checks it.
func Unpack(packed []byte) (*Table, error) {
	var t Table
	r := flate.NewReader(bytes.NewReader(packed))
	if err := json.NewDecoder(io.LimitReader(r, maxUnpacked)).Decode(&t); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	return &t, t.Check()
}

// Check reports an index that is out of range.
func (t *Table) Check() error {
	wrong := func(what string) error { return fmt.Errorf("provenance: the table has a wrong %s", what) }
	for i, s := range t.Steps {
		if !below(s[0], t.Calls) || !below(s[1], t.Texts) || s[2] < -1 || s[2] >= i || !below(s[3], t.Statements) {
			return wrong("step")
		}
	}
	for _, shape := range t.Shapes {
		for _, r := range shape {
			if r[0] < 0 || r[0] > MaxDepth || !below(r[1], t.Texts) || r[2] >= len(t.Statements) || r[4] < -1 {
				return wrong("row")
			}
		}
	}
	for _, entry := range t.Resources {
		if len(entry) == 0 || !below(entry[0], t.Shapes) {
			return wrong("resource")
		}
		for _, r := range t.Shapes[entry[0]] {
			if r[2] <= -len(entry) || r[4] >= len(entry)-1 || !below(r.statement(entry), t.Statements) ||
				r[4] >= 0 && !below(r.step(entry), t.Steps) {
				return wrong("resource")
			}
		}
	}
	return nil
}

func below[T any](i int, list []T) bool { return i >= 0 && i < len(list) }
