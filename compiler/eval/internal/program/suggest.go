package program

import (
	"fmt"
	"slices"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// Suggest returns the hint "did you mean" when one of the names is similar.
func Suggest(what, wrong string, names []string) string {
	best := diag.Nearest(wrong, names)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean the %s %s?", what, best)
}

// suggestThing is Suggest for the types, implementations and plug-ins of namespaces.
// prefix is what stands before the name.
func suggestThing(prefix, wrong string, spaces ...*Namespace) string {
	names := []string{"string", "int", "float", "bool", "dict", "list"}
	if prefix != "" {
		names = nil
	}
	things := map[string]any{}
	for _, space := range spaces {
		for name, thing := range space.Things {
			names = append(names, name)
			things[name] = thing
		}
	}
	best := diag.Nearest(wrong, names)
	if best == "" {
		return ""
	}
	what := "type"
	switch things[best].(type) {
	case *EntityInfo:
		what = "entity"
	case *ImplementationInfo:
		what = "implementation"
	case *PluginInfo:
		what = "plug-in"
	}
	return fmt.Sprintf("did you mean the %s %s%s?", what, prefix, best)
}

// suggestImport is the hint for a namespace that is not visible in a file.
func (ns *Namespace) suggestImport(prefix string) string {
	visible := []string{ns.Name, "std"}
	for name := range ns.imports {
		visible = append(visible, name)
	}
	if best := diag.Nearest(prefix, visible); best != "" && best != prefix {
		return "did you mean " + best + "? Otherwise add `import " + prefix + "` at the top of the file"
	}
	return "add `import " + prefix + "` at the top of the file"
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// SuggestCall returns the hint for a call that does not fit: the name that was
// probably meant, or how the plug-in is called.
func SuggestCall(sig *Signature, named []string) string {
	names := make([]string, len(sig.Params))
	for i, p := range sig.Params {
		names[i] = p.Name
	}
	for _, name := range named {
		if !slices.Contains(names, name) {
			if hint := Suggest("argument", name, names); hint != "" {
				return hint + " It is called as " + signatureText(sig)
			}
		}
	}
	return "it is called as " + signatureText(sig)
}

func AttributeNames(e *types.Entity) []string {
	names := make([]string, len(e.Attributes))
	for i, a := range e.Attributes {
		names[i] = a.Name
	}
	return names
}
