package eval

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// pluginInfo is a plug-in with its annotations resolved.
type pluginInfo struct {
	sig    *Signature
	params []types.Type // nil: anything goes
	result types.Type   // nil: anything goes
	ahead  bool         // may run before its turn: see ahead.go
}

// code is the Python side of the modules, with the namespaces of the files.
func (in *Input) code() []ModuleCode {
	below := map[string][]string{}
	for _, f := range in.Files {
		top, _, _ := strings.Cut(f.Namespace, "::")
		for name, qualified := f.Namespace, f.Namespace != top; qualified && name != top; name, _, _ = cutLast(name) {
			below[top] = append(below[top], name)
		}
	}
	code := slices.Clone(in.Modules)
	for i := range code {
		names := below[code[i].Name]
		slices.Sort(names)
		code[i].Namespaces = slices.Compact(names)
	}
	return code
}

// addPlugins registers the plug-ins as names of their namespaces. One in a
// namespace that is not loaded does not exist.
func (p *program) addPlugins(plugins []*Signature) {
	for _, sig := range plugins {
		prefix, last, _ := cutLast(sig.Name)
		ns := p.spaces[prefix]
		if ns == nil {
			continue
		}
		info := &pluginInfo{sig: sig}
		switch have := ns.things[last].(type) {
		case nil:
			ns.things[last] = info
		case *pluginInfo: // the first one stays
		default:
			e := fail("DuplicateException", "Type %s is already defined", sig.Name)
			e.File, e.Line = sig.File, sig.Line+1 // the line of `def`, after the decorator
			e.Hint = fmt.Sprintf("plug-in and type need different names; the type is at %s", placeOf(have))
			e.bare = true
			p.report(e)
			continue
		}
		p.plugins = append(p.plugins, info)
	}
}

// resolvePlugins resolves the annotations once all types are known.
func (p *program) resolvePlugins(*definitions) {
	for _, info := range p.plugins {
		prefix, _, _ := cutLast(info.sig.Name)
		said := len(p.warnings)
		for _, param := range info.sig.Params {
			t, err := p.annotation(p.spaces[prefix], param.Type)
			if err != nil {
				p.report(err.inPlugin(info.sig))
			}
			info.params = append(info.params, t)
		}
		t, err := p.annotation(p.spaces[prefix], info.sig.Return)
		if err != nil {
			p.report(err.inPlugin(info.sig))
		}
		info.result = t
		info.ahead = runsAhead(info)
		for i := range p.warnings[said:] {
			p.warnings[said+i].At = info.sig.span()
		}
	}
}

// span is the line of `def`, after the decorator.
func (s *Signature) span() syntax.Span {
	line := syntax.Pos{Line: int32(s.Line) + 1, Col: 1}
	return syntax.Span{File: &syntax.File{Path: s.File}, Start: line, End: line, Coarse: true}
}

// inPlugin says which plug-in has the annotation.
func (e *Error) inPlugin(sig *Signature) *Error {
	if !e.nowhere {
		e.File, e.Line, e.Column = sig.File, sig.Line+1, 1 // the line of `def`, after the decorator
	}
	if e.Hint == "" {
		e.Hint = "it is named in an annotation of plug-in " + sig.Name
	}
	return e
}

