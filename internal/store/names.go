package store

// statementTexts names every statement of sql/*.sql.
type statementTexts struct {
	// action.sql
	ActionStart, ActionFinish, StateDeploying, StateFinish, ActionCancelOpen string
	StateNotDeploying, ActionDelete, ActionList, ResourceLogRows             string
	// agent.sql
	AgentRows, AgentPause, AgentPauseAll string
	// compile.sql
	CompileEnqueue, CompileStartOver, CompileStartNext, CompileMerge, CompileRevision string
	CompileFinish, CompileGet, CompileRows, CompileOpen, CompileLast                  string
	CompileDelete, StageStart, StageGrow, StageOutputAdd, StageOutputDrop             string
	StageFinish, StageList, StageOutputList                                           string
	// dryrun.sql
	DryRunCreate, DryRunGet, DryRunLock, DryRunList, DryRunAdd string
	DryRunCount, DryRunDiffs                                   string
	// environment.sql
	EnvironmentCreate, EnvironmentList, EnvironmentGet, EnvironmentsOf, EnvironmentExists string
	EnvironmentLock, EnvironmentUpdate, EnvironmentHalt, EnvironmentDelete, ClearActions  string
	ClearStates, ClearVersions, ClearContents, ClearResources, ClearCompiles              string
	ClearAgents, ClearParameters, SettingSet, SettingDelete, SettingsProtect, SecretSet   string
	SecretDelete, SecretList                                                              string
	// migration.sql
	Ping, ServerVersion, MigrationLock, MigrationTable, MigrationList string
	MigrationDone                                                     string
	// own.sql
	OwnTry, OwnRelease, OwnReleaseAll, OwnedElsewhere string
	// parameter.sql
	ParameterSet, ParameterGet, ParameterRows, FactRows, ParameterDelete string
	// project.sql
	ProjectCreate, ProjectList, ProjectGet, ProjectRename, ProjectDelete string
	// release.sql
	VersionRetire, VersionSkip, VersionActivate, VersionEdges, ReleaseStates string
	ReleaseNewStates, ReleaseOrphans, ReleaseBlocked, ReleaseAgents          string
	// resource.sql
	StateList, StateCounts, ResourceRows, ResourceDetail, ResourceHistoryRows string
	// version.sql
	VersionGet, VersionActive, VersionNewest, VersionRows, VersionOfCompile, VersionCreate          string
	VersionResources, VersionResourceRows, VersionResource, VersionCode, VersionOrigins, VersionOld string
	VersionDelete, OrphanCollect, ContentCollect, ResourceCollect, ContentFind                      string
	KeysTake, CodeLockShared, CodeLockAlone, CodeStore, CodeCollect                                 string
	DiffContents, FilePut, FileGet, FileMissing                                                     string
}
