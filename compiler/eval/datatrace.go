package eval

import (
	"fmt"
	"regexp"
	"strings"

	"sync"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// maxFlow is how many variables a value is followed through at most.
const maxFlow = 12

// assignment is what an error of assigning is about.
type assignment struct {
	slot    *variable
	refused *source // the source of a value that was rejected; nil when none was set
}

// traceData extends errors of assigning by where the values came from:
//
//	a.x: 1, written at main.cf:9   a.x = y
//	  y: 1, written at main.cf:7   y = z + 1
//	  in implementation i of a (main.cf:3), chosen at main.cf:5
func (r *run) traceData(e *Error) {
	if e == nil {
		return
	}
	for _, cause := range e.Causes {
		r.traceData(cause)
	}
	about, is := e.Subject.(assignment)
	if !is {
		return
	}
	var b strings.Builder
	b.WriteString("data trace:")
	if v := about.slot.target(); v.has {
		r.flow(&b, r.label(v), v.value, v.source(), 1)
	}
	if about.refused != nil {
		r.flow(&b, r.label(about.slot), nil, *about.refused, 1)
	} else if i := about.slot.owner; i != nil {
		fmt.Fprintf(&b, "\n  %s: nothing was assigned", r.label(about.slot))
		if d := about.slot.gathering; d != nil {
			for n, item := range d.list.Items {
				r.flow(&b, "element", item, d.sources[n], 2)
			}
		}
		for _, at := range i.Made() {
			fmt.Fprintf(&b, "\n  %s made at %s%s", i.entity.Short(), program.Short(at), lineOf(at))
		}
		r.origins(&b, i.made, "    ")
	}
	if e.Hint != "" {
		b.WriteString("\n" + e.Hint)
	}
	e.Hint = b.String()
}

// label names a slot or variable.
func (r *run) label(v *variable) string {
	if v.attr != nil {
		return v.owner.Text() + "." + v.attr.Name
	}
	return "variable"
}

// flow writes where a value came from, and where that came from.
func (r *run) flow(b *strings.Builder, name string, value types.Value, from source, depth int) {
	if from.at == nil || depth > maxFlow {
		return
	}
	indent := strings.Repeat("  ", depth)
	fmt.Fprintf(b, "\n%s%s", indent, name)
	if value != nil {
		b.WriteString(" = " + types.Text(value))
	}
	at := from.at
	if from.expr != nil {
		at = from.expr
	}
	how := "written at"
	if from.implied {
		how = "from the other side of the relation, written at"
	}
	fmt.Fprintf(b, ", %s %s%s", how, program.Short(at), lineOf(at))
	r.origins(b, from.by, indent+"  ")
	if v, mention := r.mentioned(from.at, from.by); v != nil && v.target().has {
		v = v.target()
		r.flow(b, mention, v.value, v.source(), depth+1)
	}
}

// origins writes which implementations were running, the innermost first.
func (r *run) origins(b *strings.Builder, by *origin, indent string) {
	for n := 0; by != nil && n < maxFlow; n++ {
		fmt.Fprintf(b, "\n%sin implementation %s of %s, chosen at %s", indent, by.impl.Name, by.instance.Text(),
			program.Short(by.selected.Where()))
		by = by.instance.made
	}
}

// lineOf returns the source line of a place, with space before it.
func lineOf(at *program.Place) string {
	if at == nil || at.File == nil || at.Start.Line < 1 || int(at.Start.Line) > len(at.File.Lines) {
		return ""
	}
	return "   " + strings.TrimSpace(at.File.Lines[at.Start.Line-1])
}

// mention matches an expression that is only a name: a, a::b, a.b.c.
var mention = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z_][A-Za-z0-9_]*(::[a-z_][A-Za-z0-9_]*)*(\.[a-z_][A-Za-z0-9_]*)*$`)
})

// mentioned finds the variable that the expression at a place names.
func (r *run) mentioned(at *program.Place, by *origin) (*variable, string) {
	if at.File == nil || at.Start.Line != at.End.Line || int(at.Start.Line) > len(at.File.Lines) || at.Start.Line < 1 {
		return nil, ""
	}
	line := []rune(at.File.Lines[at.Start.Line-1])
	from, to := int(at.Start.Col)-1, int(at.End.Col)-1
	if from < 0 || to > len(line) || from >= to {
		return nil, ""
	}
	text := string(line[from:to])
	if !mention().MatchString(text) {
		return nil, ""
	}
	parts := strings.Split(text, ".")
	v := r.named(parts[0], at.File.Namespace, by)
	for _, name := range parts[1:] {
		if v == nil {
			return nil, ""
		}
		value, _ := v.peek()
		i, ok := value.(*Instance)
		if !ok {
			return nil, ""
		}
		v = i.variable(name)
	}
	if v != nil && v.target().at == at {
		return nil, "" // the place of the variable itself
	}
	return v, text
}

// named finds an attribute of the instance that an implementation runs for, or a
// variable at module level. Variables of blocks no longer exist.
func (r *run) named(name, namespace string, by *origin) *variable {
	space := r.prog.Namespaces[namespace]
	if ns, last, qualified := program.CutName(name); qualified {
		if space == nil {
			return nil
		}
		name, by, space = last, nil, space.Visible(ns)
	}
	if by != nil {
		if name == "self" {
			return &by.instance.self
		}
		if v := by.instance.variable(name); v != nil {
			return v
		}
	}
	if space == nil {
		return nil
	}
	if i, ok := space.Vars[name]; ok {
		return &r.scopeOf(space).vars[i]
	}
	return nil
}
