package provenance

import (
	"encoding/binary"
	"slices"
)

// TopLevel is the index of a step that means the top level of the model.
const TopLevel = -1

// Builder fills a table, in which everything is stored once.
type Builder struct {
	table      Table
	texts      map[string]int
	statements map[Statement]int
	calls      map[Call]int
	shapes     map[string]int
}

// NewBuilder makes a builder with an empty table.
func NewBuilder() *Builder {
	return &Builder{
		table: Table{
			Texts:      []string{},
			Statements: []Statement{},
			Calls:      []Call{},
			Steps:      []step{},
			Shapes:     [][]row{},
			Resources:  map[string][]int{},
		},
		texts: map[string]int{}, statements: map[Statement]int{}, calls: map[Call]int{}, shapes: map[string]int{},
	}
}

// Table returns the table.
func (b *Builder) Table() *Table { return &b.table }

func once[T comparable](known map[T]int, list *[]T, v T) int {
	i, ok := known[v]
	if !ok {
		i = len(*list)
		known[v] = i
		*list = append(*list, v)
	}
	return i
}

// Statement returns the index of a statement.
func (b *Builder) Statement(s Statement) int { return once(b.statements, &b.table.Statements, s) }

// Text returns the index of a text.
func (b *Builder) Text(s string) int { return once(b.texts, &b.table.Texts, s) }

// Step adds the run of an implementation for one instance and gives its index;
// parent is the step that made the instance, by the statement made.
func (b *Builder) Step(c Call, label string, parent, made int) int {
	b.table.Steps = append(b.table.Steps, step{once(b.calls, &b.table.Calls, c), b.Text(label), parent, made})
	return len(b.table.Steps) - 1
}

// Entry is what is said of one resource. It can be used again after Add.
type Entry struct {
	rows []row
	own  []own
}

// own is a step or a statement that the shape leaves to each resource.
type own struct {
	index     int
	statement bool
}

// Mark says that a statement set a value.
type Mark struct {
	// Depth is 0 for a field. What a value was computed from follows it, one deeper.
	Depth           int
	Name, Statement int
	Implied         bool // the statement set the other side of the relation
	Condition       bool // the value decided which of several it is
	Step            int  // in which the statement ran, or TopLevel
	// Own is set for a statement at the top level that few resources share: it is kept
	// with the resource, so that resources which differ in that only have one shape.
	Own bool
}

// Set adds a mark.
func (e *Entry) Set(m Mark) {
	r := row{m.Depth, m.Name, m.Statement, 0, TopLevel}
	if m.Implied {
		r[3] |= isImplied
	}
	if m.Condition {
		r[3] |= isCondition
	}
	if m.Step >= 0 {
		r[4] = e.position(own{m.Step, false})
	} else if m.Own {
		r[2] = -1 - e.position(own{m.Statement, true})
	}
	e.rows = append(e.rows, r)
}

func (e *Entry) position(o own) int {
	n := slices.Index(e.own, o)
	if n < 0 {
		n = len(e.own)
		e.own = append(e.own, o)
	}
	return n
}

// Len is the number of marks since the last Add.
func (e *Entry) Len() int { return len(e.rows) }

// Add puts a resource into the table.
func (b *Builder) Add(id string, e *Entry) {
	key := make([]byte, 0, 64)
	for _, r := range e.rows {
		for _, n := range r {
			key = binary.AppendVarint(key, int64(n))
		}
	}
	shape, ok := b.shapes[string(key)]
	if !ok {
		shape = len(b.table.Shapes)
		b.shapes[string(key)] = shape
		b.table.Shapes = append(b.table.Shapes, slices.Clone(e.rows))
	}
	entry := make([]int, 1, 1+len(e.own))
	entry[0] = shape
	for _, o := range e.own {
		entry = append(entry, o.index)
	}
	b.table.Resources[id] = entry
	e.rows, e.own = e.rows[:0], e.own[:0]
}
