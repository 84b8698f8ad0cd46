package console

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/forge"
)

// Control is the part of the server's verbs that the console speaks to;
// *control.Control has it.
type Control interface {
	Bus() *bus.Bus
	ProgramVersion() string

	CreateProject(ctx context.Context, p intent.Project) (intent.Project, error)
	Projects(ctx context.Context) ([]intent.Project, error)

	CreateEnvironment(ctx context.Context, n control.NewEnvironment) (intent.Environment, error)
	Environments(ctx context.Context) ([]intent.Environment, error)
	Environment(ctx context.Context, id intent.EnvironmentID) (intent.Environment, error)
	UpdateEnvironment(ctx context.Context, e intent.Environment) (intent.Environment, error)
	DeleteEnvironment(ctx context.Context, id intent.EnvironmentID) error
	ClearEnvironment(ctx context.Context, id intent.EnvironmentID) error
	Halt(ctx context.Context, id intent.EnvironmentID) error
	Resume(ctx context.Context, id intent.EnvironmentID) error
	SetSetting(ctx context.Context, id intent.EnvironmentID, name string, value any) error
	DeleteSetting(ctx context.Context, id intent.EnvironmentID, name string) error
	SetProjectSecret(ctx context.Context, id intent.ProjectID, name, value string) error
	ProjectSecretNames(ctx context.Context, id intent.ProjectID) ([]string, error)
	KnownHosts(ctx context.Context, id intent.ProjectID) (string, error)
	SetKnownHosts(ctx context.Context, id intent.ProjectID, lines string) error
	SetSecret(ctx context.Context, id intent.EnvironmentID, name, value string) error
	SecretNames(ctx context.Context, id intent.EnvironmentID) ([]string, error)

	RequestCompile(
		ctx context.Context,
		env intent.EnvironmentID,
		r control.CompileRequest,
	) (intent.CompileID, string, error)
	CompileQueue(ctx context.Context, env intent.EnvironmentID) ([]intent.Compile, error)
	Compiles(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Compile], error)
	Compile(ctx context.Context, id intent.CompileID) (intent.Compile, []intent.Stage, error)

	Release(ctx context.Context, env intent.EnvironmentID, number int) error
	Confirm(ctx context.Context, env intent.EnvironmentID, number int, by, reason string) error
	HeldVersions(ctx context.Context, env intent.EnvironmentID) ([]intent.Version, error)
	Versions(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Version], error)
	Version(ctx context.Context, env intent.EnvironmentID, number int) (intent.Version, error)
	ActiveVersion(ctx context.Context, env intent.EnvironmentID) (*intent.Version, error)
	VersionResourcePage(
		ctx context.Context,
		env intent.EnvironmentID,
		number int,
		q intent.ListQuery,
	) (intent.Page[intent.Resource], error)
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
	Parameters(
		ctx context.Context,
		env intent.EnvironmentID,
		facts bool,
		q intent.ListQuery,
	) (intent.Page[intent.Parameter], error)
	RefreshFacts(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) ([]intent.ResourceID, error)
	DryRuns(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.DryRun, error)
	DryRun(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ActionID,
	) (intent.DryRun, []intent.ResourceDiff, error)

	PullRequests(ctx context.Context, env intent.EnvironmentID) ([]intent.PullRequest, error)
	PullRequest(ctx context.Context, env intent.EnvironmentID, number int) (intent.PullRequest, error)
	PullReport(ctx context.Context, e intent.Environment, p intent.PullRequest) (forge.Report, error)
	PreviewPull(ctx context.Context, env intent.EnvironmentID, number int) error
	ApprovePull(ctx context.Context, env intent.EnvironmentID, number int, commit, by string) error
	Outbox(ctx context.Context, env intent.EnvironmentID) ([]intent.Outbox, error)
	RetryOutbox(ctx context.Context, env intent.EnvironmentID, id int64) error

	Deploy(ctx context.Context, env intent.EnvironmentID, full bool, agents []string) ([]string, error)
	DeployResource(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID) error
	Unpark(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) ([]intent.ResourceID, error)
	Deliveries(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Delivery], error)
	Delivery(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Delivery, error)
	Redeliver(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Delivery, error)
	Drift(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Drift], error)
	Why(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID) (intent.Why, error)
	Override(ctx context.Context, env intent.EnvironmentID, o intent.Override) (intent.Override, error)
	GitState(ctx context.Context, env intent.EnvironmentID) (*intent.GitState, error)
	GitCommits(ctx context.Context, env intent.EnvironmentID) ([]intent.GitCommit, error)
	RollBack(ctx context.Context, env intent.EnvironmentID, to int) (intent.Version, error)
	BlockedCommits(ctx context.Context, env intent.EnvironmentID) ([]intent.Block, error)
	UnblockCommit(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Block, error)
	Following(ctx context.Context, env intent.EnvironmentID) (control.Following, error)
	Promote(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Promotion, error)
	ApprovePromotion(ctx context.Context, env intent.EnvironmentID, commit string) error
	PausePromotions(ctx context.Context, env intent.EnvironmentID, pause bool) error
	AcceptCommit(ctx context.Context, env intent.EnvironmentID, commit string) (intent.Acceptance, error)
	EndOverride(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) error
	PauseAgent(ctx context.Context, env intent.EnvironmentID, name string, paused bool) error
	Agents(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Agent], error)
	Executors(ctx context.Context, env intent.EnvironmentID) (intent.Executors, error)

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
	Notifications(
		ctx context.Context,
		env intent.EnvironmentID,
		q intent.ListQuery,
	) (intent.Page[intent.Notification], error)
	MarkNotification(
		ctx context.Context,
		env intent.EnvironmentID,
		id uuid.UUID,
		read, cleared *bool,
	) (intent.Notification, error)
	MarkNotificationsRead(ctx context.Context, env intent.EnvironmentID) error
	UnreadNotifications(ctx context.Context, env intent.EnvironmentID) (int, error)

	Actions(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ResourceID,
		kind intent.ActionKind,
		limit int,
	) ([]intent.Action, error)
}

var _ Control = (*control.Control)(nil)
