package syntax

// mentions reports whether the expression of a typedef reads the value: a variable named self, or
// like the typedef.
func mentions(e Expr, typedef string) bool {
	for _, name := range variables(e) {
		if name == "self" || name == typedef {
			return true
		}
	}
	return false
}

// constructs reports whether an expression makes an instance. A typedef must not.
func constructs(e Expr) (found bool) {
	Inspect(e, func(x Expr, _ []string) {
		if _, is := x.(*Construct); is {
			found = true
		}
	})
	return found
}

// variables lists the variables that an expression reads.
func variables(e Expr) []string {
	var out []string
	var walk func(e Expr)
	all := func(list []Expr) {
		for _, e := range list {
			walk(e)
		}
	}
	named := func(list []Argument) {
		for _, a := range list {
			walk(a.Value)
		}
	}
	walk = func(e Expr) {
		switch e := e.(type) {
		case *Ref:
			out = append(out, e.Name.Text)
		case *AttrRef:
			walk(e.X)
		case *Regex:
			out = append(out, "self")
		case *Format:
			for _, p := range e.Parts {
				walk(p.Ref)
			}
		case *FString:
			for _, p := range e.Pieces {
				fieldVariables(p, walk)
			}
		case *Call:
			all(e.Args)
			named(e.Named)
			all(spread(e.Splats))
		case *Construct:
			named(e.Named)
			all(spread(e.Splats))
		case *Lookup:
			named(e.Named)
			all(spread(e.Splats))
		case *ShortLookup:
			walk(e.X)
			named(e.Named)
			all(spread(e.Splats))
		case *MapLookup:
			walk(e.X)
			walk(e.Key)
		case *List:
			all(e.Items)
		case *Dict:
			for _, entry := range e.Entries {
				walk(entry.Value)
			}
		case *Comprehension:
			walk(e.Iter)
			for _, name := range variables(e.Value) {
				if name != e.Var.Name {
					out = append(out, name)
				}
			}
		case *Conditional:
			walk(e.Cond)
			walk(e.Then)
			walk(e.Else)
		case *Not:
			walk(e.X)
		case *Binary:
			walk(e.L)
			walk(e.R)
		case *IsDefined:
			if e.X != nil {
				walk(e.X)
			}
		}
	}
	walk(e)
	return out
}

func fieldVariables(p FPiece, walk func(Expr)) {
	if p.Ref != nil {
		walk(p.Ref)
	}
	for _, inner := range p.Spec {
		fieldVariables(inner, walk)
	}
}

// spread returns the expressions d of all `**d`.
func spread(splats []Splat) []Expr {
	out := make([]Expr, len(splats))
	for i, s := range splats {
		out[i] = s.Expr
	}
	return out
}
