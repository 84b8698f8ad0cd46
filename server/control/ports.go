package control

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

// Store is the place of record. Every method is one transaction; what it
// returned without error is durable. Faults: NotFound for an id that does not
// exist, Conflict for a taken name or a wrong state, Unavailable when the
// database is away (the call may be repeated), Invalid for an unknown sort or
// filter column.
type Store interface {
	ProjectStore
	EnvironmentStore
	CompileStore
	VersionStore
	ResourceStore
	NotificationStore
	GateStore
	DeliveryStore
	ForgeStore
	GitStore
	PromotionStore
	// Ping tells whether the database answers.
	Ping(ctx context.Context) error
}

// GitStore keeps how it goes between environments and their repositories.
type GitStore interface {
	SetGitState(ctx context.Context, env intent.EnvironmentID, s intent.GitState) error
	// GitState gives nil when nothing is known yet.
	GitState(ctx context.Context, env intent.EnvironmentID) (*intent.GitState, error)
	// AcceptCommit also records the intervention.
	AcceptCommit(ctx context.Context, env intent.EnvironmentID, a intent.Acceptance) error
	// Acceptance gives nil when nobody accepted the commit.
	Acceptance(ctx context.Context, env intent.EnvironmentID, commit string) (*intent.Acceptance, error)
	// RollBack stores the content of an earlier version (0: the last that fits) as a
	// new one, releases it and blocks the commit that is left. A version that is held
	// is stored all the same; asked again, it is that one. It gives the new version.
	RollBack(ctx context.Context, env intent.EnvironmentID, to int, by intent.Actor) (int, error)
	// GitBlock gives nil when the commit is not blocked.
	GitBlock(ctx context.Context, env intent.EnvironmentID, commit string) (*intent.Block, error)
	GitBlocks(ctx context.Context, env intent.EnvironmentID) ([]intent.Block, error)
	// UsedCommits gives, for every environment, the commits of versions that were
	// released, how far the branch of one was deployed, and those that are blocked.
	UsedCommits(ctx context.Context) (map[intent.EnvironmentID][]string, error)
	// UnblockCommit also records the intervention; Conflict when it is not blocked.
	UnblockCommit(ctx context.Context, env intent.EnvironmentID, commit string, by intent.Actor) error
	// GitCommits lists the newest compiles that had a commit, and what became of them.
	GitCommits(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.GitCommit, error)
}

// PromotionStore keeps commits on their way from an environment to one that follows it.
type PromotionStore interface {
	// Followed gives what an environment has deployed; its Version is 0 when nothing is.
	Followed(ctx context.Context, env intent.EnvironmentID) (intent.Followed, error)
	// JudgePromotion looks at what the source of env has deployed. The commit of that
	// waits from then on, and what waited before is superseded; when its gates are
	// open it is promoted, with a compile that is asked for. It gives the promotion
	// that waits or was promoted now; nil when there is nothing to promote. Without a
	// source what waits is superseded, for the reason why.
	JudgePromotion(
		ctx context.Context,
		env intent.Environment,
		source *intent.Environment,
		why string,
		at time.Time,
	) (*intent.Promotion, error)
	// Promote promotes the commit that waits in spite of its gates, and records the
	// intervention. Conflict when another one waits, or what it waits for is no gate
	// that a person may override.
	Promote(
		ctx context.Context,
		env, source intent.Environment,
		commit string,
		by intent.Actor,
	) (intent.Promotion, error)
	// ApprovePromotion also records the intervention; Conflict when another commit waits.
	ApprovePromotion(ctx context.Context, env intent.EnvironmentID, commit string, by intent.Actor) error
	// PausePromotions pauses or resumes, and records the intervention when that was not so before.
	PausePromotions(ctx context.Context, env intent.EnvironmentID, pause bool, by intent.Actor) error
	// PromotionPause gives nil when nobody paused them.
	PromotionPause(ctx context.Context, env intent.EnvironmentID) (*intent.Actor, error)
	Promotions(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.Promotion, error) // newest first
	// LastPromoted gives the newest that was promoted; nil when none was.
	LastPromoted(ctx context.Context, env intent.EnvironmentID) (*intent.Promotion, error)
}

