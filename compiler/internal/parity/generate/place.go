package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// file is the content of a namespace.
type file struct {
	parts   []string
	imports map[string]string // visible names by namespace
}

func (f *file) add(parts ...string) {
	for _, p := range parts {
		if p != "" {
			f.parts = append(f.parts, p)
		}
	}
}

// file returns the file of a namespace; an empty name means the main file.
func (g *generator) file(place string) *file {
	f := g.files[place]
	if f == nil {
		f = &file{imports: map[string]string{}}
		g.files[place] = f
	}
	return f
}

// ref returns the name by which a place refers to something in a namespace, and imports the namespace there.
func (g *generator) ref(at, place, name string) string {
	if at == place || (strings.HasPrefix(at, place+"::") && g.chance(50)) {
		return name
	}
	f := g.file(at)
	visible, ok := f.imports[place]
	if !ok {
		visible = place
		if g.chance(20) {
			visible = "q_" + strings.ReplaceAll(place, "::", "_")
		}
		f.imports[place] = visible
	}
	return visible + "::" + name
}

func (g *generator) name(at string, e *entity) string { return g.ref(at, e.place, e.name) }

// typeName returns the name of an attribute's type.
func (g *generator) typeName(at, typ string) string {
	switch typ {
	case "name":
		return "string"
	case "code", "even":
		if len(g.places) > 0 {
			return g.ref(at, "m0", typ)
		}
	}
	return typ
}

// sees reports whether a place can name an entity. No module can import the main file.
func (g *generator) sees(at string, e *entity) bool { return e.place != "" || at == "" }

// constants writes the variables that a place starts with.
func (g *generator) constants(place string) []variable {
	suffix := strings.ReplaceAll(place, "::", "_") + "0"
	return []variable{
		{name: "n" + suffix, typ: "int"}, {name: "s" + suffix, typ: "string"},
		{name: "t" + suffix, typ: "bool"}, {name: "l" + suffix, typ: "int[]"},
	}
}

// project writes all files. The main file imports every module, so that all of them
// are loaded.
func (g *generator) project() map[string]string {
	main := g.file("")
	for _, place := range g.places {
		if _, ok := main.imports[place]; !ok {
			main.imports[place] = place
		}
	}
	out := map[string]string{}
	if g.plugins {
		g.writePlugins(out)
	}
	for _, place := range slices.Sorted(maps.Keys(g.files)) {
		f := g.files[place]
		g.Shuffle(len(f.parts), func(i, j int) { f.parts[i], f.parts[j] = f.parts[j], f.parts[i] })
		var lines []string
		for _, ns := range slices.Sorted(maps.Keys(f.imports)) {
			line := "import " + ns
			if f.imports[ns] != ns {
				line += " as " + f.imports[ns]
			}
			lines = append(lines, line)
		}
		text := strings.Join(append(lines, f.parts...), "\n") + "\n"
		module, sub, nested := strings.Cut(place, "::")
		switch {
		case place == "":
			out["main.cf"] = text
			continue
		case !nested:
			sub = "_init"
		}
		out["libs/"+module+"/model/"+sub+".cf"] = text
		out["libs/"+module+"/module.yml"] = moduleFile(module)
	}
	for place := range g.files { // a module of which only a submodule is used
		module, _, _ := strings.Cut(place, "::")
		if init := "libs/" + module + "/model/_init.cf"; module != "" && out[init] == "" {
			out[init] = "\n"
		}
	}
	if g.policy {
		if rules := g.rules(); rules != "" {
			out["project.yml"] = "name: parity\nmodulepath: libs\nrelation_precedence_policy:\n" + rules
		}
	}
	return out
}

func moduleFile(name string) string { return "name: " + name + "\nversion: 1.0\nlicense: none\n" }

// rules returns a relation precedence policy: some relations in some order.
func (g *generator) rules() string {
	var names []string
	for _, e := range g.entities {
		for _, r := range e.relations {
			place := e.place
			if place == "" {
				place = "__config__"
			}
			if r.high == 0 {
				names = append(names, place+"::"+e.name+"."+r.name)
			}
		}
	}
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var b strings.Builder
	for i := range names {
		for j := i + 1; j < len(names); j++ {
			if g.chance(40) {
				fmt.Fprintf(&b, "  - \"%s before %s\"\n", names[i], names[j])
			}
		}
	}
	return b.String()
}
