package generate

import (
	"cmp"
	"fmt"
	"strings"
)

// scope holds what statements at a place can name.
type scope struct {
	self      *entity // nil at module level
	place     string  // namespace
	variables []variable
	parts     []variable // lookups of parts that certainly exist
	growing   bool       // in a loop over a relation, where constructing instances may never end
}

type variable struct {
	name, typ string
	entity    *entity // for instances; a list of them with typ "[]"
	sure      bool    // the instance certainly exists
}

// with returns a scope with one more variable, which may hide another.
func (s *scope) with(v variable) *scope {
	inner := &scope{self: s.self, place: s.place, growing: s.growing, parts: s.parts}
	for _, outer := range s.variables {
		if outer.name != v.name {
			inner.variables = append(inner.variables, outer)
		}
	}
	inner.variables = append(inner.variables, v)
	return inner
}

// inner returns a scope whose variables are not visible outside.
func (s *scope) inner() *scope { return s.with(variable{}) }

// bound returns the name of a loop variable; sometimes it hides another variable.
func (g *generator) bound(s *scope, prefix string) string {
	if v := variable(pick(g, append(s.variables, variable{}))); g.chance(6) && v.name != "" &&
		!strings.Contains(v.name, ":") {
		return v.name
	}
	return g.fresh(prefix)
}

// instances returns the expressions that name an instance.
func (s *scope) instances() []variable {
	var found []variable
	if s.self != nil {
		found = append(found, variable{name: "self", entity: s.self})
	}
	for _, v := range s.variables {
		if v.entity != nil && v.typ != "[]" {
			found = append(found, v)
		}
	}
	return found
}

