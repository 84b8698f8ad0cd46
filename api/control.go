package api

import (
	"context"

	"ordain.dev/ordain/internal/control"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

// Control is the part of the server's verbs that the API speaks to;
// *control.Control has it. Faults decide the status codes.
type Control interface {
	Ping(ctx context.Context) error
	ProgramVersion() string

	CreateProject(ctx context.Context, p intent.Project) (intent.Project, error)
	Projects(ctx context.Context) ([]intent.Project, error)
	Project(ctx context.Context, id intent.ProjectID) (intent.Project, error)
	RenameProject(ctx context.Context, id intent.ProjectID, name string) error
	DeleteProject(ctx context.Context, id intent.ProjectID) error

	CreateEnvironment(ctx context.Context, n control.NewEnvironment) (intent.Environment, error)
	Environments(ctx context.Context) ([]intent.Environment, error)
	Environment(ctx context.Context, id intent.EnvironmentID) (intent.Environment, error)
	UpdateEnvironment(ctx context.Context, e intent.Environment) (intent.Environment, error)
	DeleteEnvironment(ctx context.Context, id intent.EnvironmentID) error
	ClearEnvironment(ctx context.Context, id intent.EnvironmentID) error
	Halt(ctx context.Context, id intent.EnvironmentID) error
	Resume(ctx context.Context, id intent.EnvironmentID) error
	SetSecret(ctx context.Context, id intent.EnvironmentID, name, value string) error
	SetSetting(ctx context.Context, id intent.EnvironmentID, name string, value any) error
	ProtectSettings(ctx context.Context, id intent.EnvironmentID, settings map[string]any, by string) error
	DeleteSetting(ctx context.Context, id intent.EnvironmentID, name string) error

	RequestCompile(ctx context.Context, env intent.EnvironmentID, r control.CompileRequest) (intent.CompileID, string, error)
	IsCompiling(ctx context.Context, env intent.EnvironmentID) (bool, error)
	CompileQueue(ctx context.Context, env intent.EnvironmentID) ([]intent.Compile, error)
	Compiles(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Compile], error)
	Compile(ctx context.Context, id intent.CompileID) (intent.Compile, []intent.Stage, error)

	Release(ctx context.Context, env intent.EnvironmentID, number int) error
	Versions(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Version], error)
	Version(ctx context.Context, env intent.EnvironmentID, number int) (intent.Version, error)
	ActiveVersion(ctx context.Context, env intent.EnvironmentID) (*intent.Version, error)
	DeleteVersion(ctx context.Context, env intent.EnvironmentID, number int) error
	VersionResources(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.Resource, error)
	VersionResourcePage(ctx context.Context, env intent.EnvironmentID, number int, q intent.ListQuery) (intent.Page[intent.Resource], error)
	VersionResource(ctx context.Context, env intent.EnvironmentID, number int, id intent.ResourceID) (intent.Resource, error)
	Explain(ctx context.Context, env intent.EnvironmentID, number int, id intent.ResourceID) (provenance.Explanation, error)
	DiffVersions(ctx context.Context, env intent.EnvironmentID, from, to int) ([]intent.ResourceDiff, error)

	StartDryRun(ctx context.Context, env intent.EnvironmentID, number int) (intent.ActionID, error)
	DryRuns(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.DryRun, error)
	DryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) (intent.DryRun, []intent.ResourceDiff, error)

	Deploy(ctx context.Context, env intent.EnvironmentID, full bool, agents []string) ([]string, error)
	PauseAgent(ctx context.Context, env intent.EnvironmentID, name string, paused bool) error
	Agents(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Agent], error)

	ResourceCounts(ctx context.Context, env intent.EnvironmentID) (map[intent.Status]int, error)
	Resources(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.ResourceRow], error)
	Resource(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID) (intent.ResourceDetail, error)
	ResourceHistory(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, q intent.ListQuery) (intent.Page[intent.ResourceHistory], error)
	ResourceLogs(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, q intent.ListQuery) (intent.Page[intent.ResourceLog], error)
	Actions(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, kind intent.ActionKind, limit int) ([]intent.Action, error)

	SetParameter(ctx context.Context, env intent.EnvironmentID, p intent.Parameter) error
	Parameters(ctx context.Context, env intent.EnvironmentID, facts bool, q intent.ListQuery) (intent.Page[intent.Parameter], error)
	Parameter(ctx context.Context, env intent.EnvironmentID, name string, resource intent.ResourceID) (intent.Parameter, error)
	DeleteParameter(ctx context.Context, env intent.EnvironmentID, name string, resource intent.ResourceID) error

	PutFile(ctx context.Context, content []byte) (string, error)
	File(ctx context.Context, sha1 string) ([]byte, error)
	MissingFiles(ctx context.Context, sha1s []string) ([]string, error)
}

var _ Control = (*control.Control)(nil)
