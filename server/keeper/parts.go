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

// Git mirrors repositories and checks out commits; *gitsync.Syncer implements it.
type Git interface {
	// Has reports whether the mirror has a commit; an empty one asks for the mirror alone.
	Has(src gitsync.Source, commit string) bool
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

// Watcher notices that sources move; *gitsync.Watcher implements it.
type Watcher interface {
	Start(ctx context.Context) error
	Stop()
	Watch(env intent.EnvironmentID, src gitsync.Source, interval time.Duration)
	Forget(env intent.EnvironmentID)
	// Heard reports that webhooks arrived which named these commits. While webhooks
	// arrive, the repository is polled less often.
	Heard(env intent.EnvironmentID, commits []string)
}

// Builder makes the compiler's virtual environment and runs the compiler, as a
// process without the server's credentials; *build.Builder implements it. Errors are
// short; the details are in the output.
type Builder interface {
	// Venv makes the virtual environment of the compiler, if needed.
	Venv(ctx context.Context, job build.Job, out build.Output) (command string, err error)
	// Install installs the project's requirements there, if they changed or an update is due.
	Install(ctx context.Context, job build.Job, out build.Output) (command string, err error)
	// Compile runs the compiler. For a model with errors it returns a Document whose Success is false, and no error.
	Compile(ctx context.Context, job build.Job, out build.Output) (doc *export.Document, command string, err error)
	// Forget ends processes in the folders of an environment's compiler, before the folders are removed.
	Forget(env intent.EnvironmentID)
}

// Deployer deploys one environment. All methods but Stop and Wait return at once.
type Deployer interface {
	Start(ctx context.Context) error
	Stop()
	// VersionReleased reports that a version has become the intent.
	VersionReleased(number int)
	// Deploy carries out a request, and deletes it from the record when all of it was deployed.
	Deploy(r intent.Request, what intent.DeployRequest)
	// Wait returns when nothing is under way, or with the error of ctx.
	Wait(ctx context.Context) error
	// SetPaused pauses or resumes an agent; an empty name means every agent.
	SetPaused(agent string, paused bool)
	// Unpark reports that a person unparked resources; those that are not as intended are retried at once.
	Unpark(resources []intent.ResourceID)
	// Changed reports that settings, secrets or the halted mark changed.
	Changed(e intent.Environment)
	// DryRun starts or continues a recorded dry run; CancelDryRun drops its remaining work.
	DryRun(id intent.ActionID)
	CancelDryRun(id intent.ActionID)
	// RefreshFacts asks resources for their facts.
	RefreshFacts(ids []intent.ResourceID)
	// RemoveVenvs removes the virtual environments of executors: now, or when the tasks in them have ended.
	RemoveVenvs()
	// Executors reports on processes and files of executors; it takes tens of milliseconds.
	Executors() intent.Executors
	// Queue reports what runs and what waits.
	Queue(ctx context.Context, q intent.QueueQuestion) intent.Queue
}
