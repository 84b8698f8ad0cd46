package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// arguments evaluates the arguments of the call.
func (u *callUnit) arguments(r *run) ([]types.Value, []given, *Error) {
	n := u.n
	args := make([]types.Value, len(n.Args))
	for i, x := range n.Args {
		v, err := r.eval(x, u.scope, u.frame)
		if err != nil {
			return nil, nil, err
		}
		args[i] = v
	}
	named := make([]given, 0, len(n.Named))
	for _, a := range n.Named {
		v, err := r.eval(a.X.Expr, u.scope, u.frame)
		if err != nil {
			return nil, nil, err
		}
		named = append(named, given{name: a.Name, value: v})
	}
	for _, x := range n.Splats {
		v, err := r.eval(x.X, u.scope, u.frame)
		if err != nil {
			return nil, nil, err
		}
		d, ok := v.(*types.Dict)
		if !ok {
			return nil, nil, notDict(x)
		}
		for _, k := range d.Keys {
			for _, g := range named {
				if g.name == k {
					return nil, nil, program.RuntimeError("Keyword argument %s repeated in function call", k)
				}
			}
			named = append(named, given{name: k, value: d.Values[k]})
		}
	}
	return args, named, nil
}

// bind assigns the arguments to the parameters, with Python's own errors, and checks
// their types. It reports whether the plug-in is to be called: not with an unknown
// argument, unless the plug-in takes those.
func (u *callUnit) bind(args []types.Value, named []given) (bool, *Error) {
	info := u.n.Plugin
	sig := info.Signature
	short := sig.Name
	out := PluginCall{Plugin: sig, Namespace: u.n.Namespace.Name, At: u.n.Span, Direct: u.direct}
	var positional []int
	varargs, varkeywords := -1, -1
	for i, p := range sig.Params {
		switch p.Kind {
		case VarArgs:
			varargs = i
		case VarKeywords:
			varkeywords = i
		case KeywordOnly:
		default:
			positional = append(positional, i)
		}
	}
	set := make([]bool, len(sig.Params))
	if len(args) > len(positional) && varargs < 0 {
		return false, program.RuntimeError("%s() takes %d positional arguments but %d were given", short,
			len(positional), len(args)).Coded(diag.WrongArguments).Hinted(program.SuggestCall(sig, namesOf(named)))
	}
	open := false
	check := func(i int, v types.Value) (types.Value, *Error) {
		if isUnknown(v) {
			open = true
			return v, nil
		}
		if types.BecomesDataclass(info.Params[i]) {
			u.twins = append(u.twins, twin{i, v})
		}
		return types.Shown(info.Params[i], v), u.check(i, v)
	}
	for k := range min(len(args), len(positional)) {
		set[positional[k]] = true
	}
	byName := func(name string) int {
		for k, p := range sig.Params {
			if p.Name == name && p.Kind != VarArgs && p.Kind != VarKeywords {
				return k
			}
		}
		return -1
	}
	covered := append([]bool(nil), set...)
	for _, g := range named {
		if i := byName(g.name); i >= 0 {
			covered[i] = true
		}
	}
	if err := missingArguments(short, sig, covered); err != nil {
		return false, err.Hinted(program.SuggestCall(sig, namesOf(named)))
	}
	for k, v := range args {
		i := varargs
		if k < len(positional) {
			i = positional[k]
		}
		v, err := check(i, v)
		if err != nil {
			return false, err
		}
		out.Args = append(out.Args, v)
	}
	for _, g := range named {
		i := byName(g.name)
		switch {
		case i >= 0 && set[i]:
			return false, program.RuntimeError("%s() got multiple values for argument '%s'", short,
				g.name).Coded(diag.WrongArguments).Hinted(program.SuggestCall(sig, namesOf(named)))
		case i < 0 && varkeywords < 0:
			return false, program.RuntimeError("%s() got an unexpected keyword argument: '%s'", short,
				g.name).Coded(diag.WrongArguments).Hinted(program.SuggestCall(sig, namesOf(named)))
		case i < 0:
			i = varkeywords
		default:
			set[i] = true
		}
		v, err := check(i, g.value)
		if err != nil {
			return false, err
		}
		out.Named = append(out.Named, NamedValue{Name: g.name, Value: v})
	}
	u.bound = out
	return !open || sig.AllowUnknown, nil
}

func namesOf(values []given) []string {
	names := make([]string, len(values))
	for i, g := range values {
		names[i] = g.name
	}
	return names
}

func missingArguments(name string, sig *Signature, set []bool) *Error {
	for _, kind := range []struct {
		is   func(ParamKind) bool
		text string
	}{
		{func(k ParamKind) bool { return k == Positional || k == "" }, "positional"},
		{func(k ParamKind) bool { return k == KeywordOnly }, "keyword-only"},
	} {
		var missing []string
		if sig.ContextKeyword != "" && kind.is(KeywordOnly) {
			missing = append(missing, "'"+sig.ContextKeyword+"'")
		}
		for i, p := range sig.Params {
			if kind.is(p.Kind) && !set[i] && !p.HasDefault {
				missing = append(missing, "'"+p.Name+"'")
			}
		}
		if len(missing) > 0 {
			return program.RuntimeError("%s() missing %d required %s argument%s: %s", name, len(missing), kind.text,
				plural(len(missing)), enumerate(missing)).Coded(diag.WrongArguments)
		}
	}
	return nil
}

func enumerate(words []string) string {
	switch len(words) {
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// check checks an argument against the type of its parameter.
func (u *callUnit) check(param int, v types.Value) *Error {
	info := u.n.Plugin
	if err := types.Strict(info.Params[param], v); err != nil {
		return u.argumentError(info.Signature.Params[param].Name, v, info.Params[param], err)
	}
	return nil
}

func (u *callUnit) argumentError(name string, v types.Value, t types.Type, err error) *Error {
	cause := program.TypeError(err)
	if cause.Builtin { // raised in the condition of a typedef
		return cause
	}
	e := program.NewError("PluginTypeException",
		"Value %s for argument %s of plugin %s has incompatible type. Expected type: %s", types.Repr(v), name,
		u.n.Plugin.Signature.Name, typeName(t))
	_, is := v.(*types.Reference)
	if cause.Kind == "UnexpectedReference" || (is && !types.TakesReferences(t)) {
		verb := "contains"
		if is {
			verb = "is"
		}
		e = program.NewError(
			"PluginTypeException",
			"Value %s for argument %s of plugin %s %s a reference. To allow references, use `| Reference[...]` "+
				"in your type annotation.",
			types.Repr(v),
			name,
			u.n.Plugin.Signature.Name,
			verb,
		)
		e.Hint = "declare the parameter as `T | Reference[T]`"
	}
	e.Causes = []*Error{u.about(cause)}
	return e
}
