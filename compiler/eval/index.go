package eval

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/python/pytext"
)

// indexTable finds the instances of one entity, descendants included, by the
// key of one index.
type indexTable struct {
	entity *types.Entity
	index  *types.Index
	known  *instancesByKey
	floats []types.Type // float or float? for attributes of these types, nil for others
	// waiting are the lookups that found nothing yet, by key; order keeps the
	// keys in the order in which they were first asked for.
	waiting map[string][]*pendingLookup
	order   []string
}

// instancesByKey holds the instances of the entity that an index was declared
// for: the tables of its descendants are parts of it.
//
// They lie in a table by a sum of their key, with its text nowhere: that takes
// little memory and is quickly moved when there are more. Whether an instance
// really has a key is seen by the instance.
type instancesByKey struct {
	places []sumOfKey // a power of two; an instance lies at its sum or at the next free place
	n      int
}

// sumOfKey is the sum of a key, and the number of the instance that has the key;
// 0 is a free place.
type sumOfKey uint64

func (s sumOfKey) sum() uint32 { return uint32(s >> 32) }
func (s sumOfKey) id() uint32  { return uint32(s) }

// get gives the instance with a key and its sum. has tells whether the instance
// with a number has the key.
func (k *instancesByKey) get(sum uint32, has func(id uint32) bool) (id uint32) {
	if k.n == 0 {
		return 0
	}
	last := len(k.places) - 1
	for at := int(sum) & last; k.places[at] != 0; at = (at + 1) & last {
		if one := k.places[at]; one.sum() == sum && has(one.id()) {
			return one.id()
		}
	}
	return 0
}

// put adds an instance whose key none has yet.
func (k *instancesByKey) put(sum, id uint32) {
	if k.n >= len(k.places)/4*3 {
		before := k.places
		k.places = make([]sumOfKey, max(16, 2*len(before)))
		for _, one := range before {
			if one != 0 {
				k.settle(one)
			}
		}
	}
	k.settle(sumOfKey(sum)<<32 | sumOfKey(id))
	k.n++
}

func (k *instancesByKey) settle(one sumOfKey) {
	last := len(k.places) - 1
	at := int(one.sum()) & last
	for k.places[at] != 0 {
		at = (at + 1) & last
	}
	k.places[at] = one
}

func (r *run) sumOf(key []byte) uint32 { return uint32(maphash.Bytes(r.seed, key)) }

// withKey gives the instance with a key, whatever its entity.
func (r *run) withKey(t *indexTable, sum uint32, key []byte) *Instance {
	id := t.known.get(sum, func(id uint32) bool {
		r.other = t.keyOf(r.other, r.instances[id-1])
		return bytes.Equal(r.other, key)
	})
	if id == 0 {
		return nil
	}
	return r.instances[id-1]
}

// find gives the instance with a key, or the key as one that is free.
func (r *run) find(t *indexTable, key []byte) (*Instance, freeKey) {
	sum := r.sumOf(key)
	have := r.withKey(t, sum, key)
	switch {
	case have == nil:
		return nil, freeKey{t.known, sum}
	case have.entity.IsSubclassOf(t.entity):
		return have, freeKey{}
	}
	return nil, freeKey{}
}

// freeKey is the sum of a key that nobody has: mostly an instance with it is
// made next, and the key need not be put together again.
type freeKey struct {
	known *instancesByKey
	sum   uint32
}

// keyOf writes the key of an instance that has one.
func (t *indexTable) keyOf(b []byte, i *Instance) []byte {
	b = b[:0]
	for n, name := range t.index.Attributes {
		v, _ := i.variable(name).peek()
		b, _ = t.appendPart(b, n, v)
	}
	return b
}

// pendingLookup is a lookup that waits for an instance with its key.
type pendingLookup struct {
	target *variable
	n      *lookup
	values []given // the key
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
		t.known = &instancesByKey{} // its keys are written otherwise
		return t
	}
	if r.declared[x] == nil {
		r.declared[x] = &instancesByKey{}
	}
	t.known = r.declared[x]
	return t
}

