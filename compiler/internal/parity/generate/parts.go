package generate

import "fmt"

// part is an entity that belongs to an owner and is indexed by the owner and a key.
// Constructing the same part twice makes one instance, which can be looked up from
// either side.
type part struct {
	entity *entity
	list   *relation // of the owner
}

func (g *generator) own(n int) {
	owner := pick(g, g.entities)
	e := &entity{name: fmt.Sprintf("L%d", n), place: owner.place, depth: 100}
	e.attributes = []*attribute{
		{name: "key", typ: "int", giver: byConstructor},
		{name: "tag", typ: "string", giver: byImplementation},
		{name: "mark", typ: "string", giver: byDefault, def: g.constant("string")},
	}
	back := &relation{name: "owner", owner: e, target: owner, low: 1, high: 1, implicit: true}
	list := &relation{name: fmt.Sprintf("parts%d", n), owner: owner, target: e, inverse: back}
	back.inverse = list
	owner.relations = append(owner.relations, list)
	e.relations = []*relation{back}
	e.part = &part{entity: e, list: list}
	g.parts = append(g.parts, e.part)
}

func (g *generator) definePart(p *part) {
	e := p.entity
	s := &scope{self: e, place: e.place, variables: g.constants(e.place)}
	g.file(e.place).add(
		fmt.Sprintf("entity %s:\n    int key\n    string tag\n    string mark = %s\nend", e.name, e.attributes[2].def),
		fmt.Sprintf("index %s(owner, key)", e.name),
		fmt.Sprintf("implementation i_%s for %s:\n%s\nend", e.name, e.name, indent([]string{
			`self.tag = "{{ self.owner.key }}/{{self.key}}"`, g.statement(s, 2),
		})),
		fmt.Sprintf("implement %s using i_%s", e.name, e.name))
}

type owned struct {
	part *part
	path string
	sure bool
}

// owners are the instances in scope that can have parts.
func (g *generator) owners(s *scope) []owned {
	var found []owned
	for _, v := range s.instances() {
		for _, p := range g.parts {
			if v.entity.is(p.list.owner) && g.sees(s.place, p.entity) {
				found = append(found, owned{p, v.name, v.sure})
			}
		}
	}
	return found
}

// makePart constructs a part and sets its owner in one of the possible ways.
func (g *generator) makePart(s *scope, depth int) string {
	found := g.owners(s)
	if len(found) == 0 {
		return ""
	}
	o := pick(g, found)
	key := fmt.Sprint(g.IntN(3))
	if s.self != nil && g.chance(50) {
		key = "self.key % 3"
	} else if depth == 0 && o.sure {
		o.part.entity.made = append(o.part.entity.made, g.IntN(3))
		key = fmt.Sprint(o.part.entity.made[len(o.part.entity.made)-1])
		s.parts = append(s.parts, o.part.lookups(g, s, o.path, key)...)
	}
	if depth == 0 && len(s.parts) > 0 && g.chance(50) {
		name, found := g.fresh("y"), pick(g, s.parts)
		s.variables = append(s.variables, variable{name: name, typ: found.typ, entity: found.entity, sure: true})
		return name + " = " + found.name
	}
	name := g.name(s.place, o.part.entity)
	switch g.IntN(3) {
	case 0:
		return fmt.Sprintf("%s(owner=%s, key=%s)", name, o.path, key)
	case 1:
		return fmt.Sprintf("%s.%s = %s(key=%s)", o.path, o.part.list.name, name, key)
	}
	return fmt.Sprintf("%s.%s += %s(key=%s)", o.path, o.part.list.name, name, key)
}

// lookups returns the two expressions that find a part.
func (p *part) lookups(g *generator, s *scope, owner, key string) []variable {
	return []variable{
		{name: fmt.Sprintf("%s.%s[key=%s]", owner, p.list.name, key), typ: p.entity.name, entity: p.entity},
		{
			name:   fmt.Sprintf("%s[owner=%s, key=%s]", g.name(s.place, p.entity), owner, key),
			typ:    p.entity.name,
			entity: p.entity,
		},
	}
}
