package export

import (
	"slices"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
)

// unmanagedAgents returns the agents for which a std::AgentConfig of the model sets autostart
// to false: their resources wait for a remote agent. No version of the module std exports such
// an instance as a resource, so the model itself is asked.
//
// The default of the attribute is false, too, and does not count: models make instances
// without it only to have a configuration file generated, and newer versions of std say that
// the attribute has no effect.
func unmanagedAgents(heap eval.Heap) (names []string) {
	for _, of := range heap.Instances("std::AgentConfig") {
		i, ok := of.(*eval.Instance)
		if !ok || !setsFalse(i, "autostart") {
			continue
		}
		if purged, _ := i.Field("purged"); purged == types.Value(types.Bool(true)) {
			continue
		}
		if name, _ := i.Field("agentname"); name != nil {
			if text, ok := name.(types.Str); ok {
				names = append(names, string(text))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// setsFalse reports whether a statement of the model gave an attribute the value false. A
// default is written in the file that defines the attribute.
func setsFalse(i *eval.Instance, attribute string) bool {
	a := i.Entity().Attribute(attribute)
	for _, s := range i.Settings(nil, attribute) {
		if s.Value == types.Value(types.Bool(false)) && a != nil && s.At != nil && s.At.File != a.At.File {
			return true
		}
	}
	return false
}
