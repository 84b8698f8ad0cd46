package eval

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

func (r *run) needCall(n *call, s *scope, f frame) *Error {
	target := &variable{}
	f[n.slot] = target
	frame, err := r.prepare(n.parts, s)
	if err != nil {
		return err.in(n)
	}
	r.start(&callUnit{unit: unit{scope: s}, n: n, target: target}, frame)
	return nil
}

// callUnit waits for the arguments, and for what the plug-in found missing.
type callUnit struct {
	unit
	n        *call
	target   *variable
	repeated bool // the arguments are bound already
	posted   bool // the same, and the host was told to run it
	// calling is set when the arguments are evaluated: from there on errors are
	// those of the call.
	calling bool
	// direct is set in the condition of a typedef: errors about types get the
	// place of what sets the value.
	direct bool
	bound  PluginCall
	// twins are arguments that become Python dataclasses: their fields are
	// checked once they are set.
	twins []twin
}

type twin struct {
	param int
	value types.Value
}

func (u *callUnit) node() node { return u.n }
func (u *callUnit) blame(err *Error) *Error {
	if u.calling {
		return err.claimed(u.n, u.n.where())
	}
	if err.Kind == "OptionalValueException" { // of an argument: upstream reads all before it evaluates any, and names no place
		return err.near(u.n)
	}
	return err.in(u.n)
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
	if u.n.plugin == nil {
		return u.cast(r, args, named)
	}
	call, err := u.bind(args, named)
	if err != nil {
		return err
	}
	if !call && u.direct {
		return runtimeError("Received unknown value during direct execution").in(u.n)
	}
	if !call {
		u.target.put(r, r.unknown(), &u.n.span)
		return nil
	}
	if sig := u.n.plugin.sig; u.direct && sig.Context {
		return runtimeError("Context Aware functions are not allowed in direct execution").in(u.n)
	}
	if u.direct && u.n.plugin.sig.Emits {
		return runtimeError("emits_statements functions are not allowed in direct execution").in(u.n)
	}
	return u.call(r)
}

func (u *callUnit) cast(r *run, args []types.Value, named []given) *Error {
	if len(named) > 0 {
		return runtimeError("Only positional arguments allowed in type cast")
	}
	if len(args) != 1 {
		texts := make([]string, len(u.n.args))
		for i, x := range u.n.args {
			texts[i] = x.String()
		}
		return runtimeError("Illegal arguments %s: type cast expects exactly 1 argument", strings.Join(texts, ","))
	}
	if _, is := args[0].(*types.Reference); is && u.n.cast == types.BoolT {
		e := &Error{
			Kind:    "NotImplementedError",
			Message: types.Text(args[0]) + " is an inmanta reference, not a boolean.",
			foreign: true,
		}
		e.Hint = "the value is known when it is deployed: what depends on it belongs into a handler"
		return e
	}
	v, err := u.n.cast.Cast(args[0])
	if python, is := err.(types.PythonError); is {
		return &Error{Kind: python.Class, Message: python.Text, foreign: true}
	}
	if err != nil {
		return runtimeError("%s", err).coded(diag.NoCast)
	}
	u.target.put(r, v, &u.n.span)
	return nil
}

// typeName is the text of a type of a plug-in: it may have none.
func typeName(t types.Type) string {
	if t == nil {
		return "any"
	}
	return t.String()
}

// retry waits for what the plug-in wanted and calls it once more.
func (u *callUnit) retry(r *run, slots []Slot) {
	next := &callUnit{unit: unit{scope: u.scope}, n: u.n, target: u.target, repeated: true, bound: u.bound, twins: u.twins}
	f := make(frame, 0, len(slots))
	for _, s := range slots {
		if v, ok := s.(*variable); ok {
			f = append(f, v)
		}
	}
	r.waiting.replace(u, next)
	r.start(next, f)
}

// repeats tells units that may find only when they run that they have to wait:
// they keep their place among those that do.
func mayRepeat(w waiter) bool {
	u, is := w.(*callUnit)
	return is && u.n.plugin != nil
}