// ProjectStore keeps projects.
type ProjectStore interface {
	CreateProject(ctx context.Context, p intent.Project) error
	Projects(ctx context.Context) ([]intent.Project, error) // by name
	Project(ctx context.Context, id intent.ProjectID) (intent.Project, error)
	RenameProject(ctx context.Context, id intent.ProjectID, name string) error
	DeleteProject(ctx context.Context, id intent.ProjectID) error // with all that belongs to it
	// SetProjectSecret stores sealed bytes under a name; nil deletes it.
	SetProjectSecret(ctx context.Context, id intent.ProjectID, name string, sealed []byte) error
	ProjectSecrets(ctx context.Context, id intent.ProjectID) (map[string][]byte, error)
	// KnownHosts are the keys of the SSH servers of a project, in OpenSSH's lines.
	KnownHosts(ctx context.Context, id intent.ProjectID) (string, error)
	SetKnownHosts(ctx context.Context, id intent.ProjectID, lines string) error
	AddKnownHost(ctx context.Context, id intent.ProjectID, line string) error // unless it is there
}

// EnvironmentStore keeps environments, their settings and their secrets.
type EnvironmentStore interface {
	CreateEnvironment(ctx context.Context, e intent.Environment) error
	Environments(ctx context.Context) ([]intent.Environment, error) // by project name, name
	Environment(ctx context.Context, id intent.EnvironmentID) (intent.Environment, error)
	// UpdateEnvironment writes name, project, source, description and icon.
	UpdateEnvironment(ctx context.Context, e intent.Environment) error
	// SetHalted also records who did it, when it was not so before.
	SetHalted(ctx context.Context, id intent.EnvironmentID, halted bool, by intent.Actor) error
	DeleteEnvironment(ctx context.Context, id intent.EnvironmentID) error
	// ClearEnvironment drops all but the environment, its settings and secrets.
	ClearEnvironment(ctx context.Context, id intent.EnvironmentID) error
	// SetSetting stores a converted value; nil goes back to the default.
	SetSetting(ctx context.Context, id intent.EnvironmentID, name string, value any) error
	// ProtectSettings stores converted values, which by decides from now on; what
	// it decided before and does not name any more keeps its value and is free.
	ProtectSettings(ctx context.Context, id intent.EnvironmentID, values map[string]any, by string) error
	// SetSecret stores sealed bytes under a name (webhook, git-username, git-password …); nil deletes it.
	SetSecret(ctx context.Context, id intent.EnvironmentID, name string, sealed []byte) error
	// Secrets gives all sealed secrets of an environment by name.
	Secrets(ctx context.Context, id intent.EnvironmentID) (map[string][]byte, error)
	// Own takes the environment for this process by a session-level advisory
	// lock. ok is false when another process has it; lost is closed when the
	// connection that holds the lock broke. release may be called once.
	Own(ctx context.Context, id intent.EnvironmentID) (release func(), lost <-chan struct{}, ok bool, err error)
}

// CompileStore keeps compile requests and their reports.
type CompileStore interface {
	EnqueueCompile(ctx context.Context, c intent.Compile) error
	// StartCompile takes the next request of an environment and marks it
	// started; nil when none waits. A compile that was started but not
	// completed (the server was killed) comes first and starts over, with the
	// revision that it had; then nothing is merged into it. Otherwise waiting
	// requests that are equal in (export, update-or-weaker, reinstall, variables)
	// and were requested before now are answered by this run: their Substitute is set,
	// and they get its started, completed, success and version.
	StartCompile(ctx context.Context, env intent.EnvironmentID, now time.Time) (*intent.Compile, error)
	// StartPreview records that a compile runs beside the queue; again changes nothing.
	StartPreview(ctx context.Context, c intent.Compile) error
	SetCompileRevision(ctx context.Context, id intent.CompileID, rev intent.Revision) error
	StartStage(ctx context.Context, s intent.Stage) error
	// AppendStage adds output to a running stage; the store keeps at most 1 MiB of each
	// stream (the beginning and the end, with a line that says what was left out).
	AppendStage(ctx context.Context, stage intent.CompileID, output, errOutput string) error
	// FinishStage ends a stage and sets its command, which is known by now.
	FinishStage(ctx context.Context, stage intent.CompileID, command string, returnCode int, at time.Time) error
	// FinishCompile ends a run and all requests that it answers, and records its notice with
	// that. Ending it again changes nothing.
	FinishCompile(ctx context.Context, id intent.CompileID, end intent.CompileEnd) error
	// Compile gives one report; that of the substitute's stages when there is one.
	Compile(ctx context.Context, id intent.CompileID) (intent.Compile, []intent.Stage, error)
	Compiles(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Compile], error)
	// OpenCompiles lists requests not completed, the running one included, oldest first.
	OpenCompiles(ctx context.Context, env intent.EnvironmentID) ([]intent.Compile, error)
	// LastCompile gives the newest completed compile that had a revision, nil when none.
	LastCompile(ctx context.Context, env intent.EnvironmentID) (*intent.Compile, error)
	// DeleteCompilesBefore drops reports that completed before a time; gives how many.
	DeleteCompilesBefore(ctx context.Context, t time.Time) (int, error)
}

