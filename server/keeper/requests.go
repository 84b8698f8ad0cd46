package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Whatever process answers people and programs, it asks the owner of an environment by a
// row in the table of requests, written together with the change itself:
//
//	Attend ──event──▶ bus ──▶ wake ─┐
//	      a sweep every two seconds ─┴▶ rows, oldest first ▸ the deployer or a loop ▸ row deleted
//
// A request for a deployment stays until all of it has been deployed, so the next owner
// finds it if this one is killed.

// requestInterval is how often a process looks for requests of which no event told it.
const requestInterval = 2 * time.Second

// compileSweeps is how many sweeps there are for one that also looks for compiles that wait.
const compileSweeps = 15

// requests is what a keeper knows of the requests of its environment.
type requests struct {
	mu   sync.Mutex // held while requests are carried out, so that they stay in order
	last int64      // the last that was taken
}

// Attend makes the owner of an environment look at its requests: here and now if this process is the owner, and
// through the bus if not.
func (r *Registry) Attend(ctx context.Context, env intent.EnvironmentID) {
	if k := r.keeper(env); k != nil && k.currentDeployer() != nil {
		if err := k.carryOutRequests(ctx); err == nil {
			return
		}
		wake(k.requestWakes)
		return
	}
	r.publish(env, bus.Request, "")
}

// nudge makes the owner of an environment look at its queue and its promotions, through the bus if it is another
// process. If the event is lost, the owner finds the work with its next sweep.
func (r *Registry) nudge(env intent.EnvironmentID) {
	if k := r.keeper(env); k != nil {
		wake(k.compileWakes)
		wake(k.promotionWakes)
		return
	}
	r.publish(env, bus.Request, "")
}

func (k *keeper) wakeAll() {
	for _, c := range []chan struct{}{
		k.requestWakes, k.compileWakes, k.promotionWakes, k.previewWakes, k.deliveryWakes,
	} {
		wake(c)
	}
}

// lookForRequests wakes the keepers whose environments have requests, until ctx ends.
func (r *Registry) lookForRequests(ctx context.Context) {
	events := r.cfg.Bus.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Request || e.Topic == bus.Lagged })
	defer events.Close()
	ticker := time.NewTicker(requestInterval)
	defer ticker.Stop()
	sweeps := 0
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events.Events():
			if k := r.keeper(e.Environment); e.Topic == bus.Request && k != nil {
				k.wakeAll()
			}
			if e.Topic == bus.Request {
				continue
			}
		case <-ticker.C:
		}
		sweeps++
		envs, err := r.cfg.Store.RequestsWait(ctx, sweeps%compileSweeps == 0)
		if err != nil && ctx.Err() == nil {
			r.cfg.Logger.Debug("cannot look for requests", "error", err)
		}
		for _, env := range envs {
			if k := r.keeper(env); k != nil {
				wake(k.requestWakes)
				wake(k.compileWakes)
			}
		}
	}
}

// keepRequests carries out requests until ctx ends.
func (k *keeper) keepRequests(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.carryOutRequests(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("cannot read what is asked of the environment yet", "error", err)
			pause(ctx, ownRetry)
			continue
		}
		select {
		case <-ctx.Done():
		case <-k.requestWakes:
		}
	}
}

// carryOutRequests carries out all requests that wait, in order.
func (k *keeper) carryOutRequests(ctx context.Context) error {
	k.requests.mu.Lock()
	defer k.requests.mu.Unlock()
	for {
		waiting, err := k.cfg.Store.Requests(ctx, k.env, k.requests.last)
		if err != nil || len(waiting) == 0 {
			return err
		}
		var done []int64
		for i, r := range waiting {
			d := k.currentDeployer()
			if d == nil {
				break // the next owner carries it out
			}
			stays := false
			if !saidAgain(r, waiting[i+1:]) {
				if stays, err = k.carryOut(ctx, d, r); err != nil {
					return err
				}
			}
			k.requests.last = r.ID
			if !stays {
				done = append(done, r.ID)
			}
		}
		if len(done) > 0 {
			if err := k.cfg.Store.FinishRequests(ctx, k.env, done); err != nil {
				return err // they are carried out once more by the next owner, which does no harm
			}
		}
		if ctx.Err() != nil || k.currentDeployer() == nil {
			return nil
		}
	}
}

