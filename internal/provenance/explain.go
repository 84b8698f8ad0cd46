package provenance

import "slices"

// Field is an attribute with everything that set it: one setting, or one for
// each element of a relation.
type Field struct {
	Name     string    `json:"name"`
	Settings []Setting `json:"settings"`
}

// Setting is one statement that set a value.
type Setting struct {
	Statement
	// Commit is that of the statement's line; of a Step, of its lines.
	Commit *Commit `json:"commit,omitempty"`
	// Implied: the statement set the other side of the relation.
	Implied bool `json:"implied,omitempty"`
	// Condition: the value decided which of several values was taken.
	Condition bool `json:"condition,omitempty"`
	// Steps lead from the statement up to the top level.
	Steps []Step `json:"steps"`
	// Inputs are what the value was computed from: the arguments of a plug-in, the
	// names in a string, what a function read; each with what it was computed from.
	Inputs []Field `json:"inputs,omitempty"`
}

// Step is an implementation that ran for an instance.
type Step struct {
	Instance string `json:"instance"` // mod::Host[name=web1]
	Call
	Made       Place   `json:"made,omitzero"`         // the constructor of the instance
	Commit     *Commit `json:"commit,omitempty"`      // of the implement statement
	MadeCommit *Commit `json:"made_commit,omitempty"` // of the constructor
}

// Explain returns all fields of a resource, in the order of its class; false when
// the table does not have it.
func (t *Table) Explain(id string) ([]Field, bool) {
	entry, ok := t.Resources[id]
	if !ok {
		return nil, false
	}
	var fields []Field
	for _, r := range t.Shapes[entry[0]] {
		s := Setting{
			Statement: t.Statements[r.statement(entry)],
			Implied:   r[3]&isImplied != 0, Condition: r[3]&isCondition != 0,
			Steps: []Step{},
		}
		if r[4] >= 0 {
			s.Steps = t.chain(r.step(entry))
		}
		into := &fields
		for depth := 0; depth < r[0] && len(*into) > 0; depth++ {
			last := &(*into)[len(*into)-1]
			into = &last.Settings[len(last.Settings)-1].Inputs
		}
		name := t.Texts[r[1]]
		if n := len(*into); n > 0 && (*into)[n-1].Name == name {
			(*into)[n-1].Settings = append((*into)[n-1].Settings, s)
			continue
		}
		*into = append(*into, Field{Name: name, Settings: []Setting{s}})
	}
	return fields, true
}

func (t *Table) chain(i int) []Step {
	var steps []Step
	for ; i >= 0; i = t.Steps[i][2] {
		s := t.Steps[i]
		steps = append(steps, Step{Instance: t.Texts[s[1]], Call: t.Calls[s[0]], Made: t.Statements[s[3]].Place})
	}
	return steps
}

// Find returns the field of that name.
func Find(fields []Field, name string) (Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}
