package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// Slot is where a plug-in waits.
func (v *variable) slot() {}

// heap is what a plug-in may ask while it runs.
type heap struct {
	r *run
	s *scope
	n *call
}

func (h *heap) read(v *variable) Read {
	v = v.target()
	if !v.has {
		return Read{State: Unset, Slot: v}
	}
	if v.kind == option {
		if _, empty := v.value.(types.Null); empty {
			return Read{State: Optional, Value: null, Slot: v}
		}
	}
	return Read{State: Known, Value: v.value, Slot: v}
}

// Attribute implements Heap.
func (h *heap) Attribute(of types.Instance, name string) Read {
	i, ok := of.(*Instance)
	if !ok {
		return Read{State: Missing}
	}
	v := i.variable(name)
	if v == nil {
		return Read{State: Missing}
	}
	return h.read(v)
}

// Variable implements Heap.
func (h *heap) Variable(name string) Read {
	v, err := h.r.variableOf(h.r.prog.refAt(h.n, name), h.s)
	if err != nil {
		return Read{State: Missing}
	}
	return h.read(v)
}

// Instances implements Heap.
func (h *heap) Instances(entity string) []types.Instance {
	info, ok := h.Type(entity).(*types.Entity)
	if !ok {
		return nil
	}
	all := h.r.instancesOf(info)
	out := make([]types.Instance, 0, len(all))
	for _, i := range all {
		out = append(out, i)
	}
	return out
}

// CheckResult says what is wrong with the result of a plug-in that Python code
// called itself, and what that plug-in declares.
func (h *heap) CheckResult(plugin string, v types.Value) (declared string, err *Error) {
	prefix, last, _ := cutLast(plugin)
	space := h.r.prog.spaces[prefix]
	if space == nil {
		return "", nil
	}
	info, is := space.things[last].(*pluginInfo)
	if !is {
		return "", nil
	}
	return checkResult(info, v)
}

// afterwards is what finalizers may ask: they run in no scope.
type afterwards struct{ heap }

// Variable implements Heap.
func (*afterwards) Variable(string) Read { return Read{State: Missing} }

// Call gives nothing: no call runs.
func (*afterwards) Call() *syntax.Call { return nil }

// TypeNames lists the types that the model defines: see TypeNames.
func (h *heap) TypeNames() []string { return TypeNames(h.r.prog.files()) }

// Call gives the call as it is written.
func (h *heap) Call() *syntax.Call {
	written, _ := h.n.ast.(*syntax.Call)
	return written
}

// Type implements Heap.
func (h *heap) Type(name string) any {
	if p, ok := types.LookupPrimitive(name); ok {
		return p
	}
	prefix, last, _ := cutLast(name)
	space := h.r.prog.spaces[prefix]
	if space == nil {
		return nil
	}
	switch thing := space.things[last].(type) {
	case *entityInfo:
		return thing.entity
	case *typedefInfo:
		return thing.t
	case *implementationInfo:
		return thing.summary()
	}
	return nil
}
