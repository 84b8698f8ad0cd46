package admin

import (
	"maps"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// narrowed returns a provider type of a project without fields that users could set against the will of a type with the
// same name that is shared or built in. Otherwise a person who may change a project's catalogue could let users
// choose the address to which the provider's secrets are sent: the plug-in of both types is the same.
func narrowed(own *catalogue.PluginType, namesakes ...*catalogue.PluginType) *catalogue.PluginType {
	if own.Automator {
		return own
	}
	out := *own
	out.Parameters.Admin.Fields = maps.Clone(own.Parameters.Admin.Fields)
	out.Parameters.User.Fields = maps.Clone(own.Parameters.User.Fields)
	for _, other := range namesakes {
		if other == nil {
			continue
		}
		for name, theirs := range other.Parameters.Admin.Fields {
			if theirs.Override {
				continue
			}
			if f, has := out.Parameters.Admin.Fields[name]; has {
				f.Override = false
				out.Parameters.Admin.Fields[name] = f
			}
			delete(out.Parameters.User.Fields, name)
		}
	}
	return &out
}

// narrow is narrowed for entities: others stay as they are.
func (n *snapshot) narrow(e catalogue.Entity) catalogue.Entity {
	own, is := e.(*catalogue.PluginType)
	if !is || own.Automator {
		return e
	}
	var namesakes []*catalogue.PluginType
	for _, b := range catalogue.BuiltIn() {
		if !b.Automator && b.Name == own.Name {
			namesakes = append(namesakes, b)
		}
	}
	if k, has := n.shared[catalogue.RefOf(own)]; has {
		if t, is := k.entity.(*catalogue.PluginType); is && t != own {
			namesakes = append(namesakes, t)
		}
	}
	return narrowed(own, namesakes...)
}
