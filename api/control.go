package api

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// Control is what decides; *control.Control has it. Faults decide the status codes.
type Control interface {
	CreateProject(ctx context.Context, p intent.Project) (intent.Project, error)
	SetProjectSecret(ctx context.Context, id intent.ProjectID, name, value string) error
	ProjectSecretNames(ctx context.Context, id intent.ProjectID) ([]string, error)
	SetKnownHosts(ctx context.Context, id intent.ProjectID, lines string) error
	DeleteProject(ctx context.Context, id intent.ProjectID) error
	CreateEnvironment(ctx context.Context, n control.NewEnvironment) (intent.Environment, error)
	UpdateEnvironment(ctx context.Context, e intent.Environment) (intent.Environment, error)
	DeleteEnvironment(ctx context.Context, id intent.EnvironmentID) error
	ClearEnvironment(ctx context.Context, id intent.EnvironmentID) error
	Halt(ctx context.Context, id intent.EnvironmentID) error
	Resume(ctx context.Context, id intent.EnvironmentID) error
	SetSecret(ctx context.Context, id intent.EnvironmentID, name, value string) error
	SecretNames(ctx context.Context, id intent.EnvironmentID) ([]string, error)
	SetSetting(ctx context.Context, id intent.EnvironmentID, name string, value any) error
	ProtectSettings(ctx context.Context, id intent.EnvironmentID, settings map[string]any, by string) error
	DeleteSetting(ctx context.Context, id intent.EnvironmentID, name string) error
	RequestCompile(
		ctx context.Context,
		env intent.EnvironmentID,
		r control.CompileRequest,
	) (intent.CompileID, string, error)
	IsCompiling(ctx context.Context, env intent.EnvironmentID) (bool, error)
	Release(ctx context.Context, env intent.EnvironmentID, number int) error
	Confirm(ctx context.Context, env intent.EnvironmentID, number int, by, reason string) error
	DeleteVersion(ctx context.Context, env intent.EnvironmentID, number int) error
	Explain(
		ctx context.Context,
		env intent.EnvironmentID,
		number int,
		id intent.ResourceID,
	) (provenance.Explanation, error)
	DiffVersions(ctx context.Context, env intent.EnvironmentID, from, to int) ([]intent.ResourceDiff, error)
	StartDryRun(ctx context.Context, env intent.EnvironmentID, q control.DryRunRequest) (intent.ActionID, error)
	CancelDryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) error
	NoLongerManaged(ctx context.Context, run intent.DryRun) ([]intent.ResourceID, error)
	RefreshFacts(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) ([]intent.ResourceID, error)
	PullText(ctx context.Context, env intent.EnvironmentID, number int) (string, error)
	PreviewPull(ctx context.Context, env intent.EnvironmentID, number int) error
	ApprovePull(ctx context.Context, env intent.EnvironmentID, number int, commit, by string) error
	RetryOutbox(ctx context.Context, env intent.EnvironmentID, id int64) error
	Deploy(ctx context.Context, env intent.EnvironmentID, full bool, agents []string) ([]string, error)
	Why(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID) (intent.Why, error)
	Override(ctx context.Context, env intent.EnvironmentID, o intent.Override) (intent.Override, error)
	EndOverride(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) error
	AcceptCommit(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Acceptance, error)
	RollBack(ctx context.Context, env intent.EnvironmentID, to int) (intent.Version, error)
	OpenRevert(ctx context.Context, env intent.EnvironmentID, commit, why string) (page string, err error)
	UnblockCommit(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Block, error)
	Following(ctx context.Context, env intent.EnvironmentID) (control.Following, error)
	Promote(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Promotion, error)
	ApprovePromotion(ctx context.Context, env intent.EnvironmentID, commit string) error
	PausePromotions(ctx context.Context, env intent.EnvironmentID, pause bool) error
	Unpark(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) ([]intent.ResourceID, error)
	Redeliver(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Delivery, error)
	PauseAgent(ctx context.Context, env intent.EnvironmentID, name string, paused bool) error
	Executors(ctx context.Context, env intent.EnvironmentID) (intent.Executors, error)
	SetParameter(ctx context.Context, env intent.EnvironmentID, p intent.Parameter) error
	MarkNotification(
		ctx context.Context,
		env intent.EnvironmentID,
		id uuid.UUID,
		read, cleared *bool,
	) (intent.Notification, error)
}