// VersionStore keeps what compiles exported.
type VersionStore interface {
	// StoreVersion stores a candidate and gives its number, counting up from 1
	// in each environment. Storing for the same compile again gives the number
	// that it got the first time.
	StoreVersion(ctx context.Context, v intent.NewVersion, at time.Time) (int, error)
	// ReleaseVersion makes a version the intent: it becomes active, the one before retired,
	// older candidates skipped; resource states get the new intent hash, has_update where it
	// differs from what was deployed, undefined and blocked (transitively) where values are unknown,
	// orphaned for those that are gone. Conflict when already released or older than the active one, and,
	// with a *intent.HeldError, when it takes away too much (intent.Guard): then it is recorded as held.
	ReleaseVersion(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) error
	// ConfirmVersion releases a version that is held, as a person says. Conflict
	// when it is not held, when it takes away something protected, and when it takes
	// away something else than was recorded; what is found is recorded then.
	ConfirmVersion(ctx context.Context, env intent.EnvironmentID, number int, c intent.Confirmation) error
	// HeldVersions lists candidates that wait for a confirmation, newest first.
	HeldVersions(ctx context.Context, env intent.EnvironmentID) ([]intent.Version, error)
	Version(ctx context.Context, env intent.EnvironmentID, number int) (intent.Version, error)
	ActiveVersion(ctx context.Context, env intent.EnvironmentID) (*intent.Version, error) // nil: none yet
	Versions(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Version], error)
	DeleteVersion(ctx context.Context, env intent.EnvironmentID, number int) error // Conflict for the active one
	// VersionResources gives all resources of a version by id.
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
	VersionCode(
		ctx context.Context,
		env intent.EnvironmentID,
		number int,
	) ([]intent.ResourceCode, intent.PipConfig, error)
	// VersionOrigins gives NewVersion.Origins as it was stored.
	VersionOrigins(ctx context.Context, env intent.EnvironmentID, number int) ([]byte, error)
	// DiffVersions compares two versions; unchanged resources are left out.
	DiffVersions(ctx context.Context, env intent.EnvironmentID, from, to int) ([]intent.ResourceDiff, error)
	// PruneVersions deletes the oldest retired and skipped versions, so that at most keep remain.
	PruneVersions(ctx context.Context, env intent.EnvironmentID, keep int) (int, error)
	// Files by hex SHA-1 of their content.
	PutFile(ctx context.Context, content []byte) (string, error)
	File(ctx context.Context, sha1 string) ([]byte, error)
	MissingFiles(ctx context.Context, sha1s []string) ([]string, error)
}

