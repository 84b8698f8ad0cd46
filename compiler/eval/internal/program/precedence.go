package program

import (
	"slices"

	"ordain.dev/ordain/compiler/types"
)

// PrecedenceRule is a rule of the relation precedence policy of a project: `First
// before Then`, each Type.relation. It has the fields of the rule in package module,
// so that one converts to the other.
type PrecedenceRule struct {
	FirstType, FirstRelation string
	ThenType, ThenRelation   string
}

// applyPrecedence gives the relations of the policy their place in the order of
// freezing: a topological order of the rules, in which what is mentioned first comes
// first.
func (p *Program) applyPrecedence(*definitions) {
	if p.Wrong() {
		return // a rule may name something that could not be defined
	}
	p.report(p.precedence())
}

func (p *Program) precedence() *Error {
	var order []*types.Attribute
	after := map[*types.Attribute][]*types.Attribute{}
	waits := map[*types.Attribute]int{}
	for _, rule := range p.in.Precedence {
		first, err := p.ruled(rule.FirstType, rule.FirstRelation)
		if err != nil {
			return err
		}
		then, err := p.ruled(rule.ThenType, rule.ThenRelation)
		if err != nil {
			return err
		}
		for _, a := range []*types.Attribute{first, then} {
			if !slices.Contains(order, a) {
				order = append(order, a)
			}
		}
		after[first] = append(after[first], then)
		first.End.Leads = true
		waits[then]++
	}
	for rank := 1; len(order) > 0; rank++ {
		i := slices.IndexFunc(order, func(a *types.Attribute) bool { return waits[a] == 0 })
		if i < 0 {
			e := &Error{
				Kind:    "inmanta.execute.scheduler.CycleInRelationPrecedencePolicyError",
				Message: "A cycle exists in the relation precedence policy",
				Bare:    true,
			}
			e.Hint = "mend relation_precedence_policy in project.yml"
			return e
		}
		next := order[i]
		order = slices.Delete(order, i, i+1)
		next.End.Precedence = rank
		for _, a := range after[next] {
			waits[a]--
		}
	}
	return nil
}

func (p *Program) ruled(entity, relation string) (*types.Attribute, *Error) {
	invalid := func(format string, args ...any) *Error {
		e := NewError(
			"inmanta.execute.scheduler.InvalidRelationPrecedenceRuleError",
			"A relation precedence rule was defined for "+format,
			args...)
		e.Bare = true
		e.Hint = "mend relation_precedence_policy in project.yml"
		return e
	}
	info := p.infoNamed(entity)
	if info == nil {
		return nil, invalid("%s, but no such type was defined", entity)
	}
	attr := info.Entity.Attribute(relation)
	switch {
	case attr == nil || attr.Entity != info.Entity:
		return nil, invalid("%s.%s, but entity %s doesn't have an attribute %s.", entity, relation, entity, relation)
	case attr.End == nil:
		return nil, invalid("%s.%s, but attribute %s is not a relationship attribute.", entity, relation, relation)
	}
	return attr, nil
}
