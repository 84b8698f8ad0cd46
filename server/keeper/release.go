package keeper

import (
	"context"
	"errors"
	"strconv"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// ReleaseVersion makes a version the intent and starts to deploy it. It returns Conflict
// if the version was released already or is older than the active one, and if it removes
// so much that a person has to confirm it; then it is held.
func (r *Registry) ReleaseVersion(ctx context.Context, env intent.EnvironmentID, number int) error {
	if err := r.cfg.Store.ReleaseVersion(ctx, env, number, r.cfg.Now()); err != nil {
		r.Held(env, number, err)
		return err
	}
	r.Released(env, number)
	return nil
}

// Released notifies pages and the deployer of the new intent.
func (r *Registry) Released(env intent.EnvironmentID, number int) {
	r.publish(env, bus.Version, strconv.Itoa(number))
	if d := r.Deployer(env); d != nil {
		d.VersionReleased(number)
		if k := r.keeper(env); k != nil {
			if err := k.redeployFailed(context.Background(), d); err != nil {
				k.log.Warn("cannot tell whether to deploy what failed before; the next deploy interval does",
					"error", err)
			}
		}
	}
}

// redeployFailed also deploys what failed or was skipped before, after the release of a version, where the environment
// asks for it.
func (k *keeper) redeployFailed(ctx context.Context, d Deployer) error {
	e, err := k.cfg.Store.Environment(ctx, k.env)
	if err == nil && e.Bool(intent.RedeployFailed) && !e.Halted {
		d.Deploy(intent.Request{}, intent.DeployRequest{})
	}
	return err
}

// Held notifies pages of a refused release, if err says that the version is held.
func (r *Registry) Held(env intent.EnvironmentID, number int, err error) {
	var held *store.HeldError
	if !errors.As(err, &held) {
		return
	}
	r.publish(env, bus.Version, strconv.Itoa(number))
	r.publish(env, bus.Notification, "")
}
