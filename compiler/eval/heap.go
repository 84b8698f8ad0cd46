package eval

import (
	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// IsSlot implements program.Slot: plug-ins wait for variables.
func (v *variable) IsSlot() {}

// heap is what a plug-in can read of the model while it runs.
type heap struct {
	r *run
	s *scope
	n *program.Call
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
	v, err := h.r.variableOf(h.r.prog.RefAt(h.n, name), h.s)
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

// CheckResult checks the result of a plug-in that Python code called itself. It
// returns the type that the plug-in declares too.
func (h *heap) CheckResult(plugin string, v types.Value) (declared string, err *Error) {
	prefix, last, _ := program.CutName(plugin)
	space := h.r.prog.Namespaces[prefix]
	if space == nil {
		return "", nil
	}
	info, is := space.Things[last].(*program.PluginInfo)
	if !is {
		return "", nil
	}
	return checkResult(info, v)
}

// afterwards is what finalizers can read: they run in no scope.
type afterwards struct{ heap }

// Variable implements Heap.
func (*afterwards) Variable(string) Read { return Read{State: Missing} }

// Call returns nil: no call runs.
func (*afterwards) Call() *syntax.Call { return nil }

// TypeNames lists the types that the model defines: see program.TypeNames.
func (h *heap) TypeNames() []string { return program.TypeNames(h.r.prog.Files()) }

// Call returns the call as it is written.
func (h *heap) Call() *syntax.Call {
	written, _ := h.n.Syntax.(*syntax.Call)
	return written
}

// Type implements Heap.
func (h *heap) Type(name string) any {
	if p, ok := types.LookupPrimitive(name); ok {
		return p
	}
	prefix, last, _ := program.CutName(name)
	space := h.r.prog.Namespaces[prefix]
	if space == nil {
		return nil
	}
	switch thing := space.Things[last].(type) {
	case *program.EntityInfo:
		return thing.Entity
	case *program.TypedefInfo:
		return thing.Type
	case *program.ImplementationInfo:
		return thing.Summary()
	}
	return nil
}
