package syntax

// Inspect calls visit for an expression and each one in it, outer ones first.
// bound are the variables of the comprehensions around it.
func Inspect(e Expr, visit func(e Expr, bound []string)) {
	inspector{visit}.walk(e, nil)
}

type inspector struct{ visit func(Expr, []string) }

func (i inspector) all(list []Expr, bound []string) {
	for _, e := range list {
		i.walk(e, bound)
	}
}

func (i inspector) named(list []Argument, bound []string) {
	for _, a := range list {
		i.walk(a.Value, bound)
	}
}

func (i inspector) walk(e Expr, bound []string) {
	if e == nil {
		return
	}
	i.visit(e, bound)
	switch e := e.(type) {
	case *AttrRef:
		i.walk(e.X, bound)
	case *Call:
		i.all(e.Args, bound)
		i.named(e.Named, bound)
		i.all(spread(e.Splats), bound)
	case *Construct:
		i.named(e.Named, bound)
		i.all(spread(e.Splats), bound)
	case *Lookup:
		i.named(e.Named, bound)
		i.all(spread(e.Splats), bound)
	case *ShortLookup:
		i.walk(e.X, bound)
		i.named(e.Named, bound)
		i.all(spread(e.Splats), bound)
	case *MapLookup:
		i.walk(e.X, bound)
		i.walk(e.Key, bound)
	case *List:
		i.all(e.Items, bound)
	case *Dict:
		for _, entry := range e.Entries {
			i.walk(entry.Value, bound)
		}
	case *Comprehension:
		i.walk(e.Iter, bound)
		inner := append(append([]string(nil), bound...), e.Var.Name)
		i.walk(e.Value, inner)
		i.walk(e.Guard, inner)
	case *Conditional:
		i.walk(e.Cond, bound)
		i.walk(e.Then, bound)
		i.walk(e.Else, bound)
	case *Not:
		i.walk(e.X, bound)
	case *Binary:
		i.walk(e.L, bound)
		i.walk(e.R, bound)
	case *IsDefined:
		i.walk(e.X, bound)
	}
}
