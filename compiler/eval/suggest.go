package eval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sync"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// suggest gives the hint "did you mean" when one of the names is near.
func suggest(what, wrong string, names []string) string {
	best := diag.Nearest(wrong, names)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean the %s %s?", what, best)
}

// suggestThing is suggest for what a namespace holds: types, implementations
// and plug-ins. prefix is what stands before the name.
func suggestThing(prefix, wrong string, spaces ...*namespace) string {
	names := []string{"string", "int", "float", "bool", "dict", "list"}
	if prefix != "" {
		names = nil
	}
	things := map[string]any{}
	for _, space := range spaces {
		for name, thing := range space.things {
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
	case *entityInfo:
		what = "entity"
	case *implementationInfo:
		what = "implementation"
	case *pluginInfo:
		what = "plug-in"
	}
	return fmt.Sprintf("did you mean the %s %s%s?", what, prefix, best)
}

// suggestImport is the hint for a namespace that is not visible in a file.
func (ns *namespace) suggestImport(prefix string) string {
	visible := []string{ns.name, "std"}
	for name := range ns.imports {
		visible = append(visible, name)
	}
	if best := diag.Nearest(prefix, visible); best != "" && best != prefix {
		return "did you mean " + best + "? Otherwise add `import " + prefix + "` at the top of the file"
	}
	return "add `import " + prefix + "` at the top of the file"
}

// signatureText is how a plug-in is called.
func signatureText(sig *Signature) string {
	params := make([]string, 0, len(sig.Params))
	for _, p := range sig.Params {
		text := p.Name
		switch p.Kind {
		case VarArgs:
			text = "*" + text
		case VarKeywords:
			text = "**" + text
		}
		if p.Type != nil && (p.Type.Text != "" || p.Type.Name != "") {
			text += ": " + strings.Trim(first(p.Type.Text, p.Type.Name), "'\"")
		}
		if p.HasDefault {
			text += " = …"
		}
		params = append(params, text)
	}
	return sig.Name + "(" + strings.Join(params, ", ") + ")"
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// suggestCall is the hint for a call that does not fit: the name that was
// probably meant, or how the plug-in is called.
func suggestCall(sig *Signature, named []string) string {
	names := make([]string, len(sig.Params))
	for i, p := range sig.Params {
		names[i] = p.Name
	}
	for _, name := range named {
		if !slices.Contains(names, name) {
			if hint := suggest("argument", name, names); hint != "" {
				return hint + " It is called as " + signatureText(sig)
			}
		}
	}
	return "it is called as " + signatureText(sig)
}

func attributeNames(e *types.Entity) []string {
	names := make([]string, len(e.Attributes))
	for i, a := range e.Attributes {
		names[i] = a.Name
	}
	return names
}

var noAttribute = sync.OnceValue(
	func() *regexp.Regexp { return regexp.MustCompile(`([\w:]+) has no attribute '([^']*)'$`) },
)

// Hint are the notes of an exception of Python code, and for one that reads an
// attribute that an instance does not have, which ones it has; typeOf is
// Heap.Type.
func (e *PluginError) Hint(typeOf func(name string) any) string {
	if e.Wrapped != nil && e.Notes == "" {
		return e.Wrapped.Hint(typeOf)
	}
	m := noAttribute().FindStringSubmatch(strings.TrimSpace(e.Message))
	if m == nil {
		m = noAttribute().FindStringSubmatch(e.Notes)
	}
	if m == nil {
		return e.Notes
	}
	entity, ok := typeOf(m[1]).(*types.Entity)
	if !ok {
		return e.Notes
	}
	hint := suggest("attribute", m[2], attributeNames(entity))
	if hint == "" {
		names := attributeNames(entity)
		slices.Sort(names)
		hint = m[1] + " has the attributes " + strings.Join(names, ", ")
	}
	if e.Notes == "" {
		return hint
	}
	return e.Notes + ": " + hint
}

// Frames are the lines of plug-ins that led to it.
func (e *PluginError) Frames() []diag.Frame { return frames(e.Trace) }

// suggestInstance tells what a lookup could have found.
func (r *run) suggestInstance(e *types.Entity) string {
	const most = 3
	have := r.instancesOf(e)
	if len(have) == 0 {
		return "nothing makes an instance of " + e.Name
	}
	titles := make([]string, 0, most)
	for _, i := range have[:min(len(have), most)] {
		titles = append(titles, i.Title())
	}
	text := "there is " + strings.Join(titles, ", ")
	if more := len(have) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
