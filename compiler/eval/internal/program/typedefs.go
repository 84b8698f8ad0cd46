package program

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// AsksPlugin reports whether a plug-in decides which values a type has.
func AsksPlugin(t types.Type) bool {
	switch t := t.(type) {
	case *types.Typedef:
		return t.Asks
	case types.ListOf:
		return AsksPlugin(t.Of)
	case types.Optional:
		return AsksPlugin(t.Of)
	}
	return false
}

type TypedefInfo struct {
	Type *types.Typedef
	ast  *syntax.Typedef
	ns   *Namespace
	// resolve resolves the names in the condition, once. It is nil when the
	// condition has none.
	resolve func() []*Error
}

func (p *Program) defineTypedefs(d *definitions) {
	for _, info := range d.typedefs {
		base, err := p.typeNamed(info.ns, info.ast.Base, info.ast)
		if err == nil {
			info.Type.Base = base
			err = p.condition(info)
		}
		if err != nil {
			p.report(err)
			info.Type.Base, info.Type.Holds = types.Any, func(types.Value) (bool, error) { return true, nil }
		}
	}
	for _, info := range d.typedefs {
		p.ownBase(info)
	}
}

// ownBase handles typedefs that are their own base, directly or through others. As
// in the reference, they are an error only once a value is checked against them.
func (p *Program) ownBase(info *TypedefInfo) {
	walked := []*types.Typedef{info.Type}
	for base, is := info.Type.Base.(*types.Typedef); is && !base.Sound; base, is = base.Base.(*types.Typedef) {
		if at := slices.Index(walked, base); at >= 0 {
			var chain []string
			for _, t := range walked[at:] {
				chain = append(chain, t.Name)
			}
			endless := func(types.Value) (bool, error) {
				e := &Error{Kind: "RecursionError", Message: "maximum recursion depth exceeded", Builtin: true}
				return false, e.Hinted(
					"a type cannot be its own base: " + strings.Join(append(chain, chain[0]), ", which is "),
				)
			}
			for _, t := range walked[at:] {
				t.Base, t.Holds = types.Any, endless
			}
			break
		}
		walked = append(walked, base)
	}
	for _, t := range walked {
		t.Sound = true
	}
}

// resolveTypedefs resolves the names in the conditions of typedefs.
func (p *Program) resolveTypedefs(d *definitions) {
	for _, info := range d.typedefs {
		if info.resolve != nil {
			p.report(info.resolve()...)
		}
	}
}

// condition prepares the condition of a typedef.
func (p *Program) condition(info *TypedefInfo) *Error {
	t := info.Type
	t.Asks = AsksPlugin(t.Base) || callsPlugin(info.ast.Match)
	p.AsksPlugins = p.AsksPlugins || t.Asks
	if regex, is := info.ast.Match.(*syntax.Regex); is {
		t.Condition = "/" + regex.Pattern + "/"
		compiled, err := types.NewRegex(regex.Pattern)
		if err != nil {
			e := RuntimeError("%s", err)
			e.Stmt, e.Place = syntax.Render(info.ast), &info.ast.Name.At
			return e
		}
		t.Holds = func(v types.Value) (bool, error) {
			s, ok := types.Plain(v).(types.Str)
			if !ok {
				e := &Error{Kind: "AssertionError", Builtin: true}
				e.Hint = fmt.Sprintf(
					"%s is restricted by a regular expression, which %s is no text for",
					t.Name, types.Text(v),
				)
				return false, e.Located(nil, &info.ast.Name.At)
			}
			matches, err := compiled.Match(string(s))
			if err != nil {
				e := RuntimeError("the regular expression of %s takes too long: %s", t.Name, err)
				e.Hint = SlowRegex
				return false, e.Located(nil, &info.ast.Name.At).Focused(&regex.At)
			}
			return matches, nil
		}
		return nil
	}
	t.Condition = syntax.RenderSource(info.ast.Match)
	if err := makesInstances(info.ast.Match); err != nil {
		return err
	}
	var condition *Root
	info.resolve = func() []*Error {
		if condition != nil {
			return nil
		}
		b := &builder{p: p, ns: info.ns, stmt: info.ast, top: newNaming(nil), direct: true}
		b.top.declare("self", info.ast.Name.At)
		condition = new(b.root(info.ast.Match))
		p.Warnings = append(p.Warnings, b.warnings...)
		return b.errs
	}
	t.Holds = func(v types.Value) (bool, error) {
		if errs := info.resolve(); len(errs) > 0 {
			return false, errs[0]
		}
		return p.holds(p, *condition, v)
	}
	return nil
}

// callsPlugin reports whether the condition of a typedef calls a plug-in.
func callsPlugin(condition syntax.Expr) (found bool) {
	syntax.Inspect(condition, func(x syntax.Expr, _ []string) {
		if call, is := x.(*syntax.Call); is {
			_, cast := types.LookupPrimitive(call.Func.Text)
			found = found || !cast
		}
	})
	return found
}

// makesInstances returns an error when the condition of a typedef makes instances,
// which ends the compile where the typedef is defined.
func makesInstances(condition syntax.Expr) (found *Error) {
	syntax.Inspect(condition, func(x syntax.Expr, _ []string) {
		if _, is := x.(*syntax.Construct); is && found == nil {
			n := standing(x)
			found = &Error{
				Kind: "AttributeError", Message: "'Constructor' object has no attribute 'get_default_values'",
				Builtin: true, Hint: "the condition of a typedef can not make instances",
			}
			found.In(&n)
		}
	})
	return found
}

// unusable returns the error for an expression that has no value in the condition of
// a typedef, which knows only self; nil for other expressions. The error is reported
// when a value is checked against the typedef, and only where the check gets that
// far.
func (b *builder) unusable(x syntax.Expr) *Error {
	n := new(standing(x))
	unresolved := func(name string) *Error {
		return NotFound("Unable to resolve `%s`: a type constraint can not reference variables.", name).In(n)
	}
	switch x := x.(type) {
	case *syntax.Ref:
		if name := x.Name.Text; !b.top.holds(name) {
			return unresolved(name)
		}
	case *syntax.AttrRef:
		return unresolved(syntax.Render(x))
	case *syntax.Format, *syntax.FString, *syntax.MapLookup, *syntax.Lookup, *syntax.ShortLookup, *syntax.IsDefined:
		return NewError("DirectExecuteException", "The statement %s can not be executed in this context", n).In(n)
	}
	return nil
}

// SlowRegex is the hint for a regular expression that takes too long.
const SlowRegex = "repetitions inside of repetitions, such as (a+)+, try very many ways: write each part so that " +
	"it can match in one way only"
