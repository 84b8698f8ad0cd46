package control

import (
	"context"
	"encoding/json"
	"time"

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
	// Ping tells whether the database answers.
	Ping(ctx context.Context) error
}

// ProjectStore keeps projects.
type ProjectStore interface {
	CreateProject(ctx context.Context, p intent.Project) error
	Projects(ctx context.Context) ([]intent.Project, error) // by name
	Project(ctx context.Context, id intent.ProjectID) (intent.Project, error)
	RenameProject(ctx context.Context, id intent.ProjectID, name string) error
	DeleteProject(ctx context.Context, id intent.ProjectID) error // with all that belongs to it
}

// EnvironmentStore keeps environments, their settings and their secrets.
type EnvironmentStore interface {
	CreateEnvironment(ctx context.Context, e intent.Environment) error
	Environments(ctx context.Context) ([]intent.Environment, error) // by project name, name
	Environment(ctx context.Context, id intent.EnvironmentID) (intent.Environment, error)
	// UpdateEnvironment writes name, project, source, description and icon.
	UpdateEnvironment(ctx context.Context, e intent.Environment) error
	SetHalted(ctx context.Context, id intent.EnvironmentID, halted bool) error
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
	SetCompileRevision(ctx context.Context, id intent.CompileID, rev intent.Revision) error
	StartStage(ctx context.Context, s intent.Stage) error
	// AppendStage adds output to a running stage; the store keeps at most 1 MiB of each
	// stream (the beginning and the end, with a line that says what was left out).
	AppendStage(ctx context.Context, stage intent.CompileID, output, errOutput string) error
	// FinishStage ends a stage and sets its command, which is known by now.
	FinishStage(ctx context.Context, stage intent.CompileID, command string, returnCode int, at time.Time) error
	FinishCompile(ctx context.Context, id intent.CompileID, success bool, version *int, diagnostics json.RawMessage, at time.Time) error
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
	// orphaned for those that are gone. Conflict when already released or older than the active one.
	ReleaseVersion(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) error
	Version(ctx context.Context, env intent.EnvironmentID, number int) (intent.Version, error)
	ActiveVersion(ctx context.Context, env intent.EnvironmentID) (*intent.Version, error) // nil: none yet
	Versions(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Version], error)
	DeleteVersion(ctx context.Context, env intent.EnvironmentID, number int) error // Conflict for the active one
	// VersionResources gives all resources of a version by id.
	VersionResources(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.Resource, error)
	VersionResourcePage(ctx context.Context, env intent.EnvironmentID, number int, q intent.ListQuery) (intent.Page[intent.Resource], error)
	VersionResource(ctx context.Context, env intent.EnvironmentID, number int, id intent.ResourceID) (intent.Resource, error)
	VersionCode(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.ResourceCode, intent.PipConfig, error)
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
	// States gives the state of every resource that the environment knows, orphans included, by id.
	States(ctx context.Context, env intent.EnvironmentID) ([]intent.ResourceState, error)
	ResourceCounts(ctx context.Context, env intent.EnvironmentID) (map[intent.Status]int, error) // without orphans
	Resources(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.ResourceRow], error)
	Resource(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID) (intent.ResourceDetail, error)
	ResourceHistory(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, q intent.ListQuery) (intent.Page[intent.ResourceHistory], error)
	ResourceLogs(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, q intent.ListQuery) (intent.Page[intent.ResourceLog], error)
	// Actions gives the newest actions of a resource, or of all when id is zero; kind may be empty.
	Actions(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, kind intent.ActionKind, limit int) ([]intent.Action, error)
	// StartActions records that these deployments begin: an action each, and is_deploying.
	StartActions(ctx context.Context, env intent.EnvironmentID, actions []intent.Action) error
	// FinishActions records their outcomes and the states that follow, facts included.
	FinishActions(ctx context.Context, env intent.EnvironmentID, done []FinishedAction) error
	// ResetDeploying ends actions that a killed server left open (status cancelled) and clears is_deploying.
	ResetDeploying(ctx context.Context, env intent.EnvironmentID, at time.Time) (int, error)
	DeleteActionsBefore(ctx context.Context, env intent.EnvironmentID, t time.Time) (int, error)

	Agents(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Agent], error)
	// SetAgentPaused pauses one agent, or all known ones when name is empty.
	SetAgentPaused(ctx context.Context, env intent.EnvironmentID, name string, paused bool) error

	CreateDryRun(ctx context.Context, d intent.DryRun) error
	// AddDryRunDiffs stores results; Todo falls by their number. A resource counts once.
	AddDryRunDiffs(ctx context.Context, env intent.EnvironmentID, id intent.ActionID, diffs []intent.ResourceDiff) error
	DryRuns(ctx context.Context, env intent.EnvironmentID, version int) ([]intent.DryRun, error)
	DryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) (intent.DryRun, []intent.ResourceDiff, error)

	SetParameter(ctx context.Context, env intent.EnvironmentID, p intent.Parameter) error
	Parameters(ctx context.Context, env intent.EnvironmentID, facts bool, q intent.ListQuery) (intent.Page[intent.Parameter], error)
	Parameter(ctx context.Context, env intent.EnvironmentID, name string, resource intent.ResourceID) (intent.Parameter, error)
	DeleteParameter(ctx context.Context, env intent.EnvironmentID, name string, resource intent.ResourceID) error
}

// FinishedAction is the end of an action together with the state that follows from it.
type FinishedAction = intent.FinishedAction

// Vault seals small secrets with a key that is not in the database. The
// context binds a sealed text to its place, so that it opens nowhere else.
type Vault interface {
	Seal(plain []byte, context string) ([]byte, error)
	Open(sealed []byte, context string) ([]byte, error)
}

// GitSource is where to fetch from, with what the remote asks to see.
type GitSource struct {
	URL      string
	Branch   string
	Username string
	Password string
}

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
	// Mirrored reports whether the repository was cloned before.
	Mirrored(url string) bool
	// Fetch brings the mirror up to date and resolves the branch.
	Fetch(ctx context.Context, s GitSource) (intent.Revision, Step, error)
	// Checkout makes dir exactly the commit, but for the entries of the compiler's own.
	Checkout(ctx context.Context, s GitSource, commit, dir string) (Step, error)
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
	// Changed tells that settings or the halted mark changed.
	Changed(e intent.Environment)
	DryRun(id intent.ActionID, version int)
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
	// ResetCompiler removes checkout and virtual environment of the compiler.
	ResetCompiler(env intent.EnvironmentID) error
	// Shown makes the paths in a command short, for reports: those below the
	// environment's folder are relative to it.
	Shown(env intent.EnvironmentID, command string) string
	// Remove deletes all of an environment's files but its logs.
	Remove(env intent.EnvironmentID) error
}
