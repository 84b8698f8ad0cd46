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
	}
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
