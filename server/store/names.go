package store

// statementTexts has a field for every statement in sql/*.sql.
type statementTexts struct {
	// action.sql
	ActionStart, ActionFinish, StateDeploying, AheadSet, AheadForget, StateFinish, ActionCancelOpen string
	StateNotDeploying, StateCutOff, ActionDelete, ActionList, ResourceLogRows, StateUnpark          string
	// agent.sql
	AgentRows, AgentPause, AgentPauseAll, AgentBreaker string
	// compile.sql
	CompileEnqueue, CompileStartOver, CompileStartNext, CompileMerge, CompileRevision string
	CompileFinish, CompileGet, CompileRows, CompileOpen, CompileLast, CompilePreview  string
	CompileDelete, StageStart, StageGrow, StageOutputAdd, StageOutputDrop             string
	StageFinish, StageList, StageOutputList                                           string
	// delivery.sql
	DeliveryRecord, DeliveryWaiting, DeliveryWaitingFor, DeliveryFinish, DeliveryGet, DeliveryRows string
	OutcomeDelete, DeliveryCollect, ClearDeliveries, HookSecrets, ModulesSet, ModulesList          string
	// discovered.sql
	DiscoveredSet, DiscoveredGet, DiscoveredRows, DiscoveredDelete, ClearDiscovered string
	// drift.sql
	DriftOpen, DriftSeen, DriftHeal, DriftGone, DriftDelete, DriftRows string
	// dryrun.sql
	DryRunCreate, DryRunGet, DryRunLock, DryRunList, DryRunAdd                                             string
	DryRunCount, DryRunDiffs, DryRunKinds, DryRunOpen, DryRunVersion, DryRunBehind, DryRunEnd, VersionGone string
	// environment.sql
	EnvironmentCreate, EnvironmentList, EnvironmentGet, EnvironmentsOf, EnvironmentExists                                                                                string
	EnvironmentLock, EnvironmentUpdate, EnvironmentHalt, EnvironmentDelete, ClearActions                                                                                 string
	ClearStates, ClearVersions, ClearContents, ClearResources, ClearCompiles                                                                                             string
	ClearDryRuns, ClearFactRequests, ClearAgents, ClearParameters, ClearDrift, ClearNotifications, ClearOverrides, SettingSet, SettingDelete, SettingsProtect, SecretSet string
	SecretDelete, SecretList                                                                                                                                             string
	// forge.sql
	OutboxAdd, OutboxCompile, OutboxPullOf, OutboxTake, OutboxNext, OutboxSent, OutboxFailed                          string
	OutboxDelay, OutboxList, OutboxRetry, OutboxDelete, ClearOutbox, ForgeTold                                        string
	DeployToldGet, DeployToldSet, ClearDeployTold                                                                     string
	PullList, PullGet, PullLock, PullOfDryRun, PullSave, PullApprove, PullPreview, PullStale, PullComment, ClearPulls string
	// gate.sql
	OverrideAdd, OverrideEnd, OverrideGet, OverrideList, InterventionAdd, InterventionList string
	// git.sql
	GitStateSet, GitStateGet, GitAccept, GitAcceptance, GitCommits                                          string
	GitBlockAdd, GitBlockEnd, GitBlockGet, GitBlocks, GitUsed, RollbackTarget, RollbackPending, VersionCopy string
	// hold.sql
	Removal, RemovalLive, VersionHold, HeldVersions string
	// migration.sql
	Ping, ServerVersion, MigrationLock, MigrationTable, MigrationList string
	MigrationDone                                                     string
	// notification.sql
	NotificationLock, NotificationAgain, NotificationAdd, NotificationGet, NotificationMark, NotificationMarkAll string
	NotificationUnread, NotificationDelete, NotificationRows                                                     string
	// own.sql
	OwnTry, OwnRelease, OwnReleaseAll, OwnedElsewhere            string
	OwnPatience, OwnTakeOver, OwnNext, OwnWriting, OwnGeneration string
	// parameter.sql
	ParameterSet, ParameterGet, ParameterRows, FactRows, ParameterDelete      string
	FactRequestAdd, FactRequestList, FactRequestDone, FactsDue, UnknownsKnown string
	// project.sql
	ProjectCreate, ProjectList, ProjectGet, ProjectRename, ProjectDelete string
	ProjectSecretSet, ProjectSecretDelete, ProjectSecretList             string
	ProjectKnownHosts, ProjectKnownHostsSet, ProjectKnownHostsAdd        string
	// promotion.sql
	Followed, FollowedLock, FollowRename, PromotionWaiting, PromotionLast, PromotionList, PromotionAdd, PromotionJudged string
	PromotionApprove, PromotionPromote, PromotionSupersede, PromotionCompiled                                           string
	PromotionPauseSet, PromotionPauseEnd, PromotionPauseGet, ClearPromotions                                            string
	// release.sql
	VersionRetire, VersionSkip, VersionActivate, VersionEdges, ReleaseStates string
	ReleaseOrphans, ReleaseBlocked, ReleaseAgents                            string
	ReleaseDrift                                                             string
	// resource.sql
	StateList, StateCounts, ResourceRows, ResourceCounted, ResourceDetail, ResourceHistoryRows string
	// version.sql
	VersionGet, VersionActive, VersionNewest, VersionRows, VersionOfCompile, VersionCreate                                        string
	VersionResources, VersionChanges, VersionTotal, VersionResourceRows, VersionResource, VersionCode, VersionOrigins, VersionOld string
	VersionDelete, OrphanCollect, ContentCollect, ResourceCollect, ContentFind                                                    string
	KeysTake, CodeLockShared, CodeLockAlone, CodeStore, CodeCollect                                                               string
	DiffContents, FilePut, FileGet, FileMissing                                                                                   string
}