// ResourceStore keeps the state of resources and what was done to them.
type ResourceStore interface {
	// States gives the state of every resource that the environment knows, orphans included, in no order.
	States(ctx context.Context, env intent.EnvironmentID) ([]intent.ResourceState, error)
	ResourceCounts(ctx context.Context, env intent.EnvironmentID) (map[intent.Status]int, error) // without orphans
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
	// Actions gives the newest actions of a resource, or of all when id is zero; kind may be empty.
	Actions(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ResourceID,
		kind intent.ActionKind,
		limit int,
	) ([]intent.Action, error)
	// StartActions records that these deployments begin: an action each, and is_deploying.
	StartActions(ctx context.Context, env intent.EnvironmentID, actions []intent.Action) error
	// SetAhead records what is about to be deployed without another word; what it recorded before is forgotten.
	// States has those of them as deploying whose action is in the log neither as begun nor as ended.
	SetAhead(ctx context.Context, env intent.EnvironmentID, tasks []intent.Ahead) error
	// FinishActions records their outcomes and the states that follow, facts included.
	FinishActions(ctx context.Context, env intent.EnvironmentID, done []FinishedAction) error
	// ResetDeploying ends actions that a killed server left open (status cancelled) and clears is_deploying. What
	// was being deployed counts as cut off from then on, unless that is to be forgotten.
	ResetDeploying(ctx context.Context, env intent.EnvironmentID, at time.Time, forget bool) (int, error)
	DeleteActionsBefore(ctx context.Context, env intent.EnvironmentID, t time.Time) (int, error)

	// Unpark frees resources that are parked, all of them when none is named; it gives which.
	Unpark(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) ([]intent.ResourceID, error)
	// SetDiscovered stores what was discovered, over what is there.
	SetDiscovered(ctx context.Context, env intent.EnvironmentID, found []intent.Discovered) error
	Discovered(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID) (intent.Discovered, error)
	DiscoveredList(
		ctx context.Context,
		env intent.EnvironmentID,
		q intent.ListQuery,
	) (intent.Page[intent.Discovered], error)
	// DeleteDiscovered forgets all of these; NotFound, and none forgotten, when one was not discovered.
	DeleteDiscovered(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) error
	// Drift lists what was found to be other than the intent.
	Drift(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Drift], error)
	// DeleteDriftBefore drops records that ended before a time.
	DeleteDriftBefore(ctx context.Context, env intent.EnvironmentID, t time.Time) (int, error)

	Agents(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Agent], error)
	// SetAgentPaused pauses one agent, or all known ones when name is empty.
	SetAgentPaused(ctx context.Context, env intent.EnvironmentID, name string, paused bool, by intent.Actor) error

	CreateDryRun(ctx context.Context, d intent.DryRun) error
	// SetDryRunVersion says what the commit of a dry run was compiled to. Conflict when it ended.
	SetDryRunVersion(ctx context.Context, env intent.EnvironmentID, id intent.ActionID, version, total int) error
	// EndDryRun ends one; Conflict when it ended before.
	EndDryRun(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ActionID,
		ending intent.DryRunEnding,
		reason string,
		behind map[intent.ResourceID]intent.ResourceID,
		at time.Time,
	) error
	// DryRuns lists those of a version, newest first; version 0: all.
	DryRuns(ctx context.Context, env intent.EnvironmentID, version int) ([]intent.DryRun, error)
	// OpenDryRuns lists those that did not end, oldest first.
	OpenDryRuns(ctx context.Context, env intent.EnvironmentID) ([]intent.DryRun, error)
	// GoneResources lists what one version has and another has not.
	GoneResources(ctx context.Context, env intent.EnvironmentID, from, to int) ([]intent.ResourceID, error)
	DryRun(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ActionID,
	) (intent.DryRun, []intent.ResourceDiff, error)

	SetParameter(ctx context.Context, env intent.EnvironmentID, p intent.Parameter) error
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
	// RequestFacts records that resources are to be asked for their facts.
	RequestFacts(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID, at time.Time) error
	// FactsDue lists resources with facts that expire, and those that the model waits for.
	FactsDue(ctx context.Context, env intent.EnvironmentID) ([]intent.FactsDue, error)
	// UnknownsKnown lists what the newest version did without, and that became known since a compile last began.
	UnknownsKnown(ctx context.Context, env intent.EnvironmentID) ([]intent.Unknown, error)
}

// GateStore keeps what people do to hold changes or to let them through.
type GateStore interface {
	AddOverride(ctx context.Context, env intent.EnvironmentID, o intent.Override) error
	// EndOverride ends one before its time; Conflict when it is over already.
	EndOverride(ctx context.Context, env intent.EnvironmentID, id uuid.UUID, by intent.Actor) error
	// Overrides lists the newest, also those that are over.
	Overrides(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.Override, error)
	Interventions(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.Intervention, error)
}

