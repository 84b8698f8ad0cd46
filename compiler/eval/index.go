package eval

import (
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// indexTable finds the instances of one entity, descendants included, by the
// key of one index.
type indexTable struct {
	entity *types.Entity
	index  *types.Index
	// known is shared by the tables of the entity that the index is declared for and
	// of its descendants.
	known  *instancesByKey
	floats []types.Type // float or float? for attributes of these types, nil for others
	// waiting are the lookups that found nothing yet, by key. order has the keys in
	// the order in which they were first asked for.
	waiting map[string][]*pendingLookup
	order   []string
}

type instancesByKey struct{ instances map[string]*Instance }

func newInstancesByKey() *instancesByKey { return &instancesByKey{map[string]*Instance{}} }

// find returns the instance with a key, if it is one of the table's entity.
func (t *indexTable) find(key string) *Instance {
	if have := t.known.instances[key]; have != nil && have.entity.IsSubclassOf(t.entity) {
		return have
	}
	return nil
}

type tableOf struct {
	entity *types.Entity
	index  *types.Index
}

func (r *run) table(e *types.Entity, x *types.Index) *indexTable {
	t := r.indexes[tableOf{e, x}]
	if t != nil {
		return t
	}
	t = &indexTable{entity: e, index: x, floats: floatsOf(e, x)}
	r.indexes[tableOf{e, x}] = t
	r.tables = append(r.tables, t)
	if from := x.Entity; from != e && (from == nil || !slices.Equal(t.floats, floatsOf(from, x))) {
		t.known = newInstancesByKey() // its keys are written in another way
		return t
	}
	if r.declared[x] == nil {
		r.declared[x] = newInstancesByKey()
	}
	t.known = r.declared[x]
	return t
}

// floatsOf returns the type of each attribute of an index that is a float, or a
// float that may be null, and nil for the others.
func floatsOf(e *types.Entity, x *types.Index) []types.Type {
	floats := make([]types.Type, len(x.Attributes))
	for n, name := range x.Attributes {
		attr := e.Attribute(name)
		if attr != nil && (attr.Type == types.FloatT || attr.Type == types.Type(types.Optional{Of: types.FloatT})) {
			floats[n] = attr.Type
		}
	}
	return floats
}

// keyOf returns the key of an index for the values that a lookup or a constructor
// has for its attributes.
func (t *indexTable) keyOf(values []given) (string, *Error) {
	var room [64]byte
	b := room[:0]
	for n, name := range t.index.Attributes {
		for _, g := range values {
			if g.name != name {
				continue
			}
			v, err := t.wanted(n, g.value)
			if err == nil {
				b, err = t.appendPart(b, n, v)
			}
			if err != nil {
				return "", err
			}
		}
	}
	return string(b), nil
}

// appendPart writes the value of the n-th attribute.
func (t *indexTable) appendPart(b []byte, n int, v types.Value) ([]byte, *Error) {
	if ref, is := v.(*types.Reference); is {
		return b, program.NewError("TypingException",
			"Invalid value `%s` in index for attribute %s: references can not be used in indexes.", types.Text(ref),
			t.index.Attributes[n])
	}
	b, err := appendKey(b, v)
	if err != nil {
		return b, pythonError(err)
	}
	return b, nil
}

// wanted is the value that the n-th attribute would have: a float attribute
// takes what can be cast to a float.
func (t *indexTable) wanted(n int, v types.Value) (types.Value, *Error) {
	if t.floats[n] == nil {
		return v, nil
	}
	switch v := v.(type) {
	case types.Float, *types.Reference:
		return v, nil
	case types.Int:
		return types.Float(v), nil
	case types.Null:
		if t.floats[n] != types.FloatT {
			return v, nil
		}
	}
	f, err := types.FloatT.Cast(v)
	if python, is := err.(types.PythonError); is {
		return nil, pythonError(python)
	}
	if err != nil {
		return nil, program.RuntimeError("%s", err).Coded(diag.NoCast)
	}
	return f, nil
}

// appendKey writes a value so that two values have the same text when Repr
// does not tell them apart. The error is Python's, for a number that has no text.
func appendKey(b []byte, v types.Value) ([]byte, error) {
	switch v := v.(type) {
	case *Instance:
		b = strconv.AppendUint(append(b, '#'), v.id, 10)
	case types.Str:
		return appendText(b, string(v)), nil
	case *types.Object:
		if text := types.Repr(v); v.Base == nil || text != types.Repr(v.Base) {
			b = append(b, text...)
			break
		}
		return appendKey(b, v.Base)
	default:
		text, err := types.Printed(v, true)
		if err != nil {
			return b, err
		}
		b = append(b, text...)
	}
	return append(b, 0), nil
}

// appendText writes a string after its length, since it may contain any byte.
func appendText(b []byte, s string) []byte {
	b = strconv.AppendInt(append(b, '"'), int64(len(s)), 10)
	return append(append(b, '"'), s...)
}

// givenText is the text of the key that a lookup asks for, for errors.
func (t *indexTable) givenText(values []given) string {
	parts := make([]string, 0, len(values))
	for n, name := range t.index.Attributes {
		for _, g := range values {
			if g.name != name {
				continue
			}
			v, err := t.wanted(n, g.value)
			if err != nil {
				v = g.value
			}
			parts = append(parts, name+"="+types.Repr(v))
		}
	}
	return strings.Join(parts, ", ")
}

// indexPlan lists the tables that every instance of an entity is registered in:
// those of its own indexes first, in their order, then those of the entities above.
type indexPlan struct {
	steps []indexStep
	keys  int // how many different keys they take
}

type indexStep struct {
	table *indexTable
	key   int   // the number of its key
	slots []int // the attributes of the key; nil when an earlier step has the same key
}

// plan returns the plan of an entity, which is made for its first instance.
func (r *run) plan(info *program.EntityInfo) *indexPlan {
	if r.plans == nil {
		r.plans = make([]*indexPlan, len(r.prog.Entities))
	}
	if p := r.plans[info.Entity.Number]; p != nil {
		return p
	}
	p := &indexPlan{}
	keys := map[*instancesByKey]int{}
	for _, e := range info.Ancestry() {
		for _, x := range e.Indexes {
			t := r.table(e, x)
			number, have := keys[t.known]
			step := indexStep{table: t, key: number}
			if !have {
				step.key, keys[t.known] = len(keys), len(keys)
				step.slots = make([]int, len(x.Attributes))
				for n, name := range x.Attributes {
					step.slots[n] = program.SlotNumber(info.Entity, name)
				}
			}
			p.steps = append(p.steps, step)
		}
	}
	p.keys = len(keys)
	r.plans[info.Entity.Number] = p
	return p
}

// registeredKey is a key of an instance that is being registered.
type registeredKey struct {
	text  string
	owner *Instance // another instance that has the key already
	none  bool      // a part of the key has no value
}

// register makes an instance known to the indexes of its entity and of the
// entities above it.
func (r *run) register(i *Instance, info *program.EntityInfo, n program.Node) *Error {
	plan := r.plan(info)
	keys := make([]registeredKey, plan.keys)
	for k := range plan.steps {
		step := &plan.steps[k]
		key, t := &keys[step.key], step.table
		if step.slots != nil {
			var err *Error
			if *key, err = i.claimKey(step); err != nil {
				return err.In(n)
			}
		}
		switch {
		case key.none:
		case key.owner != nil && key.owner.entity.IsSubclassOf(t.entity):
			return duplicate(n, key.owner, "Duplicate key in index. "+t.keyText(i))
		case len(t.waiting) > 0:
			t.answer(r, key.text, i)
		}
	}
	return nil
}

// claimKey gives an instance the key of a step, unless another one has it.
func (i *Instance) claimKey(step *indexStep) (registeredKey, *Error) {
	var room [64]byte
	b := room[:0]
	for n, slot := range step.slots {
		v, ok := i.slot(slot).peek()
		if !ok {
			return registeredKey{none: true}, nil
		}
		var err *Error
		if b, err = step.table.appendPart(b, n, v); err != nil {
			return registeredKey{}, err
		}
	}
	key := registeredKey{text: string(b)}
	known := step.table.known.instances
	if key.owner = known[key.text]; key.owner == nil {
		known[key.text] = i
	}
	return key, nil
}

// answer completes the lookups that wait for a key.
func (t *indexTable) answer(r *run, key string, i *Instance) {
	for _, p := range t.waiting[key] {
		p.target.put(r, i, &p.n.Span)
	}
	delete(t.waiting, key)
}

func (t *indexTable) keyText(i *Instance) string {
	values := make([]given, 0, len(t.index.Attributes))
	for _, name := range t.index.Attributes {
		v, _ := i.variable(name).peek()
		values = append(values, given{name: name, value: v})
	}
	return t.givenText(values)
}

// extent lists the instances of an entity and its descendants, as far as it was
// asked for.
type extent struct {
	list []*Instance
	upTo int // how many of run.instances it covers
}

// instancesOf returns the instances of an entity and its descendants, in order.
func (r *run) instancesOf(e *types.Entity) []*Instance {
	known := &r.extents[e.Number]
	for _, i := range r.instances[known.upTo:] {
		if i.entity.IsSubclassOf(e) {
			known.list = append(known.list, i)
		}
	}
	known.upTo = len(r.instances)
	return known.list
}
