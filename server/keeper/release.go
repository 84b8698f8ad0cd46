package keeper

import (
	"context"
	"errors"
	"strconv"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// ReleaseVersion makes a version the intent and starts to deploy it. Conflict when
// it is released already or older than the active one, and when it takes away
// so much that a person has to confirm it; then it is held.
func (r *Registry) ReleaseVersion(ctx context.Context, env intent.EnvironmentID, number int) error {
	if err := r.cfg.Store.ReleaseVersion(ctx, env, number, r.cfg.Now()); err != nil {
		r.Held(env, number, err)
		return err
	}
	r.Released(env, number)
	return nil
}

// Released tells pages and the deployer of the new intent.
func (r *Registry) Released(env intent.EnvironmentID, number int) {
	r.publish(env, bus.Version, strconv.Itoa(number))
	if d := r.Deployer(env); d != nil {
		d.VersionReleased(number)
	}
}

// Held tells pages of a release that was refused, if err says that the version is held.
func (r *Registry) Held(env intent.EnvironmentID, number int, err error) {
	var held *store.HeldError
	if !errors.As(err, &held) {
		return
	}
	r.publish(env, bus.Version, strconv.Itoa(number))
	r.publish(env, bus.Notification, "")
}