// DeliveryStore keeps the webhooks that were received.
type DeliveryStore interface {
	// RecordDeliveries records all of them or none; it gives, for each, the environments
	// that did not have it before. One that nobody took is not recorded.
	RecordDeliveries(ctx context.Context, deliveries []intent.Delivery) ([][]intent.EnvironmentID, error)
	// WaitingDeliveries gives the oldest that an environment has not looked at.
	WaitingDeliveries(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.Delivery, error)
	WaitingEnvironments(ctx context.Context) ([]intent.EnvironmentID, error)
	// FinishDeliveries says how those that wait ended; others stay as they are.
	FinishDeliveries(ctx context.Context, env intent.EnvironmentID, outcomes map[uuid.UUID]intent.DeliveryOutcome) error
	Deliveries(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Delivery], error)
	Delivery(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Delivery, error)
	DeleteDeliveriesBefore(ctx context.Context, env intent.EnvironmentID, t time.Time) (int, error)
	// HookSecrets gives the sealed webhook secrets of all environments, by name.
	HookSecrets(ctx context.Context) (map[intent.EnvironmentID]map[string][]byte, error)
	// SetModules records the repositories of the modules that a project uses; Modules gives all.
	SetModules(ctx context.Context, env intent.EnvironmentID, urls map[string]string) error
	Modules(ctx context.Context) (map[intent.EnvironmentID]map[string]string, error)
}

// ForgeStore keeps pull requests, and the work for forges.
type ForgeStore interface {
	// AskForge writes that a pull request is to be looked up; 0: all that are open.
	AskForge(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) error
	// TakeOutbox gives the next work that is due, to nobody else before until; nil
	// when none is. next is when the following is due, zero when none waits.
	TakeOutbox(ctx context.Context, now, until time.Time) (work *intent.Outbox, next time.Time, err error)
	// OutboxSent and OutboxFailed end an attempt. Newer work that took its place meanwhile stays.
	OutboxSent(ctx context.Context, w intent.Outbox, at time.Time) error
	OutboxFailed(ctx context.Context, w intent.Outbox, problem string, next time.Time, dead bool, at time.Time) error
	// DelayOutbox leaves the forge of an environment alone until a time.
	DelayOutbox(ctx context.Context, env intent.EnvironmentID, until time.Time) error
	Outbox(ctx context.Context, env intent.EnvironmentID, limit int) ([]intent.Outbox, error)
	// RetryOutbox gives dead work another chance; Conflict when it is not dead.
	RetryOutbox(ctx context.Context, env intent.EnvironmentID, id int64, at time.Time) error
	DeleteOutboxBefore(ctx context.Context, t time.Time) error
	// TellDeployment looks how far the active version is, and writes what its forge is to be told when that changed.
	TellDeployment(ctx context.Context, env intent.EnvironmentID, at time.Time) error

	PullRequests(ctx context.Context, env intent.EnvironmentID) ([]intent.PullRequest, error)
	PullRequest(ctx context.Context, env intent.EnvironmentID, number int) (intent.PullRequest, error)
	// PullOfDryRun gives the pull request whose preview a dry run is; nil for other dry runs.
	PullOfDryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) (*intent.PullRequest, error)
	// SavePull stores what a forge told: all but approval, preview and comment.
	// With comment, that is to be brought up to date.
	SavePull(ctx context.Context, p intent.PullRequest, comment bool, at time.Time) error
	// ApprovePull and StartPullPreview: Conflict when the pull request has another commit by now.
	ApprovePull(ctx context.Context, env intent.EnvironmentID, number int, commit string, by intent.Actor) error
	StartPullPreview(ctx context.Context, number int, d intent.DryRun) (before *intent.ActionID, err error)
	// StalePull gives the pull request whose preview was compared with another commit
	// than the one that is deployed; zero: none, or one is being computed, or a
	// version that was released after since is being deployed.
	StalePull(ctx context.Context, env intent.EnvironmentID, since time.Time) (number int, err error)
	SetPullComment(ctx context.Context, env intent.EnvironmentID, number int, id string) error
	// JudgeVersion tells why a version would be held; nil: it would not.
	JudgeVersion(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) (*intent.Hold, error)
}

