package eval

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

func (r *run) needCall(n *program.Call, s *scope, f frame) *Error {
	target := &variable{}
	f[n.Slot] = target
	frame, err := r.prepare(n.Parts, s)
	if err != nil {
		return err.In(n)
	}
	r.start(&callUnit{unit: unit{scope: s}, n: n, target: target}, frame)
	return nil
}

// callUnit waits for the arguments of a call, and then for values that the plug-in
// misses.
type callUnit struct {
	unit
	n        *program.Call
	target   *variable
	repeated bool // a repeated call: the arguments are bound already
	posted   bool // the arguments are bound, and the host runs the call
	// calling is set when the arguments are evaluated. Errors are those of the call
	// from then on.
	calling bool
	// direct is set in the condition of a typedef. Errors about types get the place
	// where the value is set.
	direct bool
	bound  PluginCall
	// twins are the arguments that become Python dataclasses. Their fields are
	// checked once they are set.
	twins []twin
}

type twin struct {
	param int
	value types.Value
}

func (u *callUnit) node() program.Node { return u.n }
func (u *callUnit) blame(err *Error) *Error {
	if u.calling {
		return err.Claimed(u.n, u.n.Where())
	}
	// For an argument the reference names no place: it reads all of them before it
	// evaluates any.
	if err.Kind == "OptionalValueException" {
		return err.Near(u.n)
	}
	return err.In(u.n)
}

func (u *callUnit) run(r *run) *Error {
	u.calling, u.direct = u.repeated || u.posted, r.direct
	if u.repeated {
		for _, t := range u.twins {
			if err := u.check(t.param, t.value); err != nil {
				return err
			}
		}
	}
	if u.calling {
		return u.call(r)
	}
	args, named, err := u.arguments(r)
	if err != nil {
		return err
	}
	u.calling = true
	if u.n.Plugin == nil {
		return u.cast(r, args, named)
	}
	call, err := u.bind(args, named)
	if err != nil {
		return err
	}
	if !call && u.direct {
		return program.RuntimeError("Received unknown value during direct execution").In(u.n)
	}
	if !call {
		u.target.put(r, r.unknown(), &u.n.Span)
		return nil
	}
	if sig := u.n.Plugin.Signature; u.direct && sig.Context {
		return program.RuntimeError("Context Aware functions are not allowed in direct execution").In(u.n)
	}
	if u.direct && u.n.Plugin.Signature.Emits {
		return program.RuntimeError("emits_statements functions are not allowed in direct execution").In(u.n)
	}
	return u.call(r)
}

func (u *callUnit) cast(r *run, args []types.Value, named []given) *Error {
	if len(named) > 0 {
		return program.RuntimeError("Only positional arguments allowed in type cast")
	}
	if len(args) != 1 {
		texts := make([]string, len(u.n.Args))
		for i, x := range u.n.Args {
			texts[i] = x.String()
		}
		return program.RuntimeError("Illegal arguments %s: type cast expects exactly 1 argument",
			strings.Join(texts, ","))
	}
	if _, is := args[0].(*types.Reference); is && u.n.Cast == types.BoolT {
		e := &Error{
			Kind:    "NotImplementedError",
			Message: types.Text(args[0]) + " is an inmanta reference, not a boolean.",
			Builtin: true,
		}
		e.Hint = "the value is known when it is deployed: what depends on it belongs into a handler"
		return e
	}
	v, err := u.n.Cast.Cast(args[0])
	if python, is := err.(types.PythonError); is {
		return &Error{Kind: python.Class, Message: python.Text, Builtin: true}
	}
	if err != nil {
		return program.RuntimeError("%s", err).Coded(diag.NoCast)
	}
	u.target.put(r, v, &u.n.Span)
	return nil
}

// typeName is the text of a plug-in's type; nil stands for any.
func typeName(t types.Type) string {
	if t == nil {
		return "any"
	}
	return t.String()
}

// retry calls the plug-in again once the values that it missed are there.
func (u *callUnit) retry(r *run, slots []Slot) {
	next := &callUnit{
		unit:     unit{scope: u.scope},
		n:        u.n,
		target:   u.target,
		repeated: true,
		bound:    u.bound,
		twins:    u.twins,
	}
	f := make(frame, 0, len(slots))
	for _, s := range slots {
		if v, ok := s.(*variable); ok {
			f = append(f, v)
		}
	}
	r.waiting.replace(u, next)
	r.start(next, f)
}

// mayRepeat reports whether a unit may find out only while it runs that it has to
// wait. Such a unit keeps its place in the waiting list.
func mayRepeat(w waiter) bool {
	u, is := w.(*callUnit)
	return is && u.n.Plugin != nil
}