// floatsOf tells which attributes of an index are floats, and may be null.
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

// indexKey builds the key of an index from the values that a lookup or a
// constructor gives for its attributes. A float attribute takes what can be
// cast to one.
//
// The key lies in b, which is used again for the next one: as an index of a map
// it is never copied.
func indexKey(b []byte, t *indexTable, values []given) ([]byte, *Error) {
	b = b[:0]
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
				return b, err
			}
		}
	}
	return b, nil
}

// appendPart writes the value of the n-th attribute.
func (t *indexTable) appendPart(b []byte, n int, v types.Value) ([]byte, *Error) {
	if ref, is := v.(*types.Reference); is {
		return b, fail(
			"TypingException",
			"Invalid value `%s` in index for attribute %s: references can not be used in indexes.",
			types.Text(ref),
			t.index.Attributes[n],
		)
	}
	b, err := appendKey(b, v)
	if err != nil {
		return b, pythonError(err)
	}
	return b, nil
}

// wanted is the value that the n-th attribute would have.
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
		return nil, runtimeError("%s", err).coded(diag.NoCast)
	}
	return f, nil
}

// appendKey writes what Repr tells apart, quicker for what keys mostly are. The
// error is Python's, for a number that has no text.
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

// appendText writes a string with its length, since it may hold any byte.
func appendText(b []byte, s string) []byte {
	b = strconv.AppendInt(append(b, '"'), int64(len(s)), 10)
	return append(append(b, '"'), s...)
}

// givenText writes the key that a lookup gives, for an error.
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

// ancestry is the entity and all above it, each once. It is made for entities
// that have instances only: all of them together grow with the square of the
// depth.
func (info *entityInfo) ancestry() []*types.Entity {
	if made := info.lineage.Load(); made != nil {
		return *made
	}
	var lineage []*types.Entity
	seen := map[*types.Entity]bool{}
	var walk func(e *types.Entity)
	walk = func(e *types.Entity) {
		if seen[e] {
			return
		}
		seen[e] = true
		lineage = append(lineage, e)
		for _, parent := range e.Parents {
			walk(parent)
		}
	}
	walk(info.entity)
	info.lineage.Store(&lineage)
	return lineage
}

// indexPlan is what has to be done for the indexes of every instance of an
// entity: a step for each table of the entity and of those above it.
type indexPlan struct {
	steps []indexStep // first those of the entity's own indexes, in their order
	keys  int         // how many different ones they take
}

type indexStep struct {
	table *indexTable
	key   int     // its number
	slots []int32 // of the attributes of the key, where it is new
}

// plan is made for entities that have instances only.
func (r *run) plan(info *entityInfo) *indexPlan {
	if r.plans == nil {
		r.plans = make([]*indexPlan, len(r.prog.entities))
	}
	if p := r.plans[info.entity.Number]; p != nil {
		return p
	}
	p := &indexPlan{}
	keys := map[*instancesByKey]int{}
	for _, e := range info.ancestry() {
		for _, x := range e.Indexes {
			t := r.table(e, x)
			number, have := keys[t.known]
			step := indexStep{table: t, key: number}
			if !have {
				step.key, keys[t.known] = len(keys), len(keys)
				for _, name := range x.Attributes {
					step.slots = append(step.slots, slotNumber(info.entity, name))
				}
			}
			p.steps = append(p.steps, step)
		}
	}
	p.keys = len(keys)
	r.plans[info.entity.Number] = p
	return p
}

// keyOf is a key of an instance that is registered.
type keyOf struct {
	taken *Instance // has it already
	none  bool      // there is no such key
}

