package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// The kinds of plug-ins, as resources name them.
const (
	ofProviders  = "providertypes"
	ofAutomators = "automatortypes"
)

// errTimeout ends an attempt that takes too long.
var errTimeout = errors.New("the task took longer than it may")

// attempt carries a task out and hands its result to the finisher, unless the lease is gone by then.
func (w *Worker) attempt(h *held, t task.Task) {
	defer w.leases.ended(h)
	if h.before != nil {
		select {
		case <-h.before:
		case <-h.ctx.Done():
		}
	}
	result := w.carryOut(h, t)
	switch cause := context.Cause(h.ctx); {
	case errors.Is(cause, errLeaseGone), errors.Is(cause, errLeaseEnded):
		w.c.Logger.Warn("the result of a task is dropped", "task", t.ID, "action", t.Action, "node", t.Node.Hostname,
			"reason", cause)
		w.leases.remove(h.Lease)
	default:
		w.finisher.add(result)
	}
}

// carryOut calls the plug-ins of a task, and makes a result of whatever happens.
func (w *Worker) carryOut(h *held, t task.Task) task.Result {
	ctx, cancel := h.ctx, context.CancelFunc(func() {})
	if t.TimeoutMS > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(t.TimeoutMS)*time.Millisecond, errTimeout)
	}
	defer cancel()
	redactor := secret.NewRedactor(secretsOf(t)...)
	out := newOutput(redactor)
	printed := w.print(h, out)
	learned, err := w.contain(ctx, t, redactor, out)
	failed := err != nil
	if !failed {
		err = checkResult(learned)
	}
	fresh := secret.NewRedactor(textsOf(learned.Secret)...) // what the plug-in has made up, and may have printed
	printed(fresh)
	switch {
	case failed:
		learned = afterFailure(t, learned)
	case err != nil:
		learned = plugin.Result{}
	}
	result := task.Result{
		ID: t.ID, Fence: t.Fence, Status: task.Done, Hostname: learned.Hostname, Addresses: learned.Addresses,
		Facts: learned.Facts, Secret: learned.Secret, Output: clean(fresh.Text(out.last())),
	}
	if err != nil {
		result.Status = task.Failed
		if plugin.IsRefused(err) {
			result.Status = task.Refused
		}
		result.Problem = cutProblem(clean(fresh.Text(redactor.Text(err.Error()))))
	}
	return result
}

// answer is what a plug-in returned.
type answer struct {
	result plugin.Result
	err    error
}

// contain calls the plug-ins in a goroutine of their own, so that neither a panic nor a plug-in that does not return
// does harm. The latter is left behind some time after its context has ended.
func (w *Worker) contain(
	ctx context.Context,
	t task.Task,
	redactor *secret.Redactor,
	out *output,
) (plugin.Result, error) {
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("the plug-in has ended its goroutine")}
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("the plug-in has a bug; it panicked: %v", p)
				w.c.Logger.Error("a plug-in panicked", "task", t.ID, "action", t.Action,
					"panic", redactor.Text(fmt.Sprint(p)), "stack", redactor.Text(string(debug.Stack())))
			}
			answers <- a
		}()
		a.result, a.err = w.call(ctx, t, out)
	}()
	select {
	case a := <-answers:
		return a.result, explain(ctx, a.err)
	case <-ctx.Done():
	}
	hang := time.NewTimer(w.c.Hang)
	defer hang.Stop()
	select {
	case a := <-answers:
		return a.result, explain(ctx, a.err)
	case <-hang.C:
	}
	w.leaveBehind(t, answers)
	return plugin.Result{}, fmt.Errorf("%w, and the plug-in does not end", context.Cause(ctx))
}

// explain replaces what a plug-in says about its end by the reason why it was ended.
func explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(err, cause) && !plugin.IsRefused(err) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// leaveBehind counts a plug-in that does not return, until it does.
func (w *Worker) leaveBehind(t task.Task, answers <-chan answer) {
	w.mu.Lock()
	w.stuck++
	stuck := w.stuck
	w.mu.Unlock()
	w.c.Logger.Error("a plug-in does not end, and is left behind", "task", t.ID, "action", t.Action,
		"provider", t.Provider.Type, "stuck", stuck)
	if stuck >= w.c.Room {
		w.c.Logger.Error("no more tasks are taken, because too many plug-ins do not end; start the provisioner again")
	}
	go func() {
		<-answers
		w.mu.Lock()
		w.stuck--
		w.mu.Unlock()
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}()
}

