package export

import (
	"maps"
	"slices"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
)

// finished is the model after a compile, as a heap for Python: every variable
// that will ever have a value has it.
type finished struct {
	byEntity map[*types.Entity][]types.Instance
	entities map[string]*types.Entity
	typedefs map[string]*types.Typedef
}

// Finished gives the heap of a successful compile.
func Finished(result *eval.Result) eval.Heap {
	f := &finished{
		byEntity: map[*types.Entity][]types.Instance{},
		entities: map[string]*types.Entity{},
		typedefs: map[string]*types.Typedef{},
	}
	for _, e := range result.Entities {
		f.entities[e.Name] = e
	}
	for _, t := range result.Typedefs {
		f.typedefs[t.Name] = t
	}
	lineage := map[*types.Entity][]*types.Entity{}
	for _, i := range result.Instances {
		own := i.Entity()
		above, known := lineage[own]
		if !known {
			for _, e := range result.Entities {
				if own.IsSubclassOf(e) {
					above = append(above, e)
				}
			}
			lineage[own] = above
		}
		for _, e := range above {
			f.byEntity[e] = append(f.byEntity[e], i)
		}
	}
	return f
}

// Entities lists the names of all entities, for dependency managers that walk
// over the model.
func (f *finished) Entities() []string { return slices.Sorted(maps.Keys(f.entities)) }

// Attribute implements eval.Heap.
func (f *finished) Attribute(of types.Instance, name string) eval.Read {
	i, ok := of.(*eval.Instance)
	if !ok {
		return eval.Read{State: eval.Missing}
	}
	place := i.Entity().Slot(name)
	if place < 0 {
		return eval.Read{State: eval.Missing}
	}
	v, ok := i.ValueAt(place)
	if !ok {
		v = types.Null{}
	}
	if _, null := v.(types.Null); null && i.Entity().Attributes[place].End != nil {
		return eval.Read{State: eval.Optional}
	}
	return eval.Read{State: eval.Known, Value: v}
}

// Variable implements eval.Heap: an export happens in no scope.
func (f *finished) Variable(string) eval.Read { return eval.Read{State: eval.Missing} }

// Instances implements eval.Heap.
func (f *finished) Instances(entity string) []types.Instance { return f.byEntity[f.entities[entity]] }

// Type implements eval.Heap.
func (f *finished) Type(name string) any {
	if e, ok := f.entities[name]; ok {
		return e
	}
	if t, ok := f.typedefs[name]; ok {
		return t
	}
	if p, ok := types.LookupPrimitive(name); ok {
		return p
	}
	return nil
}