// register makes an instance known to the indexes of its entity and of the
// entities above it.
func (r *run) register(i *Instance, info *entityInfo, n node, free freeKey) *Error {
	plan := r.plan(info)
	var few [4]keyOf
	keys := few[:]
	if plan.keys > len(few) {
		keys = make([]keyOf, plan.keys)
	}
	for k := range plan.steps {
		step := &plan.steps[k]
		key, t := &keys[step.key], step.table
		if step.slots != nil {
			var err *Error
			if *key, err = r.enter(i, step, free); err != nil {
				return err.in(n)
			}
		}
		switch {
		case key.none:
		case key.taken != nil && key.taken.entity.IsSubclassOf(t.entity):
			return duplicate(n, key.taken, "Duplicate key in index. "+t.keyText(i))
		case len(t.waiting) > 0:
			t.arrived(r, i)
		}
	}
	return nil
}

// enter gives an instance its place under the key of a step, unless another
// has it.
func (r *run) enter(i *Instance, step *indexStep, free freeKey) (keyOf, *Error) {
	if free.known == step.table.known {
		step.table.known.put(free.sum, uint32(i.id))
		return keyOf{}, nil
	}
	b := r.key[:0]
	for n, slot := range step.slots {
		v, ok := i.slot(slot).peek()
		if !ok {
			return keyOf{none: true}, nil
		}
		var err *Error
		if b, err = step.table.appendPart(b, n, v); err != nil {
			return keyOf{}, err
		}
	}
	r.key = b
	sum := r.sumOf(b)
	if have := r.withKey(step.table, sum, b); have != nil {
		return keyOf{taken: have}, nil
	}
	step.table.known.put(sum, uint32(i.id))
	return keyOf{}, nil
}

// arrived gives an instance to the lookups that wait for its key.
func (t *indexTable) arrived(r *run, i *Instance) {
	r.key = t.keyOf(r.key, i)
	key := string(r.key)
	for _, p := range t.waiting[key] {
		p.target.put(r, i, &p.n.span)
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

// roll lists the instances of one entity, as far as somebody asked for them.
type roll struct {
	list []*Instance
	upTo int // of all instances
}

// all gives the instances of an entity and its descendants, in order.
func (r *run) all(e *types.Entity) []*Instance {
	known := &r.byEntity[e.Number]
	for _, i := range r.instances[known.upTo:] {
		if i.entity.IsSubclassOf(e) {
			known.list = append(known.list, i)
		}
	}
	known.upTo = len(r.instances)
	return known.list
}

// lookup gives target the instance with the key, now or once there is one.
func (r *run) lookup(e *types.Entity, values []given, target *variable, n *lookup) *Error {
	names := make([]string, 0, 4)
	for _, g := range values {
		names = append(names, g.name)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return runtimeError("Attribute %s provided twice in index lookup", name).in(n)
		}
	}
	var index *types.Index
	for _, x := range e.Indexes {
		if x.Matches(names) {
			index = x
			break
		}
	}
	if index == nil {
		pairs := make([]string, len(values))
		for i, g := range values {
			pairs[i] = fmt.Sprintf("(%s, %s)", pytext.Quote(g.name), types.Repr(g.value))
		}
		err := notFound("No index defined on %s for this lookup: [%s]", e.Name, strings.Join(pairs, ", "))
		err.Hint = "the indexes are " + indexNames(e)
		if len(e.Indexes) == 0 {
			err.Hint = fmt.Sprintf("add `index %s(%s)`", e.Short(), strings.Join(names, ", "))
		}
		return err.in(n)
	}
	var err *Error
	t := r.table(e, index)
	if r.key, err = indexKey(r.key, t, values); err != nil {
		return err.in(n)
	}
	if have, _ := r.find(t, r.key); have != nil {
		target.put(r, have, &n.span)
		return nil
	}
	key := string(r.key)
	if t.waiting == nil {
		t.waiting = map[string][]*pendingLookup{}
	}
	if t.waiting[key] == nil {
		t.order = append(t.order, key)
	}
	t.waiting[key] = append(t.waiting[key], &pendingLookup{target, n, values})
	return nil
}

func indexNames(e *types.Entity) string {
	parts := make([]string, len(e.Indexes))
	for i, x := range e.Indexes {
		parts[i] = "(" + strings.Join(x.Attributes, ", ") + ")"
	}
	return strings.Join(parts, ", ")
}