// NotificationStore keeps what people should hear of.
type NotificationStore interface {
	Notifications(
		ctx context.Context,
		env intent.EnvironmentID,
		q intent.ListQuery,
	) (intent.Page[intent.Notification], error)
	Notification(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Notification, error)
	// MarkNotification changes what is not nil.
	MarkNotification(
		ctx context.Context,
		env intent.EnvironmentID,
		id uuid.UUID,
		read, cleared *bool,
	) (intent.Notification, error)
	MarkNotificationsRead(ctx context.Context, env intent.EnvironmentID) error
	UnreadNotifications(ctx context.Context, env intent.EnvironmentID) (int, error)
	DeleteNotificationsBefore(ctx context.Context, env intent.EnvironmentID, t time.Time) (int, error)
}

// FinishedAction is the end of an action together with the state that follows from it.
type FinishedAction = intent.FinishedAction

// Vault seals small secrets with a key that is not in the database. The
// context binds a sealed text to its place, so that it opens nowhere else.
type Vault interface {
	Seal(plain []byte, context string) ([]byte, error)
	Open(sealed []byte, context string) ([]byte, error)
}

// GitUse says that a source is in use, and the commits of it that are.
type GitUse struct {
	GitSource
	Commits []string
}

// GitSource is where to fetch from, with what the remote asks to see and how
// it proves itself. It is comparable: an equal one means the same.
type GitSource struct {
	URL      string
	Branch   string // branch, tag, commit, or semver:RANGE; empty: the default branch
	Username string
	Password string
	// Abbreviated: Branch may also be the beginning of a commit.
	Abbreviated bool

	SSHKey        string
	SSHPassphrase string
	KnownHosts    string
	AcceptNew     bool // take the key of an SSH server of which none is known
	Project       intent.ProjectID
	CABundle      string
	Proxy         string

	Depth      int    // commits of history to fetch; 0: all
	Only       string // the only branch to fetch; empty: all
	Submodules bool
	MaxFile    int64 // bytes that a file of a commit may have; 0: any
}

// GitPull is a pull request as Git sees it: the forge's references, and the
// commit that the head must be.
type GitPull struct{ Base, Head, HeadRef, MergeRef string }

// Step is what was run for a stage of a compile, fit to show: the command as a
// person would have typed it and what it printed, without secrets.
type Step struct {
	Command string
	Output  string
}

// Git mirrors repositories and checks commits out. It is safe for concurrent
// use; environments with the same URL share a mirror. Faults tell people what
// is wrong with the repository.
type Git interface {
	// Split takes credentials out of a URL and checks that it can be fetched from at all.
	Split(url string) (GitSource, error)
	// CheckBranch refuses what can never be a branch, tag, commit or range of versions.
	CheckBranch(branch string) error
	// Mirrored reports whether the repository was cloned before.
	Mirrored(s GitSource) bool
	// Tidy removes the mirrors that are of none of the sources and were not used
	// since a time, and never one that is being fetched; and what branches left
	// behind before that time, but for the commits in use.
	Tidy(ctx context.Context, used []GitUse, since time.Time) error
	// Fetch brings the mirror up to date and resolves the branch.
	Fetch(ctx context.Context, s GitSource) (intent.Revision, Step, error)
	// Tip gives the commit that a source points to now.
	Tip(ctx context.Context, s GitSource) (string, error)
	// Changed tells the paths that differ between two commits that were fetched,
	// as long as visit wants more. NotFound when one of them is not there.
	Changed(ctx context.Context, s GitSource, from, to string, visit func(path string) bool) error
	// Verify holds a commit that was fetched against a policy and tells who signed
	// it. One that may not be deployed is an *intent.Refusal.
	Verify(ctx context.Context, s GitSource, rev intent.Revision, policy intent.GitPolicy) (intent.Signer, error)
	// CheckSigners says what is wrong with a text of allowed signers.
	CheckSigners(text string) error
	// Checkout makes dir exactly the commit, but for the entries of the compiler's own.
	Checkout(ctx context.Context, s GitSource, commit, dir string) (Step, error)
	// MergePull gives the commit that merging a pull request would make; Conflict
	// when it does not merge, NotFound when its head is another by now.
	MergePull(ctx context.Context, s GitSource, p GitPull) (intent.Revision, Step, error)
	// Revert gives what taking a commit back changes in the branch, and the
	// commit that the branch has; Conflict when it cannot be taken back by itself.
	Revert(ctx context.Context, s GitSource, commit string) (tip string, changes []GitChange, err error)
	// Blame gives who wrote each line of a file, as it was at a commit that was
	// fetched. NotFound when the commit has no such file.
	Blame(ctx context.Context, s GitSource, commit, path string) (provenance.Blame, error)
}