func (u *callUnit) call(r *run) *Error {
	if r.failed {
		return nil // no effects after an error; who waits for the result waits on
	}
	if sig := u.n.plugin.sig; sig.Deprecated {
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
		return u.failed(out.Err, r.direct).hinted(out.Err.Hint((&heap{r: r}).Type))
	case len(out.Unset) > 0:
		u.retry(r, out.Unset)
		return nil
	}
	v, err := u.result(r, out.Value, out.Checked)
	if err != nil {
		return err
	}
	if u.n.plugin.sig.Emits {
		r.emitter = u.n.plugin.sig.Name
		return nil
	}
	u.target.put(r, v, &u.n.span)
	return nil
}

// deprecated warns of a plug-in, once.
func (u *callUnit) deprecated(r *run, message string) {
	for _, w := range slices.Concat(r.prog.warnings, r.warnings) {
		if w.Message == message {
			return
		}
	}
	if u.direct {
		r.prog.warn("PluginDeprecationWarning", u.n.span, "%s", message)
	}
	r.warnings = append(r.warnings, Warning{Kind: "PluginDeprecationWarning", Message: message, At: u.n.span})
}

func (u *callUnit) failed(err *PluginError, direct bool) *Error {
	name := "plugin " + u.n.plugin.sig.Name
	if direct {
		name = "direct execution for plugin " + u.n.name
	}
	cause := &Error{
		Kind:        err.Class,
		Message:     err.Last() + "\n",
		foreign:     true,
		bare:        true,
		File:        err.File,
		Line:        err.Line,
		PythonTrace: err.Trace,
	}
	var e *Error
	switch {
	case err.Kind == "exit": // it passes everything by, as upstream
		return exited(*err)
	case u.n.plugin.sig.Emits && err.Kind == "compiler": // as do all of these, which upstream lets through
		return u.raised(err).in(u.n)
	case u.n.plugin.sig.Emits:
		return exited(*err)
	case err.Class == "inmanta.ast.PluginTypeException": // it says enough
		e = u.raised(err)
		e.Kind, e.File = "PluginTypeException", err.File
		return e
	case err.Kind == "plugin":
		e = fail("ExplicitPluginException", "PluginException in %s\n%s", name, err.Message)
		e.Causes, e.Raised = []*Error{cause}, err.Raised()
	case err.Kind == "compiler" && direct: // the cause is told where the value is given
		e = fail("WrappingRuntimeException", "Exception in %s", name).in(u.n)
		e.Causes, e.File, e.Line, e.PythonTrace = []*Error{u.raised(err)}, err.File, err.Line, err.Trace
		return e
	case err.Kind == "compiler":
		e = fail("WrappingRuntimeException", "Exception in %s", name)
		e.Causes = []*Error{u.raised(err).in(u.n)}
	default:
		e = fail("ExternalException", "Exception in %s", name)
		e.Causes = []*Error{cause}
	}
	e.File, e.Line, e.PythonTrace = err.File, err.Line, err.Trace
	if direct {
		if err.Kind == "plugin" {
			e.Message = strings.TrimSuffix(e.Message, "\n"+err.Message)
		}
		return e.in(u.n)
	}
	return e
}

// raised is a compiler exception that a plug-in raised, with its causes.
func (u *callUnit) raised(err *PluginError) *Error {
	e := &Error{
		Kind:        err.Class,
		Message:     err.Message,
		Line:        err.Line,
		PythonTrace: err.Trace,
		at:          err.At,
		Hint:        err.Notes,
		Raised:      err.Raised(),
	}
	for i := range err.Causes {
		e.Causes = append(e.Causes, u.raised(&err.Causes[i]))
	}
	return e
}

// about places the cause of an error about a value that is passed: not where a
// typedef stands, but where the value is given.
func (u *callUnit) about(cause *Error) *Error {
	cause.at = nil
	if u.direct {
		return cause
	}
	return cause.located(u.n, &u.n.span)
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
	if err := typeError(types.Returned(u.n.plugin.result, v)); err != nil &&
		err.foreign { // the condition of a typedef failed
		return nil, u.failed(&PluginError{Class: err.Kind, Message: err.Message}, u.direct)
	} else if err != nil {
		e := fail("PluginTypeException", "Return value %s of plugin %s has incompatible type. Expected type: %s", types.Text(v), u.n.plugin.sig.Name, typeName(u.n.plugin.result))
		e.Causes = []*Error{u.about(err)}
		return nil, e
	}
	return v, nil
}

func checkResult(info *pluginInfo, v types.Value) (declared string, err *Error) {
	if isUnknown(v) {
		return "", nil
	}
	return typeName(info.result), typeError(types.Returned(info.result, v))
}