// Store is the record; *store.Store has it.
type Store interface {
	Ping(ctx context.Context) error
	Projects(ctx context.Context) ([]intent.Project, error)
	Project(ctx context.Context, id intent.ProjectID) (intent.Project, error)
	RenameProject(ctx context.Context, id intent.ProjectID, name string) error
	KnownHosts(ctx context.Context, id intent.ProjectID) (string, error)
	Environments(ctx context.Context) ([]intent.Environment, error)
	Environment(ctx context.Context, id intent.EnvironmentID) (intent.Environment, error)
	OpenCompiles(ctx context.Context, env intent.EnvironmentID) ([]intent.Compile, error)
	Compiles(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Compile], error)
	Compile(ctx context.Context, id intent.CompileID) (intent.Compile, []intent.Stage, error)
	Versions(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Version], error)
	Version(ctx context.Context, env intent.EnvironmentID, number int) (intent.Version, error)
	ActiveVersion(ctx context.Context, env intent.EnvironmentID) (*intent.Version, error)
	VersionResources(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.Resource, error)
	VersionResourcePage(
		ctx context.Context,
		env intent.EnvironmentID,
		number int,
		q intent.ListQuery,
	) (intent.Page[intent.Resource], error)
	VersionResource(
		ctx context.Context,
		env intent.EnvironmentID,
		number int,
		id intent.ResourceID,
	) (intent.Resource, error)
	DryRuns(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.DryRun, error)
	DryRun(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ActionID,
	) (intent.DryRun, []intent.ResourceDiff, error)
	PullRequests(ctx context.Context, env intent.EnvironmentID) ([]intent.PullRequest, error)
	PullRequest(ctx context.Context, env intent.EnvironmentID, number int) (intent.PullRequest, error)
	Outbox(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.Outbox, error)
	Overrides(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.Override, error)
	GitState(ctx context.Context, env intent.EnvironmentID) (*intent.GitState, error)
	GitCommits(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.GitCommit, error)
	GitBlocks(ctx context.Context, env intent.EnvironmentID) ([]intent.Block, error)
	Interventions(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.Intervention, error)
	Deliveries(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Delivery], error)
	Delivery(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Delivery, error)
	Drift(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Drift], error)
	Agents(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Agent], error)
	ResourceCounts(ctx context.Context, env intent.EnvironmentID) (map[intent.Status]int, error)
	Resources(
		ctx context.Context,
		env intent.EnvironmentID,
		q intent.ListQuery,
	) (intent.Page[intent.ResourceRow], error)
	Resource(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID) (intent.ResourceDetail, error)
	ResourceHistory(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ResourceID,
		q intent.ListQuery,
	) (intent.Page[intent.ResourceHistory], error)
	ResourceLogs(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ResourceID,
		q intent.ListQuery,
	) (intent.Page[intent.ResourceLog], error)
	Actions(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ResourceID,
		kind intent.ActionKind,
		limit int,
	) ([]intent.Action, error)
	SetDiscovered(ctx context.Context, env intent.EnvironmentID, found []intent.Discovered) error
	Discovered(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID) (intent.Discovered, error)
	DiscoveredList(
		ctx context.Context,
		env intent.EnvironmentID,
		q intent.ListQuery,
	) (intent.Page[intent.Discovered], error)
	DeleteDiscovered(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) error
	Parameters(
		ctx context.Context,
		env intent.EnvironmentID,
		facts bool,
		q intent.ListQuery,
	) (intent.Page[intent.Parameter], error)
	Parameter(
		ctx context.Context,
		env intent.EnvironmentID,
		name string,
		resource intent.ResourceID,
	) (intent.Parameter, error)
	DeleteParameter(ctx context.Context, env intent.EnvironmentID, name string, resource intent.ResourceID) error
	Notifications(
		ctx context.Context,
		env intent.EnvironmentID,
		q intent.ListQuery,
	) (intent.Page[intent.Notification], error)
	Notification(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Notification, error)
	PutFile(ctx context.Context, content []byte) (string, error)
	File(ctx context.Context, sha1 string) ([]byte, error)
	MissingFiles(ctx context.Context, sha1s []string) ([]string, error)
}

var (
	_ Control = (*control.Control)(nil)
	_ Store   = (*store.Store)(nil)
)