// Watcher notices that sources move, by polling and by watching local
// repositories. Moves go to Control.SourceMoved.
type Watcher interface {
	// Watch begins to watch, or changes what is watched. seen is the commit
	// that was compiled last; empty when none was.
	Watch(env intent.EnvironmentID, s GitSource, interval time.Duration, seen string)
	Forget(env intent.EnvironmentID)
	// Heard tells of a webhook that proved where it comes from, and of the commits
	// that it, and a look at the repository, named. While they arrive polls may be rarer.
	Heard(env intent.EnvironmentID, commits []string)
}

// BuildJob is one compile as the builder sees it.
type BuildJob struct {
	Environment intent.Environment
	Compile     intent.Compile
	Dir         string // of the checkout
	ProjectDir  string // folder with project.yml: Dir or one below it
	// Parameters and facts of the environment, which plug-ins may ask for.
	Parameters []intent.Parameter
	// Credentials of the environment's repository, for modules in repositories
	// of the same host.
	Credentials GitSource
	// Modules is told the repositories of the modules that the project uses, by
	// name of module; nil when nobody wants to know.
	Modules func(urls map[string]string)
	// Preview: it compiles in the environment's preview folder, beside its own compiles.
	Preview bool
}

// Output receives what a stage prints, as it is printed.
type Output func(stdout, stderr string)

// Builder makes the compiler's virtual environment and runs the compiler, as
// a process without the server's credentials. An error is the reason in
// words; details went to the output.
type Builder interface {
	// Venv makes the virtual environment of the environment's compiler, if needed.
	Venv(ctx context.Context, job BuildJob, out Output) (command string, err error)
	// Install puts the project's requirements into it, if they changed or an update is due.
	Install(ctx context.Context, job BuildJob, out Output) (command string, err error)
	// Compile runs the compiler. A model with errors gives a Document whose Success is false, and no error.
	Compile(ctx context.Context, job BuildJob, out Output) (doc *export.Document, command string, err error)
}

// Deployer deploys one environment. All methods return at once.
type Deployer interface {
	Start(ctx context.Context) error
	Stop()
	VersionReleased(number int)
	// Deploy tries again what is not as intended, or with full everything. No
	// agents and no resources means all.
	Deploy(full bool, agents []string, resources []intent.ResourceID)
	SetPaused(agent string, paused bool) // empty: every agent
	// Unpark tells that a person freed resources; those that are not as intended are tried at once.
	Unpark(resources []intent.ResourceID)
	// Changed tells that settings or the halted mark changed.
	Changed(e intent.Environment)
	// DryRun takes up a dry run that the record has; CancelDryRun drops what it still has to do.
	DryRun(id intent.ActionID)
	CancelDryRun(id intent.ActionID)
	// RefreshFacts asks resources for their facts.
	RefreshFacts(ids []intent.ResourceID)
	// Executors tells what runs and what lies on disk; looking takes tens of milliseconds.
	Executors() intent.Executors
}

// Deployers makes the deployer of an environment.
type Deployers interface {
	New(e intent.Environment) (Deployer, error)
}

// Workspace is the environments' folders on disk.
type Workspace interface {
	// Prepare makes what has to be there for an environment.
	Prepare(e intent.Environment) error
	// CompilerDir is the folder of the checkout.
	CompilerDir(env intent.EnvironmentID) string
	// PreviewDir is the folder of the checkout of previews.
	PreviewDir(env intent.EnvironmentID) string
	// RemovePreview removes the folder of previews, unless one used it since a
	// time. None runs meanwhile.
	RemovePreview(env intent.EnvironmentID, since time.Time) error
	// ResetCompiler removes checkout and virtual environment of the compiler.
	ResetCompiler(env intent.EnvironmentID) error
	// Shown makes the paths in a command short, for reports: those below the
	// environment's folder are relative to it.
	Shown(env intent.EnvironmentID, command string) string
	// Remove deletes all of an environment's files but its logs.
	Remove(env intent.EnvironmentID) error
}
