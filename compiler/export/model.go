package export

import (
	"slices"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
)

// finished is the heap that Python sees after a compile: every variable that will ever have a
// value has it.
type finished struct {
	instances []*eval.Instance
	exact     map[*types.Entity][]int32   // indexes into instances, without those of descendants
	asked     map[string][]types.Instance // results of Instances
	entities  map[string]*types.Entity
	typedefs  map[string]*types.Typedef
	impls     map[string]*types.Implementation // made when first needed
	result    *eval.Result
}

// Finished returns the heap of a successful compile.
func Finished(result *eval.Result) eval.Heap {
	f := &finished{
		instances: result.Instances,
		exact:     map[*types.Entity][]int32{},
		asked:     map[string][]types.Instance{},
		entities:  map[string]*types.Entity{},
		typedefs:  map[string]*types.Typedef{},
		result:    result,
	}
	for _, e := range result.Entities {
		f.entities[e.Name] = e
	}
	for _, t := range result.Typedefs {
		f.typedefs[t.Name] = t
	}
	for n, i := range result.Instances {
		f.exact[i.Entity()] = append(f.exact[i.Entity()], int32(n))
	}
	return f
}

// TypeNames lists the names of all types that the model defines, for dependency managers that
// walk over it.
func (f *finished) TypeNames() []string { return eval.TypeNames(f.result.Files) }

// CheckResult checks the result of a plug-in that Python code called.
func (f *finished) CheckResult(plugin string, v types.Value) (declared string, err *eval.Error) {
	if f.result.CheckResult == nil {
		return "", nil
	}
	return f.result.CheckResult(plugin, v)
}

func (f *finished) implementation(name string) *types.Implementation {
	if f.impls == nil {
		f.impls = map[string]*types.Implementation{}
		for _, i := range f.result.Implementations {
			f.impls[i.Name] = i
		}
	}
	return f.impls[name]
}

// Attribute implements eval.Heap.
func (f *finished) Attribute(of types.Instance, name string) eval.Read {
	i, ok := of.(*eval.Instance)
	if !ok {
		return eval.Read{State: eval.Missing}
	}
	place := i.Entity().Slot(name)
	if name == "self" {
		return eval.Read{State: eval.Known, Value: of}
	}
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
func (f *finished) Instances(entity string) []types.Instance {
	e, known := f.entities[entity]
	if all, have := f.asked[entity]; have || !known {
		return all
	}
	var places []int32
	for own, of := range f.exact {
		if own.IsSubclassOf(e) {
			places = append(places, of...)
		}
	}
	slices.Sort(places)
	all := make([]types.Instance, len(places))
	for n, place := range places {
		all[n] = f.instances[place]
	}
	f.asked[entity] = all
	return all
}

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
	if i := f.implementation(name); i != nil {
		return i
	}
	return nil
}