// call calls the plug-ins of a task, with the resources of each.
func (w *Worker) call(ctx context.Context, t task.Task, out *output) (plugin.Result, error) {
	if err := ctx.Err(); err != nil {
		return plugin.Result{}, context.Cause(ctx)
	}
	if t.Action.OfProvider() {
		p, ok := w.c.Plugins.Providers[t.Provider.Type]
		if !ok {
			return plugin.Result{}, unknown("provider", t.Provider.Type)
		}
		do := map[task.Action]func(context.Context, plugin.Call) (plugin.Result, error){
			task.Create: p.Create, task.Confirm: p.Confirm, task.Delete: p.Delete,
		}[t.Action]
		return w.with(ctx, t, ofProviders, t.Provider.Type, out, do)
	}
	switch t.Action {
	case task.Bootstrap:
		return w.bootstrap(ctx, t, out)
	case task.Install, task.Configure, task.Initialize, task.Start, task.Stop, task.Remove:
	default:
		return plugin.Result{}, plugin.Refuse(
			fmt.Sprintf("the action %q is unknown to this provisioner: update it", t.Action),
		)
	}
	if t.Service == nil {
		return plugin.Result{}, plugin.Refuse(fmt.Sprintf("the task has no service to %s", t.Action))
	}
	a, ok := w.c.Plugins.Automators[t.Service.Type]
	if !ok {
		return plugin.Result{}, unknown("automator", t.Service.Type)
	}
	return w.with(ctx, t, ofAutomators, t.Service.Type, out, a.Run)
}

// bootstrap prepares a node for all automators of the task.
func (w *Worker) bootstrap(ctx context.Context, t task.Task, out *output) (plugin.Result, error) {
	all := plugin.Result{Addresses: map[string]string{}, Facts: task.Fields{}, Secret: task.Fields{}}
	for _, name := range t.Automators {
		a, ok := w.c.Plugins.Automators[name]
		if !ok {
			return all, unknown("automator", name)
		}
		one, err := w.with(ctx, t, ofAutomators, name, out, a.Bootstrap)
		if err != nil {
			return all, fmt.Errorf("prepare the node for %s: %w", name, err)
		}
		if one.Hostname != "" {
			all.Hostname = one.Hostname
		}
		maps.Copy(all.Addresses, one.Addresses)
		maps.Copy(all.Facts, one.Facts)
		maps.Copy(all.Secret, one.Secret)
	}
	return all, nil
}

// keysType is the type of resource that has the private keys of a provider.
const keysType = "ssh_keys"

// with calls one plug-in with its resources and an empty folder.
func (w *Worker) with(
	ctx context.Context, t task.Task, kind, name string, out *output,
	do func(context.Context, plugin.Call) (plugin.Result, error),
) (plugin.Result, error) {
	var own []task.Resource
	for _, r := range t.Resources {
		// An automator logs in to the machine with the key of its provider.
		key := r.Kind == ofProviders && r.Plugin == t.Provider.Type && r.Type == keysType
		if key || r.Kind == kind && r.Plugin == name {
			own = append(own, r)
		}
	}
	files, err := w.resources.Use(ctx, own)
	if err != nil {
		return plugin.Result{}, err
	}
	defer files.Release()
	dir, err := os.MkdirTemp(w.workDir(), "task-")
	if err != nil {
		return plugin.Result{}, fault.Disk("worker.attempt", w.workDir(), err)
	}
	defer os.RemoveAll(dir)
	t.Resources = own
	return do(ctx, plugin.Call{Task: t, Out: out, Files: files, Work: dir})
}

func unknown(kind, name string) error {
	return fault.New("worker.attempt", fault.NotFound,
		fmt.Sprintf("this provisioner has no %s plug-in for the type %q", kind, name)).
		Hint("add it to the provisioner's folder of plug-ins, and start the provisioner again")
}