// annotation turns the annotation of a plug-in into a type; nil stands for any.
func (p *program) annotation(ns *namespace, a *Annotation) (types.Type, *Error) {
	if a == nil {
		return nil, nil
	}
	of := func() (types.Type, *Error) {
		if len(a.Of) == 0 {
			return types.Any, nil
		}
		t, err := p.annotation(ns, a.Of[0])
		if t == nil {
			t = types.Any
		}
		return t, err
	}
	switch a.Kind {
	case "any":
		return nil, nil
	case "null":
		return types.NullT, nil
	case "prim":
		if prim, ok := types.LookupPrimitive(a.Name); ok {
			return prim, nil
		}
		return p.dsl(ns, a.Name)
	case "dataclass":
		for _, class := range append([]*Annotation{a}, a.Of...) {
			if info := p.twinOf(class.Name); info != nil {
				return info.entity, nil
			}
		}
		e := fail(
			"TypingException",
			"invalid type <class '%s'>, this dataclass has no associated inmanta entity",
			a.Text,
		)
		e.Hint = "declare an entity of the same name that extends std::Dataclass, in the module that has the class"
		e.nowhere = true
		return nil, e
	case "dsl":
		t, err := p.dsl(ns, a.Name)
		if e, is := t.(*types.Entity); is && a.View {
			return types.View{Entity: e}, err
		}
		return t, err
	case "list":
		t, err := of()
		return types.ListOf{Of: t}, err
	case "dict":
		t, err := of()
		return types.DictOf{Of: t}, err
	case "nullable":
		t, err := of()
		return types.Optional{Of: t}, err
	case "reference":
		if len(a.Of) == 0 {
			return types.ReferenceTo{}, nil
		}
		t, err := of()
		if err == nil {
			err = p.referable(t, a)
		}
		return types.ReferenceTo{Of: t}, err
	case "union":
		alternatives := make([]types.Type, len(a.Of))
		for i, one := range a.Of {
			t, err := p.annotation(ns, one)
			if err != nil {
				return nil, err
			}
			if t == nil {
				t = types.Any
			}
			alternatives[i] = t
		}
		return types.MakeUnion(alternatives), nil
	}
	return nil, nil
}

// referable tells why there can be no reference to a value of a type: one to
// something that may be a reference itself, or to an instance that is no
// dataclass. Like the reference, it names no place.
func (p *program) referable(t types.Type, a *Annotation) *Error {
	if mayBeReference(t) {
		return &Error{
			Kind:    "AssertionError",
			foreign: true,
			nowhere: true,
			Hint:    a.Text + " is a reference to what may be a reference itself",
		}
	}
	entity, is := t.(*types.Entity)
	if !is ||
		slices.ContainsFunc(
			p.dataclasses,
			func(d Dataclass) bool { return d.Class != "" && d.Name == entity.Name && p.twinOf(d.Class) != nil },
		) {
		return nil
	}
	e := typingError(
		"References to entities must always be references to dataclasses. Got %s, which is not a dataclass",
		entity.Name,
	)
	e.nowhere = true
	return e
}

func mayBeReference(t types.Type) bool {
	switch t := t.(type) {
	case types.ReferenceTo, types.OrReference:
		return true
	case types.Optional:
		return mayBeReference(t.Of)
	case types.Union:
		return slices.ContainsFunc(t.Of, mayBeReference)
	}
	return false
}

// dsl resolves a type as the language writes it.
func (p *program) dsl(ns *namespace, text string) (types.Type, *Error) {
	switch text {
	case "any", "expression":
		return nil, nil
	case "null":
		return types.NullT, nil
	case "list":
		return types.AnyList{}, nil
	case "dict":
		return types.DictOf{Of: types.Any}, nil
	}
	base, optional := strings.CutSuffix(text, "?")
	base, list := strings.CutSuffix(base, "[]")
	t, err := p.named(ns, base)
	if err != nil {
		return nil, err
	}
	if list {
		t = types.ListOf{Of: t}
	}
	if optional {
		t = types.Optional{Of: t}
	}
	return t, nil
}

// named finds a type of the model by its name.
func (p *program) named(ns *namespace, text string) (types.Type, *Error) {
	if prim, ok := types.LookupPrimitive(text); ok {
		if prim == types.Number {
			p.warn("TypeDeprecationWarning", syntax.Span{}, "Type 'number' is deprecated, use 'float' or 'int' instead")
		}
		return prim, nil
	}
	thing, err := ns.find(syntax.Name{Text: text})
	if err != nil {
		err.at = nil
		err.bare = true
		return nil, err
	}
	switch thing := thing.(type) {
	case *entityInfo:
		return thing.entity, nil
	case *typedefInfo:
		return thing.t, nil
	}
	if t := nominal(thing); t != nil {
		return t, nil
	}
	return nil, typingError("%s is not a type", text)
}

