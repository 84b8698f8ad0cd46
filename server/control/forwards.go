package control

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/source"
)

// The methods of this file only read the store. They go when the API and the
// console read it themselves.

// DryRuns lists the dry runs of a version, newest first; version 0: all.
func (c *Control) DryRuns(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.DryRun, error) {
	return c.cfg.Store.DryRuns(ctx, env, number)
}

// DryRun gives one with what it found so far.
func (c *Control) DryRun(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ActionID,
) (intent.DryRun, []intent.ResourceDiff, error) {
	return c.cfg.Store.DryRun(ctx, env, id)
}

// Projects lists all projects by name.
func (c *Control) Projects(ctx context.Context) ([]intent.Project, error) {
	return c.cfg.Store.Projects(ctx)
}

// Environments lists all environments by project and name.
func (c *Control) Environments(ctx context.Context) ([]intent.Environment, error) {
	return c.cfg.Store.Environments(ctx)
}

// Environment finds one.
func (c *Control) Environment(ctx context.Context, id intent.EnvironmentID) (intent.Environment, error) {
	return c.cfg.Store.Environment(ctx, id)
}

// Notifications lists what people should hear of.
func (c *Control) Notifications(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Notification], error) {
	return c.cfg.Store.Notifications(ctx, env, q)
}

// UnreadNotifications counts what nobody read and nobody cleared.
func (c *Control) UnreadNotifications(ctx context.Context, env intent.EnvironmentID) (int, error) {
	return c.cfg.Store.UnreadNotifications(ctx, env)
}

// KnownHosts gives the keys of SSH servers that a project knows, in OpenSSH's lines.
func (c *Control) KnownHosts(ctx context.Context, id intent.ProjectID) (string, error) {
	return c.cfg.Store.KnownHosts(ctx, id)
}

// Agents lists agents.
func (c *Control) Agents(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Agent], error) {
	return c.cfg.Store.Agents(ctx, env, q)
}

// ResourceCounts counts resources per state, orphans left out.
func (c *Control) ResourceCounts(ctx context.Context, env intent.EnvironmentID) (map[intent.Status]int, error) {
	return c.cfg.Store.ResourceCounts(ctx, env)
}

// Resources lists the resources of the active version with their states.
func (c *Control) Resources(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.ResourceRow], error) {
	return c.cfg.Store.Resources(ctx, env, q)
}

// Resource gives all about one resource.
func (c *Control) Resource(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
) (intent.ResourceDetail, error) {
	return c.cfg.Store.Resource(ctx, env, id)
}

// ResourceHistory lists how its intent changed.
func (c *Control) ResourceHistory(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
	q intent.ListQuery,
) (intent.Page[intent.ResourceHistory], error) {
	return c.cfg.Store.ResourceHistory(ctx, env, id, q)
}

// Actions gives the newest actions on a resource, of one kind or of all.
func (c *Control) Actions(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
	kind intent.ActionKind,
	limit int,
) ([]intent.Action, error) {
	return c.cfg.Store.Actions(ctx, env, id, kind, limit)
}

// Parameters lists parameters, or facts.
func (c *Control) Parameters(
	ctx context.Context,
	env intent.EnvironmentID,
	facts bool,
	q intent.ListQuery,
) (intent.Page[intent.Parameter], error) {
	return c.cfg.Store.Parameters(ctx, env, facts, q)
}

// BlockedCommits lists the commits that people took back, newest first.
func (c *Control) BlockedCommits(ctx context.Context, env intent.EnvironmentID) ([]intent.Block, error) {
	return c.cfg.Store.GitBlocks(ctx, env)
}

// Drift lists what was found to be other than the intent, and how it ended.
func (c *Control) Drift(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Drift], error) {
	return c.cfg.Store.Drift(ctx, env, q)
}

// HeldVersions lists the versions that wait for a confirmation, newest first.
func (c *Control) HeldVersions(ctx context.Context, env intent.EnvironmentID) ([]intent.Version, error) {
	return c.cfg.Store.HeldVersions(ctx, env)
}

// Versions lists versions.
func (c *Control) Versions(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Version], error) {
	return c.cfg.Store.Versions(ctx, env, q)
}

// Version finds one.
func (c *Control) Version(ctx context.Context, env intent.EnvironmentID, number int) (intent.Version, error) {
	return c.cfg.Store.Version(ctx, env, number)
}

// ActiveVersion gives the intent, nil before the first release.
func (c *Control) ActiveVersion(ctx context.Context, env intent.EnvironmentID) (*intent.Version, error) {
	return c.cfg.Store.ActiveVersion(ctx, env)
}

// VersionResourcePage lists them by page.
func (c *Control) VersionResourcePage(
	ctx context.Context,
	env intent.EnvironmentID,
	number int,
	q intent.ListQuery,
) (intent.Page[intent.Resource], error) {
	return c.cfg.Store.VersionResourcePage(ctx, env, number, q)
}

// Compiles lists compile reports.
func (c *Control) Compiles(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Compile], error) {
	return c.cfg.Store.Compiles(ctx, env, q)
}

// Compile gives one report with its stages.
func (c *Control) Compile(ctx context.Context, id intent.CompileID) (intent.Compile, []intent.Stage, error) {
	return c.cfg.Store.Compile(ctx, id)
}

// Deliveries lists the webhooks of an environment.
func (c *Control) Deliveries(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Delivery], error) {
	return c.cfg.Store.Deliveries(ctx, env, q)
}

// Delivery finds one.
func (c *Control) Delivery(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Delivery, error) {
	return c.cfg.Store.Delivery(ctx, env, id)
}

// Outbox lists what waits for the forge of an environment, and what was done last.
func (c *Control) Outbox(ctx context.Context, env intent.EnvironmentID) ([]intent.Outbox, error) {
	return c.cfg.Store.Outbox(ctx, env, 200)
}

// PullRequests lists those of an environment, open ones first.
func (c *Control) PullRequests(ctx context.Context, env intent.EnvironmentID) ([]intent.PullRequest, error) {
	return c.cfg.Store.PullRequests(ctx, env)
}

// PullRequest gives one.
func (c *Control) PullRequest(ctx context.Context, env intent.EnvironmentID, number int) (intent.PullRequest, error) {
	return c.cfg.Store.PullRequest(ctx, env, number)
}

// GitState tells how it goes between an environment and its repository; nil when
// nothing is known yet.
func (c *Control) GitState(ctx context.Context, env intent.EnvironmentID) (*intent.GitState, error) {
	return c.cfg.Store.GitState(ctx, env)
}

// GitCommits lists the newest commits, and what became of them.
func (c *Control) GitCommits(ctx context.Context, env intent.EnvironmentID) ([]intent.GitCommit, error) {
	return c.cfg.Store.GitCommits(ctx, env, 100)
}

// Names of secrets; see package source.
const (
	SecretWebhook     = source.SecretWebhook
	SecretGitUser     = source.SecretGitUser
	SecretGitPassword = source.SecretGitPassword
	SecretForgeToken  = source.SecretForgeToken
	VariablePrefix    = source.VariablePrefix
)

// CompileQueue lists the requests that are not completed, oldest first.
func (c *Control) CompileQueue(ctx context.Context, env intent.EnvironmentID) ([]intent.Compile, error) {
	return c.cfg.Store.OpenCompiles(ctx, env)
}

// Ping reports whether the server can work: nil, or what is wrong.
func (c *Control) Ping(ctx context.Context) error { return c.cfg.Store.Ping(ctx) }
