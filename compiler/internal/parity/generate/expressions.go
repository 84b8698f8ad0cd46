package generate

import (
	"cmp"
	"fmt"
	"strings"
)

var words = []string{"a", "web", "käse", "x_y", "", "two words", "9"}

// constant is a literal of a type.
func (g *generator) constant(typ string) string {
	switch typ {
	case "int":
		return fmt.Sprint(g.IntN(12) - 3)
	case "even":
		return fmt.Sprint(2 * g.IntN(9))
	case "float":
		return fmt.Sprintf("%d.%d", g.IntN(9), g.IntN(10))
	case "bool":
		return pick(g, []string{"true", "false"})
	case "string":
		return fmt.Sprintf("%q", pick(g, words))
	case "code":
		return pick(g, []string{`"abc"`, `"z"`, `"low9"`})
	case "string?", "int?":
		if g.chance(40) {
			return "null"
		}
		return g.constant(strings.TrimSuffix(typ, "?"))
	case "dict":
		return pick(g, []string{"{}", `{"a": 1}`, `{"a": [1, 2], "b": {"c": null}}`})
	case "int[]", "string[]":
		items := make([]string, g.IntN(4))
		for i := range items {
			items[i] = g.constant(strings.TrimSuffix(typ, "[]"))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	panic("no constant of type " + typ)
}

// expression makes an expression of a type. It does not read the attribute not of self,
// nor an attribute that an implementation sets if that could wait for itself.
func (g *generator) expression(typ string, s *scope, depth int, not string) string {
	if typ == "name" {
		return fmt.Sprintf(`"%s-{{ self.key }}"`, s.self.name)
	}
	if g.unknowns && g.chance(5) {
		return g.ref(s.place, "p", "unknown") + "()"
	}
	if depth <= 0 || g.chance(15) {
		return g.leaf(typ, s, not)
	}
	sub := func(t string) string { return g.expression(t, s, depth-1, not) }
	if g.plugins && g.chance(15) {
		if text := g.call(typ, s, sub); text != "" {
			return text
		}
	}
	if g.chance(12) {
		return "(" + sub("bool") + " ? " + sub(typ) + " : " + sub(typ) + ")"
	}
	switch typ {
	case "int":
		switch g.IntN(4) {
		case 0:
			return "(" + sub("int") + " + " + sub("int") + ")"
		case 1:
			return "(" + sub("int") + " * " + sub("int") + ")"
		case 2:
			return "(" + sub("int") + " - " + sub("int") + ")"
		}
		return "(" + sub("int") + " % 7)"
	case "float":
		if g.chance(50) {
			return "(" + sub("float") + " + " + sub("float") + ")"
		}
		return "(" + sub("int") + " / 4)"
	case "bool":
		return g.condition(s, depth, sub)
	case "string":
		return g.text(s, sub)
	case "int[]":
		if g.chance(50) {
			return "[z + " + sub(
				"int",
			) + " for z in " + sub("int[]") + pick(g, []string{"", " if z > 1", " if z != 2 if z < 9"}) + "]"
		}
		return "[" + sub("int") + ", " + sub("int[]") + "]"
	case "dict":
		return `{"k": ` + sub("int") + `, 'j': ` + sub("string") + "}"
	}
	return g.leaf(typ, s, not)
}

func (g *generator) condition(s *scope, depth int, sub func(string) string) string {
	switch g.IntN(8) {
	case 0:
		return "(" + sub("bool") + pick(g, []string{" and ", " or "}) + sub("bool") + ")"
	case 1:
		return "not " + g.leaf("bool", s, "")
	case 2:
		return "(" + sub("int") + pick(g, []string{" < ", " >= ", " == ", " != "}) + sub("int") + ")"
	case 3:
		return "(" + sub("string") + " == " + sub("string") + ")"
	case 4:
		return "(" + sub("int") + pick(g, []string{" in ", " not in "}) + sub("int[]") + ")"
	case 5:
		for _, v := range s.instances() {
			if rs := v.entity.allRelations(); len(rs) > 0 && g.chance(60) {
				r := pick(g, rs)
				if r.low == 0 {
					return fmt.Sprintf("(%s.%s is defined)", v.name, r.name)
				}
			}
		}
	case 6:
		if x := g.instance(s, nil); x != "" {
			return "(" + x + " == " + cmp.Or(g.instance(s, nil), x) + ")"
		}
	}
	return g.leaf("bool", s, "")
}

func (g *generator) text(s *scope, sub func(string) string) string {
	var names []string
	for _, v := range s.variables {
		if v.entity == nil && v.name != "" && !strings.Contains(v.name, ":") {
			names = append(names, v.name)
		}
	}
	for _, v := range s.instances() {
		if !strings.Contains(v.name, ":") {
			names = append(names, v.name+".key")
		}
	}
	if len(names) == 0 || g.chance(25) {
		return "(" + sub("string") + " + " + sub("string") + ")"
	}
	a, b := pick(g, names), pick(g, names)
	if g.chance(50) {
		return fmt.Sprintf("%q", "{{ "+a+" }}-"+pick(g, words)+"-{{"+b+"}}")
	}
	return fmt.Sprintf(`f"%s{%s}/{%s}"`, pick(g, words), a, b)
}

// leaf returns a name of the type, or a constant.
func (g *generator) leaf(typ string, s *scope, not string) string {
	var found []string
	for _, v := range s.variables {
		if v.entity == nil && v.typ == typ {
			found = append(found, v.name)
		}
	}
	for _, v := range s.instances() {
		for _, a := range v.entity.all() {
			if a.typ == typ && a.giver != byImplementation && a.name != not {
				found = append(found, v.name+"."+a.name)
			}
		}
		if typ != "int" {
			continue
		}
		for _, r := range v.entity.allRelations() {
			if r.low == 1 && r.high == 1 && not == "" {
				found = append(found, v.name+"."+r.name+".key")
			}
		}
	}
	if len(found) == 0 || g.chance(25) {
		return g.constant(typ)
	}
	return pick(g, found)
}