// bind gives the arguments to the parameters, with Python's own errors, and
// checks their types. It reports whether the plug-in is called: not with an
// argument that is unknown, unless it takes those.
func (u *callUnit) bind(args []types.Value, named []given) (bool, *Error) {
	info := u.n.plugin
	sig := info.sig
	short := sig.Name
	out := PluginCall{Plugin: sig, Namespace: u.n.ns.name, At: u.n.span, Direct: u.direct}
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
		return false, runtimeError(
			"%s() takes %d positional arguments but %d were given",
			short,
			len(positional),
			len(args),
		).coded(diag.WrongArguments).
			hinted(suggestCall(sig, namesOf(named)))
	}
	open := false
	check := func(i int, v types.Value) (types.Value, *Error) {
		if isUnknown(v) {
			open = true
			return v, nil
		}
		if types.BecomesDataclass(info.params[i]) {
			u.twins = append(u.twins, twin{i, v})
		}
		return types.Shown(info.params[i], v), u.check(i, v)
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
		return false, err.hinted(suggestCall(sig, namesOf(named)))
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
			return false, runtimeError(
				"%s() got multiple values for argument '%s'",
				short,
				g.name,
			).coded(diag.WrongArguments).
				hinted(suggestCall(sig, namesOf(named)))
		case i < 0 && varkeywords < 0:
			return false, runtimeError(
				"%s() got an unexpected keyword argument: '%s'",
				short,
				g.name,
			).coded(diag.WrongArguments).
				hinted(suggestCall(sig, namesOf(named)))
		case i < 0:
			i = varkeywords
		default:
			set[i] = true
		}
		v, err := check(i, g.value)
		if err != nil {
			return false, err
		}
		out.Named = append(out.Named, NamedValue{g.name, v})
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
			return runtimeError(
				"%s() missing %d required %s argument%s: %s",
				name,
				len(missing),
				kind.text,
				plural(len(missing)),
				enumerate(missing),
			).coded(diag.WrongArguments)
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

// check holds an argument against the type of its parameter.
func (u *callUnit) check(param int, v types.Value) *Error {
	info := u.n.plugin
	if err := types.Strict(info.params[param], v); err != nil {
		return u.argumentError(info.sig.Params[param].Name, v, info.params[param], err)
	}
	return nil
}

func (u *callUnit) argumentError(name string, v types.Value, t types.Type, err error) *Error {
	cause := typeError(err)
	if cause.foreign { // the condition of a typedef failed
		return cause
	}
	e := fail(
		"PluginTypeException",
		"Value %s for argument %s of plugin %s has incompatible type. Expected type: %s",
		types.Repr(v),
		name,
		u.n.plugin.sig.Name,
		typeName(t),
	)
	_, is := v.(*types.Reference)
	if cause.Kind == "UnexpectedReference" || (is && !types.TakesReferences(t)) {
		verb := "contains"
		if is {
			verb = "is"
		}
		e = fail(
			"PluginTypeException",
			"Value %s for argument %s of plugin %s %s a reference. To allow references, use `| Reference[...]` in your type annotation.",
			types.Repr(v),
			name,
			u.n.plugin.sig.Name,
			verb,
		)
		e.Hint = "declare the parameter as `T | Reference[T]`"
	}
	e.Causes = []*Error{u.about(cause)}
	return e
}

func loadErrors(err error) (first *Error, further []*Error) {
	var several interface{ Further() []error }
	if errors.As(err, &several) {
		for _, other := range several.Further() {
			further = append(further, loadError(other))
		}
	}
	return loadError(err), further
}

// noInterpreter reports whether Python could not even be started.
func noInterpreter(err error) bool {
	var path *fs.PathError
	var name *exec.Error
	return errors.As(err, &path) || errors.As(err, &name)
}