// instance picks an instance of an entity or its children, or returns an empty text.
func (g *generator) instance(s *scope, of *entity) string {
	var found []string
	for _, v := range s.instances() {
		if of == nil || v.entity.is(of) {
			found = append(found, v.name)
		}
	}
	if g.chance(20) {
		for _, e := range append([]*entity{of}, g.entities...) {
			if e != nil && (of == nil || e.is(of)) && e.part == nil && e.indexed && len(e.made) > 0 &&
				g.sees(s.place, e) {
				found = append(found, fmt.Sprintf("%s[key=%d]", g.name(s.place, e), pick(g, e.made)))
			}
		}
		for _, v := range s.parts {
			if of == nil || v.entity.is(of) {
				found = append(found, v.name)
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return pick(g, found)
}

// multi picks a list relation of an instance in scope to which anything can be added.
func (g *generator) multi(s *scope) (path string, r *relation) {
	type choice struct {
		path string
		r    *relation
	}
	var found []choice
	for _, v := range s.instances() {
		for _, r := range v.entity.allRelations() {
			if r.high == 0 {
				found = append(found, choice{v.name + "." + r.name, r})
			}
		}
	}
	if len(found) == 0 {
		return "", nil
	}
	c := pick(g, found)
	return c.path, c.r
}

// statement makes a statement that sets no attribute and no single relation a second time.
func (g *generator) statement(s *scope, depth int) string {
	if depth > 3 {
		return ""
	}
	switch g.IntN(11) {
	case 0: // a variable
		typ := pick(g, []string{"int", "string", "bool", "int[]", "dict"})
		name := g.fresh("v")
		text := name + " = " + g.expression(typ, s, 3, "")
		if depth <= 1 {
			s.variables = append(s.variables, variable{name: name, typ: typ})
		}
		return text
	case 1, 2: // into a list
		path, r := g.multi(s)
		if r == nil {
			return ""
		}
		op := pick(g, []string{"=", "+="})
		if value := g.elements(s, r, depth); value != "" {
			return path + " " + op + " " + value
		}
	case 3: // a loop over a relation
		path, r := g.multi(s)
		if r == nil {
			return ""
		}
		name := g.bound(s, "e")
		inner := s.with(variable{name: name, typ: r.target.name, entity: r.target})
		inner.growing = true
		body := g.block(inner, depth+1)
		return fmt.Sprintf("for %s in %s:\n%s\nend", name, path, indent(body))
	case 4: // a loop over numbers
		name := g.bound(s, "i")
		body := g.block(s.with(variable{name: name, typ: "int"}), depth+1)
		return fmt.Sprintf("for %s in %s:\n%s\nend", name, g.expression("int[]", s, 1, ""), indent(body))
	case 5, 6: // a condition
		var b strings.Builder
		fmt.Fprintf(&b, "if %s:\n%s\n", g.expression("bool", s, 3, ""), indent(g.block(s.inner(), depth+1)))
		if g.chance(30) {
			fmt.Fprintf(&b, "elif %s:\n%s\n", g.expression("bool", s, 2, ""), indent(g.block(s.inner(), depth+1)))
		}
		if g.chance(50) {
			fmt.Fprintf(&b, "else:\n%s\n", indent(g.block(s.inner(), depth+1)))
		}
		return b.String() + "end"
	case 7: // one more instance, without a name
		return g.constructor(g.deeper(s, nil), s, 1)
	case 8: // the instances of a relation, read as a whole
		path, r := g.multi(s)
		if r == nil {
			return ""
		}
		return g.fresh("w") + " = [" + "y.key for y in " + path + g.guard(s, r) + "]"
	case 9:
		return g.makePart(s, depth)
	case 10:
		return g.sink(s)
	}
	return ""
}

// sink sets a variable that nothing reads. So it may read anything: whole lists, values
// that implementations set, results of plug-ins.
func (g *generator) sink(s *scope) string {
	name := g.fresh("w") + " = "
	path, r := g.multi(s)
	switch g.IntN(8) {
	case 0, 1:
		if text := g.reading(s); text != "" {
			return name + text
		}
	case 2: // two loops in one comprehension
		if r == nil {
			break
		}
		inner := s.with(variable{name: "y", typ: r.target.name, entity: r.target})
		if onward, other := g.multi(inner); other != nil && g.chance(50) {
			return name + "[z.key for y in " + path + " for z in " + onward + g.guard(inner, other) + "]"
		}
		return name + "[y.key + z for y in " + path + " for z in " + g.expression("int[]", s, 1,
			"") + g.guard(s, r) + "]"
	case 3: // nested
		if r != nil {
			return name + "[[z * y.key for z in " + g.expression("int[]", s, 1, "") + "] for y in " + path + "]"
		}
	case 4:
		if r != nil {
			return name + path
		}
	case 5: // a value that an implementation sets
		for _, v := range s.instances() {
			for _, a := range v.entity.all() {
				if a.giver == byImplementation && g.chance(50) {
					return name + pick(
						g,
						[]string{
							v.name + "." + a.name,
							`"{{ ` + v.name + "." + a.name + ` }}"`,
							"[" + v.name + "." + a.name + "]",
						},
					)
				}
			}
		}
	case 6:
		if len(s.parts) > 0 {
			return name + pick(g, s.parts).name
		}
	case 7:
		if r != nil && g.plugins {
			return name + g.ref(s.place, "p", pick(g, []string{"size(", "least("})) + path + ")"
		}
	}
	if x := g.instance(s, nil); x != "" {
		return name + x
	}
	return ""
}

// refinement returns the condition of an implement statement. Sometimes it depends on a
// list, which must be complete.
func (g *generator) refinement(s *scope) string {
	inner := &scope{self: s.self, place: s.place}
	path, r := g.multi(inner)
	if r == nil || g.chance(50) {
		return g.expression("bool", inner, 2, "")
	}
	switch g.IntN(4) {
	case 0:
		return path + " is defined"
	case 1:
		if g.plugins {
			return fmt.Sprintf("%s(self, %q) > %d", g.ref(s.place, "p", "total"), r.name, g.IntN(12))
		}
	case 2:
		return "[y.key for y in " + path + "] != []"
	}
	return "self in " + path
}

func (g *generator) guard(s *scope, r *relation) string {
	if g.chance(50) {
		return ""
	}
	return " if " + g.expression("bool", s.with(variable{name: "y", entity: r.target}), 2, "")
}

func (g *generator) block(s *scope, depth int) []string {
	var out []string
	for range 1 + g.IntN(2) {
		if st := g.statement(s, depth); st != "" {
			out = append(out, st)
		}
	}
	return out
}

// deeper picks an entity that may be constructed here. So that models end, that is a
// deeper entity in an implementation, and none in a loop that may feed itself.
func (g *generator) deeper(s *scope, of *entity) *entity {
	if s.growing {
		return nil
	}
	var found []*entity
	for _, e := range g.entities {
		if (of == nil || e.is(of)) && g.sees(s.place, e) && (s.self == nil || e.depth > g.reach(s.self)) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return pick(g, found)
}

// elements makes elements for a list relation.
func (g *generator) elements(s *scope, r *relation, depth int) string {
	if r.inverse != nil && r.inverse.high == 1 {
		// an element belongs to one list only: a new one
		if e := g.deeper(s, r.target); e != nil {
			return g.constructor(e, s, 1)
		}
		return ""
	}
	switch g.IntN(7) {
	case 6: // those of another, as a plug-in sees them
		path, other := g.multi(s)
		if other != nil && other.target.is(r.target) && g.plugins {
			owner := path[:strings.LastIndexByte(path, '.')]
			return fmt.Sprintf("%s(%s, %q)", g.ref(s.place, "p", "members"), owner, other.name)
		}
	case 0:
		if e := g.deeper(s, r.target); e != nil {
			return g.constructor(e, s, depth+1)
		}
	case 1: // another relation, as it grows
		path, other := g.multi(s)
		if other != nil && other.target.is(r.target) {
			return path
		}
	case 2:
		path, other := g.multi(s)
		if other != nil && other.target.is(r.target) {
			return "[y for y in " + path + g.guard(s, other) + "]"
		}
	case 3:
		return "[]"
	case 4:
		a, b := g.instance(s, r.target), g.instance(s, r.target)
		if a != "" {
			return "[" + a + ", " + cmp.Or(b, a) + "]"
		}
	}
	return g.instance(s, r.target)
}

// constructor makes an instance and sets everything that the plan leaves to constructors.
func (g *generator) constructor(e *entity, s *scope, depth int) string {
	if e == nil || !g.sees(s.place, e) {
		return ""
	}
	var args []string
	for _, a := range e.all() {
		switch {
		case a.name == "key":
			g.keys++
			key := fmt.Sprint(g.keys)
			if s.self != nil { // each instance of the implemented entity makes its own
				key = fmt.Sprintf("self.key * 100 + %d", g.keys%97)
			}
			args = append(args, "key="+key)
		case a.giver == byConstructor, a.giver == byDefault && g.chance(25):
			args = append(args, a.name+"="+g.expression(a.typ, s, 2, ""))
		}
	}
	for _, r := range e.allRelations() {
		if r.implicit || r.low == 1 || r.high != 1 || !g.chance(50) {
			continue
		}
		if other := g.instance(s, r.target); other != "" && (r.inverse == nil || r.inverse.high == 0) {
			args = append(args, r.name+"="+other)
		}
	}
	g.Shuffle(len(args), func(i, j int) { args[i], args[j] = args[j], args[i] })
	return g.name(s.place, e) + "(" + strings.Join(args, ", ") + ")"
}
