package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/push"
	"ordain.dev/ordain/server/store"
)

// Versions that people compile on their own machines pass through this file. They are not from a commit, so an
// environment takes them only if its setting says so, and never where it trusts only certain commits:
//
//	reserve a number ─▶ upload files ─▶ send the version ─▶ stored, with a report ─▶ released or held, as any other
//
// The next commit that is pushed to the branch supersedes such a version.

// Pushed is a version that was stored for a client.
type Pushed struct {
	Number   int
	Released bool
	// Why says why it was not released; empty if nobody tried to.
	Why string
}

// ReserveVersion reserves the next version number of an environment for a client that compiles.
func (c *Control) ReserveVersion(ctx context.Context, env intent.EnvironmentID) (int, error) {
	if _, err := c.mayPush(ctx, env); err != nil {
		return 0, err
	}
	number, err := c.cfg.Store.ReserveVersion(ctx, env)
	audit.Subject(ctx, "version "+strconv.Itoa(number))
	return number, err
}

// PushExport stores what inmanta's exporter sends, and releases it if the environment deploys automatically.
func (c *Control) PushExport(ctx context.Context, env intent.EnvironmentID, in push.Export) (Pushed, error) {
	e, err := c.mayPush(ctx, env)
	if err != nil {
		return Pushed{}, err
	}
	by := c.actor(ctx)
	v, metadata, err := in.Read(env, intent.Pushed{By: by.By, When: by.At})
	if err != nil {
		return Pushed{}, err
	}
	v.Report(metadata, nil, uuid.New(), by.At, by.At)
	return c.storePushed(ctx, e, v)
}

// PushDocument stores what ordain export sends, and releases it if the environment deploys automatically.
func (c *Control) PushDocument(ctx context.Context, env intent.EnvironmentID, in push.Document) (Pushed, error) {
	e, err := c.mayPush(ctx, env)
	if err != nil {
		return Pushed{}, err
	}
	by := c.actor(ctx)
	v, err := in.Read(env, intent.Pushed{By: by.By, When: by.At})
	if err != nil {
		return Pushed{}, err
	}
	id := uuid.New()
	stages, started := in.Stages(id, by.At)
	v.Report(map[string]any{"type": intent.TriggerPushed, "message": in.From.Message}, stages, id, started, by.At)
	return c.storePushed(ctx, e, v)
}

// mayPush fails unless an environment accepts versions that are not from a commit.
func (c *Control) mayPush(ctx context.Context, env intent.EnvironmentID) (intent.Environment, error) {
	const op = "control.mayPush"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return e, err
	}
	if !e.Bool(intent.AllowPushed) {
		return e, fault.New(op, fault.Forbidden, fmt.Sprintf("the environment %s accepts only versions that the "+
			"server compiled from commits (setting %s)", e.Name, intent.AllowPushed)).
			Hint("push the commit, or let a maintainer turn on the setting " + intent.AllowPushed)
	}
	refuse := func(setting, what string) (intent.Environment, error) {
		return e, fault.New(op, fault.Conflict, fmt.Sprintf("the environment %s deploys only %s (setting %s), which a "+
			"version that is not from a commit cannot be", e.Name, what, setting)).
			Hint("push the commit instead")
	}
	switch policy := e.GitPolicy(); {
	case policy.Verify != "off":
		return refuse("git_verify", "commits with a trusted signature")
	case len(policy.Refs) > 0:
		return refuse("git_protected_refs", "commits of protected branches")
	case e.Follows() != "":
		return refuse("follow", "commits that were promoted from "+e.Follows())
	}
	return e, c.cfg.Keepers.CheckDisk(ctx, e)
}

// storePushed stores a checked version and releases it if the environment deploys automatically.
func (c *Control) storePushed(ctx context.Context, e intent.Environment, v push.Version) (Pushed, error) {
	if err := c.hasFiles(ctx, e, v.Files); err != nil {
		return Pushed{}, err
	}
	number, err := c.cfg.Store.StoreVersion(ctx, v.NewVersion, c.now().Truncate(time.Microsecond))
	if err != nil {
		return Pushed{}, err
	}
	audit.Subject(ctx, "version "+strconv.Itoa(number))
	c.cfg.Logger.Info("a version was pushed", "environment", e.ID, "version", number, "from",
		v.Provenance.Pushed.Words())
	c.publish(e.ID, bus.Version, strconv.Itoa(number))
	c.publish(e.ID, bus.Compile, v.Provenance.Compile.String())
	out := Pushed{Number: number}
	if !e.Bool("auto_deploy") {
		return out, nil
	}
	err = c.Release(ctx, e.ID, number)
	var held *store.HeldError
	switch {
	case err == nil:
		out.Released = true
	case errors.As(err, &held), fault.Is(err, fault.Conflict):
		out.Why = err.Error()
		err = nil
	}
	return out, err
}

// hasFiles fails when a file of code is not stored, or belongs to another project alone.
func (c *Control) hasFiles(ctx context.Context, e intent.Environment, hashes []string) error {
	if len(hashes) == 0 {
		return nil
	}
	readable, err := c.cfg.Store.ReadableFiles(ctx, hashes, []intent.ProjectID{e.ProjectID})
	if err != nil {
		return err
	}
	slices.Sort(readable)
	for _, hash := range hashes {
		if _, has := slices.BinarySearch(readable, hash); !has {
			return fault.New("control.hasFiles", fault.Invalid, "the version needs the file "+hash+
				", which was not uploaded").
				Hint("upload it with PUT /api/v1/file/" + hash + " first")
		}
	}
	return nil
}

// PipConfig returns where the packages of a version come from.
func (c *Control) PipConfig(ctx context.Context, env intent.EnvironmentID, number int) (intent.PipConfig, error) {
	_, pip, err := c.cfg.Store.VersionCode(ctx, env, number)
	if fault.Is(err, fault.NotFound) {
		err = fault.New("control.PipConfig", fault.NotFound,
			fmt.Sprintf("No configuration model with version %d exists.", number))
	}
	return pip, err
}
