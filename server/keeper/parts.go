package keeper

import (
	"context"
	"time"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/build"
)

// Git mirrors repositories and checks commits out; *gitsync.Syncer does it.
type Git interface {
	Mirrored(src gitsync.Source) bool
	Fetch(ctx context.Context, src gitsync.Source) (intent.Revision, gitsync.Report, error)
	Tip(ctx context.Context, src gitsync.Source) (string, error)
	Changed(ctx context.Context, src gitsync.Source, from, to string, visit func(path string) bool) error
	Verify(
		ctx context.Context,
		src gitsync.Source,
		rev intent.Revision,
		policy intent.GitPolicy,
	) (intent.Signer, error)
	Checkout(ctx context.Context, src gitsync.Source, commit, dir string) (gitsync.Report, error)
	MergePull(
		ctx context.Context,
		src gitsync.Source,
		p gitsync.PullRequest,
	) (intent.Revision, gitsync.Report, error)
	Revert(ctx context.Context, src gitsync.Source, commit string) (string, []gitsync.Change, error)
	Blame(ctx context.Context, src gitsync.Source, commit, path string) (provenance.Blame, error)
	Tidy(ctx context.Context, used []gitsync.Use, since time.Time) error
}

// Watcher notices that sources move; *gitsync.Watcher does it.
type Watcher interface {
	Start(ctx context.Context) error
	Stop()
	Watch(env intent.EnvironmentID, src gitsync.Source, interval time.Duration, seen string)
	Forget(env intent.EnvironmentID)
	// Heard says that webhooks arrived which named these commits: while they do,
	// the repository is polled more rarely.
	Heard(env intent.EnvironmentID, commits []string)
}

// Builder makes the compiler's virtual environment and runs the compiler, as a
// process without the server's credentials; *build.Builder does it. An error is
// the reason in words; details went to the output.
type Builder interface {
	// Venv makes the virtual environment of the environment's compiler, if needed.
	Venv(ctx context.Context, job build.Job, out build.Output) (command string, err error)
	// Install puts the project's requirements into it, if they changed or an update is due.
	Install(ctx context.Context, job build.Job, out build.Output) (command string, err error)
	// Compile runs the compiler. A model with errors gives a Document whose Success is false, and no error.
	Compile(ctx context.Context, job build.Job, out build.Output) (doc *export.Document, command string, err error)
	// Forget ends what runs in the folders of an environment's compiler: they are about to go.
	Forget(env intent.EnvironmentID)
}

// Deployer deploys one environment. All methods but Stop return at once.
type Deployer interface {
	Start(ctx context.Context) error
	Stop()
	// VersionReleased says that a version is the intent now.
	VersionReleased(number int)
	// Deploy tries again what is not as intended, or with full everything. No
	// agents and no resources means all.
	Deploy(full bool, agents []string, resources []intent.ResourceID)
	// SetPaused pauses or resumes an agent; an empty name means every agent.
	SetPaused(agent string, paused bool)
	// Unpark says that a person freed resources; those that are not as intended are tried at once.
	Unpark(resources []intent.ResourceID)
	// Changed says that settings, secrets or the halted mark changed.
	Changed(e intent.Environment)
	// DryRun takes up a dry run that the record has; CancelDryRun drops what it still has to do.
	DryRun(id intent.ActionID)
	CancelDryRun(id intent.ActionID)
	// RefreshFacts asks resources for their facts.
	RefreshFacts(ids []intent.ResourceID)
	// Executors reports what runs and what lies on disk; looking takes tens of milliseconds.
	Executors() intent.Executors
}
