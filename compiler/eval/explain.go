package eval

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// freezeForReader freezes a list that a unit waits for, and notes which.
func (r *run) freezeForReader(v *variable) {
	if at := v.firstBlocked(); at != nil {
		v.gathering.reader = at
	}
	v.freeze(r)
}

// firstBlocked returns the place of the first waiter that needs the whole value.
func (v *variable) firstBlocked() *program.Place {
	for _, w := range v.waiters() {
		if c, ok := w.(collector); ok && c.passive() {
			continue
		}
		return w.node().Where()
	}
	return nil
}

// explainFreeze explains why a list was complete although more was to come, and what
// the author can do.
func explainFreeze(v *variable, value types.Value) string {
	name := v.attr.Entity.Name + "." + v.attr.Name
	what := "The list"
	if v.kind == option {
		what = "The optional relation"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s `%s` of %s had to be read before the model could go on", what, v.attr.Name, v.owner.Text())
	if d := v.gathering; d.reader != nil {
		fmt.Fprintf(&b, " (%s)", program.Short(d.reader))
	}
	fmt.Fprintf(&b, ", so it was taken as complete%s; then `%s` came too.\n", v.stateText(), types.Text(value))
	b.WriteString(
		"Nothing can be added to a relation once something was decided from the whole of it. One of these helps:\n",
	)
	b.WriteString(
		"- read it where it does not decide about itself: a `for` loop and a relation take elements as they " +
			"come, `if`, comparison, plug-ins and variables need them all;\n",
	)
	b.WriteString("- when what was added depends on another relation, have that one completed first, in project.yml:\n")
	fmt.Fprintf(&b, "    relation_precedence_policy:\n      - \"<Type>.<relation> before %s\"\n", name)
	b.WriteString("- add to it in one place, from values that are known without it.")
	return b.String()
}

// stateText describes what there was in a list when it was frozen.
func (v *variable) stateText() string {
	if v.kind == option {
		return " without a value"
	}
	switch n := len(v.gathering.list.Items); {
	case n == 0:
		return " and empty"
	case n == 1:
		return " with 1 element"
	default:
		return fmt.Sprintf(" with %d elements", n)
	}
}

// explainCollision explains which indexes disagree about a constructor call.
func explainCollision(first, second *Instance, one, other *types.Index) string {
	key := func(i *Instance, index *types.Index) string {
		var parts []string
		for _, name := range index.Attributes {
			v, _ := i.variable(name).peek()
			text := "?"
			if v != nil {
				text = types.Repr(v)
			}
			parts = append(parts, name+"="+text)
		}
		return fmt.Sprintf("index %s(%s) finds %s by %s", index.Entity.Name, strings.Join(index.Attributes, ", "),
			i.Text(), strings.Join(parts, ", "))
	}
	return key(first, one) + ";\n" + key(second, other) + ".\n" +
		"A constructor call that finds an instance adds to it, so all indexes have to find the same one. " +
		"Give the call a key that belongs to one instance in every index, or a new key in all of them."
}
