package eval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/types"
)

// indexTable finds the instances of one entity, descendants included, by the
// key of one index.
type indexTable struct {
	instances map[string]*Instance
	// waiting are the lookups that found nothing yet, by key; order keeps the
	// keys in the order in which they were first asked for.
	waiting map[string][]*pendingLookup
	order   []string
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
	if t == nil {
		t = &indexTable{instances: map[string]*Instance{}, waiting: map[string][]*pendingLookup{}}
		r.indexes[tableOf{e, x}] = t
		r.tables = append(r.tables, tableOf{e, x})
	}
	return t
}

// indexKey builds the key of an index from the values of its attributes. A
// lookup takes a whole number for a float attribute.
//
// The key lies in b, which is used again for the next one: as an index of a map
// it is never copied.
func indexKey(b []byte, e *types.Entity, x *types.Index, values []given) ([]byte, *Error) {
	b = b[:0]
	for _, name := range x.Attributes {
		for _, g := range values {
			if g.name != name {
				continue
			}
			v := g.value
			if attr := e.Attribute(name); attr.Type == types.FloatT {
				v = toFloat(v)
			}
			if ref, is := v.(*types.Reference); is {
				return b, fail("TypingException", "Invalid value `%s` in index for attribute %s: references can not be used in indexes.", types.Text(ref), name)
			}
			b = appendKey(b, v)
		}
	}
	return b, nil
}

func toFloat(v types.Value) types.Value {
	switch v := v.(type) {
	case types.Int:
		return types.Float(v)
	case types.BigInt, types.Bool:
		if f, err := types.FloatT.Cast(v); err == nil {
			return f
		}
	}
	return v
}

// appendKey writes what Repr tells apart, quicker for what keys mostly are.
func appendKey(b []byte, v types.Value) []byte {
	switch v := v.(type) {
	case *Instance:
		b = strconv.AppendUint(append(b, '#'), v.id, 10)
	case types.Str:
		return appendText(b, string(v))
	case *types.Object:
		if v.Text != nil {
			return appendText(b, *v.Text)
		}
		b = append(b, types.Repr(v)...)
	default:
		b = append(b, types.Repr(v)...)
	}
	return append(b, 0)
}

// appendText writes a string with its length, since it may hold any byte.
func appendText(b []byte, s string) []byte {
	b = strconv.AppendInt(append(b, '"'), int64(len(s)), 10)
	return append(append(b, '"'), s...)
}

func keyText(e *types.Entity, x *types.Index, values []given) string {
	parts := make([]string, 0, len(values))
	for _, name := range x.Attributes {
		for _, g := range values {
			if g.name == name {
				parts = append(parts, name+"="+types.Repr(g.value))
			}
		}
	}
	return strings.Join(parts, ", ")
}

// ancestry is the entity and all above it, each once. It is made for entities
// that have instances only: all of them together grow with the square of the
// depth.
func (info *entityInfo) ancestry() []*types.Entity {
	if info.lineage != nil {
		return info.lineage
	}
	seen := map[*types.Entity]bool{}
	var walk func(e *types.Entity)
	walk = func(e *types.Entity) {
		if seen[e] {
			return
		}
		seen[e] = true
		info.lineage = append(info.lineage, e)
		for _, parent := range e.Parents {
			walk(parent)
		}
	}
	walk(info.entity)
	return info.lineage
}

// register makes an instance known to its entity and the entities above it.
func (r *run) register(i *Instance, info *entityInfo, n node) *Error {
	var key string
	for _, e := range info.ancestry() {
		for _, x := range e.Indexes {
			if err := r.addToIndex(i, e, x, n, &key); err != nil {
				return err
			}
		}
	}
	return nil
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

// addToIndex puts an instance into one index. The tables of an entity and of
// those above it share the text of the key, which last holds.
func (r *run) addToIndex(i *Instance, e *types.Entity, x *types.Index, n node, last *string) *Error {
	values := make([]given, 0, 4)
	for _, name := range x.Attributes {
		v, ok := i.variable(name).peek()
		if !ok {
			return nil
		}
		values = append(values, given{name: name, value: v})
	}
	var err *Error
	if r.key, err = indexKey(r.key, e, x, values); err != nil {
		return err.in(n)
	}
	if *last != string(r.key) {
		*last = string(r.key)
	}
	key, t := *last, r.table(e, x)
	if have := t.instances[key]; have != nil {
		if have == i {
			return nil
		}
		return duplicate(n, have, "Duplicate key in index. "+keyText(e, x, values))
	}
	t.instances[key] = i
	if waiting, some := t.waiting[key]; some {
		for _, p := range waiting {
			p.target.put(r, i, &p.n.span)
		}
		delete(t.waiting, key)
	}
	return nil
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
			pairs[i] = fmt.Sprintf("(%s, %s)", types.Quote(g.name), types.Repr(g.value))
		}
		err := notFound("No index defined on %s for this lookup: [%s]", e.Name, strings.Join(pairs, ", "))
		err.Hint = "the indexes are " + indexNames(e)
		if len(e.Indexes) == 0 {
			err.Hint = fmt.Sprintf("add `index %s(%s)`", e.Short(), strings.Join(names, ", "))
		}
		return err.in(n)
	}
	var err *Error
	if r.key, err = indexKey(r.key, e, index, values); err != nil {
		return err.in(n)
	}
	t := r.table(e, index)
	if have := t.instances[string(r.key)]; have != nil {
		target.put(r, have, &n.span)
		return nil
	}
	key := string(r.key)
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