func (u *callUnit) call(r *run) *Error {
	if r.failed {
		return nil // no effects after an error; the units that wait for the result wait on
	}
	if sig := u.n.Plugin.Signature; sig.Deprecated {
		message := fmt.Sprintf("Plugin '%s' is deprecated.", sig.Name)
		if sig.ReplacedBy != "" {
			message += fmt.Sprintf(" It should be replaced by '%s'.", sig.ReplacedBy)
		}
		u.deprecated(r, message)
	}
	out := r.outcome(u)
	r.output = append(r.output, out.Output...)
	for _, message := range out.Deprecated {
		u.deprecated(r, message)
	}
	switch {
	case out.Err != nil:
		return u.failed(out.Err, r.direct).Hinted(out.Err.Hint((&heap{r: r}).Type))
	case len(out.Unset) > 0:
		u.retry(r, out.Unset)
		return nil
	}
	v, err := u.result(r, out.Value, out.Checked)
	if err != nil {
		return err
	}
	if u.n.Plugin.Signature.Emits {
		r.emitter = u.n.Plugin.Signature.Name
		return nil
	}
	u.target.put(r, v, &u.n.Span)
	return nil
}

// deprecated adds a warning about a deprecated plug-in, once.
func (u *callUnit) deprecated(r *run, message string) {
	for _, w := range slices.Concat(r.prog.Warnings, r.warnings) {
		if w.Message == message {
			return
		}
	}
	if u.direct {
		r.prog.Warn("PluginDeprecationWarning", u.n.Span, "%s", message)
	}
	r.warnings = append(r.warnings, Warning{Kind: "PluginDeprecationWarning", Message: message, At: u.n.Span})
}

func (u *callUnit) failed(err *PluginError, direct bool) *Error {
	name := "plugin " + u.n.Plugin.Signature.Name
	if direct {
		name = "direct execution for plugin " + u.n.Name
	}
	cause := &Error{
		Kind:        err.Class,
		Message:     err.Last() + "\n",
		Builtin:     true,
		Bare:        true,
		File:        err.File,
		Line:        err.Line,
		PythonTrace: err.Trace,
	}
	var e *Error
	switch {
	case err.Kind == "exit": // nothing wraps it, as in the reference
		return program.Exited(*err)
	case u.n.Plugin.Signature.Emits && err.Kind == "compiler": // nor any of these, as in the reference
		return u.raised(err).In(u.n)
	case u.n.Plugin.Signature.Emits:
		return program.Exited(*err)
	case err.Class == "inmanta.ast.PluginTypeException": // its message is complete
		e = u.raised(err)
		e.Kind, e.File = "PluginTypeException", err.File
		return e
	case err.Kind == "plugin":
		e = program.NewError("ExplicitPluginException", "PluginException in %s\n%s", name, err.Message)
		e.Causes, e.Raised = []*Error{cause}, err.Raised()
	case err.Kind == "compiler" && direct: // the cause is reported where the value is set
		e = program.NewError("WrappingRuntimeException", "Exception in %s", name).In(u.n)
		e.Causes, e.File, e.Line, e.PythonTrace = []*Error{u.raised(err)}, err.File, err.Line, err.Trace
		return e
	case err.Kind == "compiler":
		e = program.NewError("WrappingRuntimeException", "Exception in %s", name)
		e.Causes = []*Error{u.raised(err).In(u.n)}
	default:
		e = program.NewError("ExternalException", "Exception in %s", name)
		e.Causes = []*Error{cause}
	}
	e.File, e.Line, e.PythonTrace = err.File, err.Line, err.Trace
	if direct {
		if err.Kind == "plugin" {
			e.Message = strings.TrimSuffix(e.Message, "\n"+err.Message)
		}
		return e.In(u.n)
	}
	return e
}

// raised is the error for a compiler exception that a plug-in raised, with its
// causes.
func (u *callUnit) raised(err *PluginError) *Error {
	e := &Error{
		Kind:        err.Class,
		Message:     err.Message,
		Line:        err.Line,
		PythonTrace: err.Trace,
		Place:       err.At,
		Hint:        err.Notes,
		Raised:      err.Raised(),
	}
	for i := range err.Causes {
		e.Causes = append(e.Causes, u.raised(&err.Causes[i]))
	}
	return e
}

// about sets the place of an error about a value that is passed: where the value is
// passed, and not where a typedef is defined.
func (u *callUnit) about(cause *Error) *Error {
	cause.Place = nil
	if u.direct {
		return cause
	}
	return cause.Located(u.n, &u.n.Span)
}

func (u *callUnit) result(r *run, v types.Value, checked bool) (types.Value, *Error) {
	if v == nil {
		v = null
	}
	v, err := u.instances(r, v)
	if err != nil {
		return nil, err
	}
	if checked || isUnknown(v) {
		return v, nil
	}
	if err := program.TypeError(types.Returned(u.n.Plugin.Result, v)); err != nil &&
		err.Builtin { // the condition of a typedef failed
		return nil, u.failed(&PluginError{Class: err.Kind, Message: err.Message}, u.direct)
	} else if err != nil {
		e := program.NewError("PluginTypeException", "Return value %s of plugin %s has incompatible type. "+
			"Expected type: %s", types.Text(v), u.n.Plugin.Signature.Name, typeName(u.n.Plugin.Result))
		e.Causes = []*Error{u.about(err)}
		return nil, e
	}
	return v, nil
}

func checkResult(info *program.PluginInfo, v types.Value) (declared string, err *Error) {
	if isUnknown(v) {
		return "", nil
	}
	return typeName(info.Result), program.TypeError(types.Returned(info.Result, v))
}