// carryOut carries out one request. stays is true when somebody else deletes it.
func (k *keeper) carryOut(ctx context.Context, d Deployer, r intent.Request) (stays bool, err error) {
	switch r.Kind {
	case intent.RequestDeploy:
		var what intent.DeployRequest
		if !k.detail(r, &what) {
			return false, nil
		}
		if r.Taken == nil {
			if err := k.cfg.Store.TakeRequest(ctx, r, k.now()); err != nil {
				return true, err
			}
		}
		d.Deploy(r, what)
		return true, nil
	case intent.RequestUnpark, intent.RequestFacts:
		var ids []intent.ResourceID
		if !k.detail(r, &ids) {
			return false, nil
		}
		if r.Kind == intent.RequestUnpark {
			d.Unpark(ids)
		} else {
			d.RefreshFacts(ids)
		}
	case intent.RequestPause:
		var what intent.PauseRequest
		if k.detail(r, &what) {
			d.SetPaused(what.Agent, what.Paused)
		}
	case intent.RequestDryRun, intent.RequestCancelDryRun:
		var id intent.ActionID
		if !k.detail(r, &id) {
			return false, nil
		}
		if r.Kind == intent.RequestCancelDryRun {
			d.CancelDryRun(id)
			k.cancelPreview(id)
			return false, nil
		}
		return false, k.beginDryRun(ctx, d, id)
	case intent.RequestCancel:
		var what intent.CancelRequest
		if k.detail(r, &what) {
			k.cancelCompile(what)
		}
	case intent.RequestRelease:
		v, err := k.cfg.Store.ActiveVersion(ctx, k.env)
		if err != nil || v == nil {
			return false, err
		}
		d.VersionReleased(v.Number)
		return false, k.redeployFailed(ctx, d)
	case intent.RequestVenvs:
		d.RemoveVenvs()
	case intent.RequestLook:
		k.changed(ctx)
		k.wakeAll()
		k.CompileForFacts(ctx, k.env)
	case intent.RequestClear:
		return true, k.beginAnew(ctx, r)
	default: // of a newer program: a process that runs it carries it out
		k.log.Warn("a request is of a kind that this program does not know", "kind", string(r.Kind))
		return true, nil
	}
	return false, nil
}

// saidAgain reports whether a later request makes the owner look at the same thing.
func saidAgain(r intent.Request, later []intent.Request) bool {
	if r.Kind != intent.RequestRelease && r.Kind != intent.RequestLook {
		return false
	}
	return slices.ContainsFunc(later, func(l intent.Request) bool { return l.Kind == r.Kind })
}

// detail decodes what a request is about. One that cannot be decoded is logged, and dropped.
func (k *keeper) detail(r intent.Request, into any) bool {
	if err := json.Unmarshal(r.Detail, into); err != nil {
		k.log.Error("a request cannot be read", "kind", string(r.Kind), "error", fmt.Sprintf("%.200s", err))
		return false
	}
	return true
}

// beginDryRun hands a dry run to the deployer, or to the previews if its commit is to be compiled first.
func (k *keeper) beginDryRun(ctx context.Context, d Deployer, id intent.ActionID) error {
	run, _, err := k.cfg.Store.DryRun(ctx, k.env, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case run.Version == 0:
		wake(k.previewWakes)
	default:
		d.DryRun(id)
	}
	return nil
}

// beginAnew makes the environment begin with empty folders, after another process deleted its record. The keeper ends;
// a process takes the environment once more.
func (k *keeper) beginAnew(ctx context.Context, r intent.Request) error {
	if err := k.cfg.Store.DropRequest(ctx, r); err != nil { // the fencing number has moved on with the deletion
		return err
	}
	k.clear.Store(true)
	k.stop()
	return nil
}
