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
	text   string // the key as errors show it
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
func indexKey(e *types.Entity, x *types.Index, values []given) (string, *Error) {
	var b strings.Builder
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
				return "", fail("TypingException", "Invalid value `%s` in index for attribute %s: references can not be used in indexes.", types.Text(ref), name)
			}
			writeKey(&b, v)
		}
	}
	return b.String(), nil
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

func writeKey(b *strings.Builder, v types.Value) {
	if i, ok := v.(*Instance); ok {
		b.WriteByte('#')
		b.WriteString(strconv.FormatUint(i.id, 10))
	} else {
		b.WriteString(types.Repr(v))
	}
	b.WriteByte(0)
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
	for _, e := range info.ancestry() {
		r.byEntity[e.Number] = append(r.byEntity[e.Number], i)
		for _, x := range e.Indexes {
			if err := r.addToIndex(i, e, x, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) addToIndex(i *Instance, e *types.Entity, x *types.Index, n node) *Error {
	values := make([]given, len(x.Attributes))
	for k, name := range x.Attributes {
		v, ok := i.variable(name).peek()
		if !ok {
			return nil
		}
		values[k] = given{name, v}
	}
	key, err := indexKey(e, x, values)
	if err != nil {
		return err.in(n)
	}
	t := r.table(e, x)
	if have := t.instances[key]; have != nil {
		if have == i {
			return nil
		}
		return duplicate(n, have, "Duplicate key in index. "+keyText(e, x, values))
	}
	t.instances[key] = i
	for _, p := range t.waiting[key] {
		p.target.put(r, i, &p.n.span)
	}
	delete(t.waiting, key)
	return nil
}

// lookup gives target the instance with the key, now or once there is one.
func (r *run) lookup(e *types.Entity, values []given, target *variable, n *lookup) *Error {
	names := make([]string, len(values))
	for i, g := range values {
		names[i] = g.name
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
	key, err := indexKey(e, index, values)
	if err != nil {
		return err.in(n)
	}
	t := r.table(e, index)
	if have := t.instances[key]; have != nil {
		target.put(r, have, &n.span)
		return nil
	}
	if t.waiting[key] == nil {
		t.order = append(t.order, key)
	}
	t.waiting[key] = append(t.waiting[key], &pendingLookup{target, n, keyText(e, index, values)})
	return nil
}

func indexNames(e *types.Entity) string {
	parts := make([]string, len(e.Indexes))
	for i, x := range e.Indexes {
		parts[i] = "(" + strings.Join(x.Attributes, ", ") + ")"
	}
	return strings.Join(parts, ", ")
}
