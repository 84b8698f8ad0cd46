package store

// statementTexts has a field for every statement in sql/*.sql.
type statementTexts struct {
	// action.sql
	ActionStart, ActionFinish, StateDeploying, AheadSet, AheadForget, StateFinish string
	ActionCancelOpen, StateNotDeploying, StateCutOff, ActionDelete, ActionList    string
	ResourceLogRows, StateUnpark, StateAnyParked, ActionRecorded                  string
	// actionsearch.sql
	ActionsBefore, ActionsAfter, ActionsOfRequirements, EnvironmentOwners, ServerVersionText string
	// log.sql
	LogBefore, LogAfter, LogBeforeOf, LogAfterOf string
	// orphan.sql
	OrphanRows string
	// audit.sql
	AuditAdd, AuditRows, AuditAfter, AuditRetention, AuditDelete string
	SettingChanges, SettingsSet                                  string
	// agent.sql
	AgentRows, AgentHealth, AgentPause, AgentPauseAll, AgentBreaker, AgentUnmanaged string
	// agentcommand.sql
	CommandAdd, CommandState, CommandWaiting, CommandClaim, CommandClaimCancelled, CommandAnswer string
	CommandAnswers, CommandUnfinished, CommandCancel, CommandEndLate, CommandFinish              string
	ClearCommands, ContentLacking, ContentAdd, ContentPartAdd, ContentSize, ContentPart          string
	ContentForget, CommandUnclaim                                                                string
	// bus.sql
	BusGet, BusSet string
	// cluster.sql
	ClusterRows, ClusterAdd, ClusterWant, ClusterSettle, ClusterProblem, ClusterPause         string
	ClusterMayDelete, ClusterRetry, ClusterNoticed, ClusterBusy, ClustersOf, ClusterUsing     string
	ClusterLive, ClearClusters, ClearLoans, VersionClustersAdd, VersionClustersCopy           string
	VersionClusters, VersionClustersActive, ClusterSecretSet, ClusterSecrets                  string
	ClusterSecretsDelete, ClusterNodes, ClusterNodePlan, ClusterNodeForget, ClusterNodeSettle string
	ClusterTenant, PoolLoans, PoolLend, PoolLock                                              string
	// clusterentity.sql
	ClusterEntityNewest, ClusterEntityVersions, ClusterEntityGet, ClusterEntityPinned       string
	ClusterEntityStamp, ClusterEntityLock, ClusterEntityCount, ClusterEntityAdd             string
	ClusterEntityDeleteVersion, ClusterEntityProjects, ClusterEntityUsed, ClusterTenantList string
	ClusterTenantLock, ClusterTenantSet                                                     string
	// clusterjob.sql
	ClusterJobAdd, ClusterJobRows, ClusterJobGet, ClusterJobEnd, ClusterJobLock, ClusterJobOpen   string
	ClusterJobDrop, ClusterTaskGroupAdd, ClusterTaskRows, ClusterJobLast, ClusterTaskOf           string
	ClusterTaskTake, ClusterNodeBegun, ClusterTaskRenew, ClusterTaskOutput, ClusterTaskJobLock    string
	ClusterTaskEnd, ClusterTaskUnlock, ClusterTaskGroupDone                                       string
	ClusterNodeEnd, ClusterNodeFacts, PoolReturn, ClusterTaskLate, ClusterProjectsReady           string
	ClusterQueues, ClusterTaskAgain, ClusterTaskGroupAgain, ClusterTaskGiveBack, ClusterJobForget string
	ClusterForget                                                                                 string
	// clusterresource.sql
	ClusterResourceLock, ClusterContentLock, ClusterResourceUse, ClusterResourceNumber        string
	ClusterResourceAdd, ClusterResourceRows, ClusterResourceUnslate, ClusterResourceSlate     string
	ClusterResourceRetire, ClusterResourceEnliven, ClusterResourceDelete, ClusterResourceLive string
	ClusterContentLive, ClusterContentsUsed                                                   string
	// provisioner.sql
	ProvisionerTokenAdd, ProvisionerTokens, ProvisionerTokenUse, ProvisionerTokenRevoke string
	ProvisionerTokensWaiting, ProvisionerTokenForget, ProvisionerJoin, ProvisionerRenew string
	ProvisionerSeen, ProvisionerRevoke, Provisioners, ProvisionerNamed                  string
	// compile.sql
	CompileEnqueue, CompileStartOver, CompileStartNext, CompileMerge, CompileRevision  string
	CompileFinish, CompileGet, CompileRows, CompileOpen, CompileLast, CompilePreview   string
	CompileCancelWaiting, CompileCancel, CompileElsewhere                              string
	CompileDelete, StageStart, StageGrow, StageOutputAdd, StageOutputDrop, StageFinish string
	StageList, StageOutputList                                                         string
	// clusterstep.sql
	ClusterSteps, ClusterStepEdges, ClusterStepGroups, ClusterTaskNodes, ClusterTaskCells string
	ClusterTaskCount, ClusterTaskPage, ClusterTaskNeeds                                   string
	// comparison.sql
	ComparisonVersions, ComparisonContents, ComparisonDryRun, ComparisonDryRunDiffs string
	ComparisonDryRunChange, VersionActiveBefore, FileSizes, FileContents            string
	// delivery.sql
	DeliveryRecord, DeliveryWaiting, DeliveryWaitingFor, DeliveryFinish, DeliveryGet       string
	DeliveryRows, OutcomeDelete, DeliveryCollect, ClearDeliveries, HookSecrets, ModulesSet string
	ModulesList                                                                            string
	// discovered.sql
	DiscoveredSet, DiscoveredGet, DiscoveredRows, DiscoveredDelete, ClearDiscovered string
	// drift.sql
	DriftOpen, DriftSeen, DriftHeal, DriftGone, DriftDelete, DriftRows string
	// dryrun.sql
	DryRunCreate, DryRunGet, DryRunLock, DryRunList, DryRunAdd, DryRunCount, DryRunDiffs string
	DryRunChosen                                                                         string
	DryRunKinds, DryRunOpen, DryRunVersion, DryRunBehind, DryRunEnd, VersionGone         string
	// environment.sql
	EnvironmentCreate, EnvironmentList, EnvironmentGet, EnvironmentsOf, EnvironmentProject, EnvironmentExists string
	EnvironmentLock, EnvironmentUpdate, EnvironmentTags, EnvironmentHalt, EnvironmentDelete, ClearActions     string
	ClearStates, ClearVersions, ClearContents, ClearResources, ClearCompiles, ClearDryRuns                    string
	ClearFactRequests, ClearAgents, ClearParameters, ClearDrift, ClearNotifications                           string
	ClearOverrides, SettingSet, SettingDelete, SettingsProtect, SecretSet, SecretDelete                       string
	SecretList                                                                                                string
	// forge.sql
	OutboxAdd, OutboxCompile, OutboxPullOf, OutboxTake, OutboxNext, OutboxSent, OutboxFailed       string
	OutboxDelay, OutboxList, OutboxRetry, OutboxDelete, ClearOutbox, ForgeReports                  string
	DeployStatusGet, DeployStatusSet, ClearDeployStatus, PullList, PullGet, PullLock, PullOfDryRun string
	PullSave, PullApprove, PullPreview, PullStale, PullComment, ClearPulls                         string
	// gate.sql
	OverrideAdd, OverrideEnd, OverrideGet, OverrideList, InterventionAdd, InterventionList string
	// git.sql
	GitStateSet, GitStateGet, GitAccept, GitAcceptance, GitCommits, GitBlockAdd, GitBlockEnd string
	GitBlockGet, GitBlocks, GitUsed, RollbackTarget, RollbackPending, VersionCopy            string
	// graphql.sql
	WindowResources, WindowResourcesCounted, WindowVersionResources, WindowResourceDetails string
	WindowNotifications, WindowEnvironments, StateSummary                                  string
	// graph.sql
	GraphNodes, GraphCount, GraphNamed, GraphNeeds, GraphDependents, GraphEdges, GraphGroups string
	GraphGroupEdges, GraphGroupBlocking, GraphBlocking                                       string
	// hold.sql
	Removal, RemovalLive, VersionHold, HeldVersions string
	// migration.sql
	Ping, ServerVersion, MigrationLock, MigrationTable, MigrationSince, MigrationList, MigrationDone string
	// metric.sql
	MetricSample, MetricRoll, MetricDelete, MetricBuckets, ClearMetrics string
	// notification.sql
	NotificationLock, NotificationCountUp, NotificationAdd, NotificationGet, NotificationMark string
	NotificationMarkAll, NotificationUnread, NotificationDelete, NotificationRows             string
	// own.sql
	OwnNext, OwnWriting, OwnGeneration, OwnedElsewhere string
	// parameter.sql
	ParameterSet, ParameterGet, ParameterRows, FactRows, ParameterDelete, FactRequestAdd string
	FactRequestList, FactRequestDone, FactsDue, UnknownsKnown                            string
	// people.sql
	PersonCreate, PersonList, PersonPassword, PersonPasswordSet, PersonRehash, PersonDisable string
	PersonDelete, PersonLoggedIn, PersonAny, PeopleLock, AdministratorAny, RoleCreate        string
	RoleUpdate, RoleList, RoleLock, RoleBound, RoleDelete, BindingAdd, BindingList           string
	BindingOf, BindingDelete, SessionSave, SessionTouch, SessionGet, SessionList             string
	SessionDelete, SessionEnd, SessionEndAll, SessionExpire, LoginTry, LoginBlock            string
	LoginRefund, LoginForget, FirstLinkSet, FirstLinkGet, FirstLinkUse                       string
	// token.sql
	PersonalTokenAdd, PersonalTokenList, PersonalTokenDelete, PersonalTokenUsed           string
	EnvironmentTokenAdd, EnvironmentTokenSame, EnvironmentTokenList                       string
	EnvironmentTokenRevoke, EnvironmentTokenUsed, TokenKeyAdd, TokenKeyGet                string
	TrustAdd, TrustList, TrustDelete, TrustUsed, TrustBindingsDelete                      string
	JobTokenAdd, JobTokenGet, TokenForgetPersonal, TokenForgetEnvironment, TokenForgetJob string
	PersonByIdentity, PersonIdentify, PersonGroups                                        string
	// process.sql
	ProcessLockResource, ProcessState, ProcessSetState, ProcessAdd, ProcessQueued         string
	ProcessResourceOf, ProcessLock, ProcessOpenOf, ProcessTake, ProcessBeat, ProcessHeld  string
	ProcessPhase, ProcessEnd, ProcessAgain, ProcessAskCancel, ProcessLost, ProcessDue     string
	ProcessIsLost, ProcessNextOf, ProcessRows, ProcessCounts, ProcessClean, ProcessForges string
	// project.sql
	ProjectCreate, ProjectList, ProjectGet, ProjectRename, ProjectDelete, ProjectSecretSet string
	ProjectSecretDelete, ProjectSecretList, ProjectKnownHosts, ProjectKnownHostsSet        string
	ProjectKnownHostsAdd                                                                   string
	// quota.sql
	QuotaOf, QuotaClear, QuotaSet, QuotaLock, QuotaLockOf, QuotaUse, QuotaResourcesOf string
	// promotion.sql
	Followed, FollowedLock, FollowRename, PromotionWaiting, PromotionLast, PromotionList  string
	PromotionAdd, PromotionJudged, PromotionApprove, PromotionPromote, PromotionSupersede string
	PromotionCompiled, PromotionPauseSet, PromotionPauseEnd, PromotionPauseGet            string
	ClearPromotions                                                                       string
	// release.sql
	VersionRetire, VersionSkip, VersionActivate, VersionEdges, ReleaseStates, ReleaseOrphans string
	ReleaseBlocked, ReleaseAgents, ReleaseDrift                                              string
	// remoteagent.sql
	AuthorityAdd, AuthorityGet, JoinTokenAdd, JoinTokenList, JoinTokenWaiting, JoinTokenRevoke, JoinTokenUse string
	JoinTokenForget, RemoteAgentJoin, CertificateAdd, CertificateRevoke, CertificateState                    string
	CertificateForget, RemoteAgentForget, RemoteAgentEnd, CommandsEnd, RemoteAgentList                       string
	RemoteAgentConnect, RemoteAgentDisconnect, RemoteAgentOf, RemoteAgentLook, RemoteAgentProblem            string
	// replica.sql
	ReplicaBeat, ReplicaList, ReplicaGone, ReplicaEndStale, LocksHeld, EnvironmentIDs string
	InstallationSet, InstallationKey                                                  string
	// request.sql
	RequestAdd, RequestList, RequestTaken, RequestDone, RequestWaiting string
	// resource.sql
	StateList, StateCounts, ResourceRows, ResourceCounted, ResourceWaits, ResourceDetail string
	ComplianceReports                                                                    string
	ResourceHistoryRows                                                                  string
	// serverload.sql
	ServerLoad, ServerDeadMessages string
	// standing.sql
	StandingFacts string
	// version.sql
	VersionGet, VersionActive, VersionNewest, VersionRows, VersionOfCompile, VersionCreate, VersionReserve    string
	VersionReservationsForget, VersionReservationUse                                                          string
	SavedViews, SavedViewPut, SavedViewDelete                                                                 string
	VersionContents, VersionMemberRows, VersionMark, VersionMarked, VersionMemberNames, StatesByStatus        string
	VersionResources, VersionChanges, VersionTotal, VersionResourceRows, VersionResource                      string
	VersionActiveTotal, VersionCode, VersionOrigins, VersionOld, VersionDelete, OrphanCollect, ContentCollect string
	ResourceCollect, ContentFind, KeysTake, CodeLockShared, CodeLockAlone, CodeStore                          string
	CodeCollect, DiffContents, FilePut, FileGet, FileMissing                                                  string
	FileReader, FileReaderMove, FileReadable                                                                  string
	// search.sql
	SearchRuns, SearchVersions, SearchWords, SearchPulls, SearchClusters, SearchResources string
}
