package generate

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed plugins.py
var library string

// call makes a call of a plug-in that returns the type, or an empty text if there is no
// such plug-in.
func (g *generator) call(typ string, s *scope, sub func(string) string) string {
	p := func(name string, args ...string) string {
		return g.ref(s.place, "p", name) + "(" + strings.Join(args, ", ") + ")"
	}
	switch typ {
	case "int":
		switch g.IntN(5) {
		case 0:
			return p("add", sub("int"), sub("int"))
		case 1:
			return p("add", "b="+sub("int"), "a="+sub("int"))
		case 2:
			return p("size", sub("int[]"))
		case 3:
			return p("size", sub("dict"))
		}
		if x := g.instance(s, nil); x != "" {
			return p("key", x)
		}
	case "int?":
		return p("maybe", sub("int"))
	case "string":
		return p("join", sub("string"), sub("string"), `sep="+"`)
	case "float":
		return p("half", sub("int"))
	case "bool":
		return p("flip", sub("bool"))
	case "int[]":
		return p("spread", sub("int"))
	case "dict":
		return p("box", sub("int"), sub("string[]"))
	}
	return ""
}

// reading makes a call of a plug-in that reads attributes and relations, some of them not
// set yet. The compiler calls it again until they are.
func (g *generator) reading(s *scope) string {
	all := s.instances()
	if len(all) == 0 || !g.plugins {
		return ""
	}
	v := pick(g, all)
	args := []string{v.name}
	for _, a := range v.entity.all() {
		if g.chance(40) && (v.name != "self" || a.giver != byImplementation || g.chance(50)) {
			args = append(args, fmt.Sprintf("%q", a.name))
		}
	}
	for _, r := range v.entity.allRelations() {
		if g.chance(30) {
			args = append(args, fmt.Sprintf("%q", r.name))
		}
	}
	return g.ref(s.place, "p", pick(g, []string{"read", "read", "trace"})) + "(" + strings.Join(args, ", ") + ")"
}

// writePlugins writes module p: the library, a plug-in for each entity that takes and
// returns it, and resources.
func (g *generator) writePlugins(out map[string]string) {
	text := library
	for _, e := range g.entities {
		if e.place == "" {
			continue
		}
		g.file("p").imports[e.place] = e.place
		full := e.place + "::" + e.name
		text += fmt.Sprintf("\n\n@plugin\ndef same_%s(e: \"%s\") -> \"%s\":\n    return e\n", e.name, full, full)
		if g.exports {
			var fields []string
			for _, a := range e.all() {
				if !strings.HasPrefix(a.name, "name_") {
					fields = append(fields, fmt.Sprintf("%q", a.name))
				}
			}
			text += fmt.Sprintf(
				"\n\n@resource(%q, agent=%q, id_attribute=%q)\nclass %s(Resource):\n    fields = (%s,)\n",
				full,
				"name_"+e.name,
				"key",
				e.name,
				strings.Join(fields, ", "),
			)
		}
	}
	g.file("p")
	out["libs/p/module.yml"] = moduleFile("p")
	out["libs/p/plugins/__init__.py"] = text
}
