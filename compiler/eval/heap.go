package eval

import (
	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// Slot is where a plug-in waits.
func (v *variable) IsSlot() {}

// heap is what a plug-in may ask while it runs.
type heap struct {
	r *run
	s *scope
	n *program.Call
}

func (h *heap) read(v *variable) program.Read {
	v = v.target()
	if !v.has {
		return program.Read{State: program.Unset, Slot: v}
	}
	if v.kind == option {
		if _, empty := v.value.(types.Null); empty {
			return program.Read{State: program.Optional, Value: null, Slot: v}
		}
	}
	return program.Read{State: program.Known, Value: v.value, Slot: v}
}

// Attribute implements Heap.
func (h *heap) Attribute(of types.Instance, name string) program.Read {
	i, ok := of.(*Instance)
	if !ok {
		return program.Read{State: program.Missing}
	}
	v := i.variable(name)
	if v == nil {
		return program.Read{State: program.Missing}
	}
	return h.read(v)
}

// Variable implements Heap.
func (h *heap) Variable(name string) program.Read {
	v, err := h.r.variableOf(h.r.prog.RefAt(h.n, name), h.s)
	if err != nil {
		return program.Read{State: program.Missing}
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
func (h *heap) CheckResult(plugin string, v types.Value) (declared string, err *program.Error) {
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

// afterwards is what finalizers may ask: they run in no scope.
type afterwards struct{ heap }

// Variable implements Heap.
func (*afterwards) Variable(string) program.Read { return program.Read{State: program.Missing} }

// Call returns nothing: no call runs.
func (*afterwards) Call() *syntax.Call { return nil }

// TypeNames lists the types that the model defines: see TypeNames.
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