func loadError(err error) *Error {
	if e, ok := err.(*Error); ok {
		return e
	}
	e := &Error{Kind: "CompilerException", Message: fmt.Sprintf("Unable to load the plug-ins: %s", err), bare: true}
	var raised loadFailure
	if !errors.As(err, &raised) {
		if e.code = diag.Code("PluginModuleLoadException"); noInterpreter(err) {
			e.code = diag.Code("Error")
		}
		return e
	}
	cause := raised.Raised()
	e.Message, e.code = raised.Error(), diag.Code("PluginModuleLoadException")
	e.File, e.Line, e.PythonTrace, e.Hint = cause.File, cause.Line, cause.Trace, cmp.Or(raised.Hint(), cause.Notes)
	switch {
	case cause.Kind == "exit": // it passes everything by, as upstream
		e.Kind, e.Message, e.foreign = strings.TrimPrefix(cause.Class, "builtins."), cause.Message, true
		e.File, e.Line, e.about = "", 0, outside(cause.File, cause.Line, 1) // upstream names no place
	case cause.Unread != nil: // upstream has the line that imports it; none where it is the file itself
		e.focus = cause.Unread
		if cause.Line == 0 {
			e.File = ""
			if e.focus.Start.Line > 0 {
				e.about, e.PythonTrace = e.focus, ""
			}
		}
	case cause.Kind == "annotation":
		e.Kind, e.Message, e.code = cause.Class, cause.Message, diag.Code("InvalidTypeAnnotation")
		e.foreign = cause.Class == "TypeError"                              // upstream that is what Python makes of it
		e.File, e.Line, e.about = "", 0, outside(cause.File, cause.Line, 1) // upstream names no place
	}
	return e
}

// exited is the error for Python code that asks the process to end.
func exited(err PluginError) *Error {
	return &Error{
		Kind:        strings.TrimPrefix(err.Class, "builtins."),
		Message:     err.Message,
		foreign:     true,
		bare:        true,
		PythonTrace: err.Trace,
		about:       outside(err.File, err.Line, 1),
		code:        diag.Code("ExternalException"),
	}
}

// outside is a place in a file that is no model file.
func outside(path string, line, col int) *place {
	if path == "" || line == 0 {
		return nil
	}
	at := syntax.Pos{Line: int32(line), Col: int32(col)}
	return &place{File: &syntax.File{Path: path}, Start: at, End: at}
}

// loadFailure is an exception of Python code that is imported.
type loadFailure interface {
	error
	Raised() *PluginError
	Hint() string
}

// printer is a host that keeps what is printed outside of calls.
type printer interface{ TakeOutput() []string }

func taken(h Host) []string {
	if p, ok := h.(printer); ok {
		return p.TakeOutput()
	}
	return nil
}

// warner is a Host that keeps what it was told of deprecated plug-ins outside
// of calls.
type warner interface{ TakeWarnings() []string }

// checkedBy checks the results of plug-ins without the rest of the program.
func checkedBy(plugins []*pluginInfo) func(string, types.Value) (string, *Error) {
	return func(plugin string, v types.Value) (string, *Error) {
		for _, info := range plugins { // the first of a name is what it means
			if info.sig.Name == plugin {
				return checkResult(info, v)
			}
		}
		return "", nil
	}
}

func finalize(h Host, after Heap, result *Result) {
	err := h.Finalize(after)
	result.Output = append(result.Output, taken(h)...)
	if w, is := h.(warner); is {
		for _, message := range w.TakeWarnings() {
			if !slices.ContainsFunc(result.Warnings, func(w Warning) bool { return w.Message == message }) {
				result.Warnings = append(result.Warnings, Warning{Kind: "PluginDeprecationWarning", Message: message})
			}
		}
	}
	var raised interface{ Raised() *PluginError }
	if errors.As(err, &raised) && raised.Raised().Kind == "exit" { // whatever came of the compile
		result.Err = exited(*raised.Raised())
		return
	}
	if err == nil || result.Err != nil {
		return
	}
	all := []error{err}
	if several, is := err.(interface{ Unwrap() []error }); is {
		all = several.Unwrap()
	}
	var failed []*Error
	for _, one := range all {
		failed = append(failed, finalizerError(one))
	}
	result.Err = together(failed)
}

// finalizerError is about one finalizer. Upstream it has no place.
func finalizerError(err error) *Error {
	e := &Error{Kind: "CompilerException", Message: err.Error(), bare: true}
	var raised interface{ Raised() *PluginError }
	if errors.As(err, &raised) {
		cause := raised.Raised()
		e.PythonTrace, e.about, e.Hint = cause.Trace, outside(cause.File, cause.Line, 1), cause.Notes
	}
	return e
}
