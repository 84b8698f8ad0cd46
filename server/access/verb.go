package access

import "slices"

// Label is the kind of thing that a verb does. Roles are sets of labels.
type Label string

// The labels. Open verbs are for everybody who is logged in, and Public ones for everybody: no role has to grant them.
const (
	Public      Label = "public"
	Open        Label = "open"
	Read        Label = "read"
	Operate     Label = "operate"      // changes when something happens, not what is intended
	WriteIntent Label = "write intent" // changes what is deployed, or how that is decided
	Administer  Label = "administer"   // deletes, or changes what people may do
)

// Labels lists the labels that roles can grant.
var Labels = []Label{Read, Operate, WriteIntent, Administer}

// Reach is what a verb is done to.
type Reach string

// The reaches.
const (
	OnServer      Reach = "server"
	OnProject     Reach = "project"
	OnEnvironment Reach = "environment"
)

// Verb is the name of something that can be done, such as "environment.halt".
type Verb string

// Definition says what a verb is.
type Definition struct {
	Verb    Verb
	Label   Label
	Reach   Reach
	Summary string
}

// The verbs.
const (
	SeeHealth          Verb = "server.health"
	SeeStatus          Verb = "server.status"
	SeeDocs            Verb = "server.docs"
	LogIn              Verb = "session.login"
	SeeSelf            Verb = "session.show"
	ManageSelf         Verb = "session.manage"
	ChangePassword     Verb = "user.password"
	ManageUsers        Verb = "user.manage"
	SeeUsers           Verb = "user.list"
	ManageRoles        Verb = "role.manage"
	SeeRoles           Verb = "role.list"
	SeeVerbs           Verb = "access.verbs"
	ExplainAccess      Verb = "access.explain"
	SeeServerAudit     Verb = "audit.server"
	SeeReplicas        Verb = "server.replicas"
	ExchangeToken      Verb = "token.exchange"
	SeeAllProcesses    Verb = "process.list"
	ManageAllProcesses Verb = "process.manage"

	ListProjects      Verb = "project.list"
	CreateProject     Verb = "project.create"
	SeeProject        Verb = "project.show"
	RenameProject     Verb = "project.rename"
	DeleteProject     Verb = "project.delete"
	SeeProjectSecrets Verb = "project.secrets"
	SetProjectSecret  Verb = "project.secret"
	SetKnownHosts     Verb = "project.hosts"
	SeeMembers        Verb = "project.members"
	ManageMembers     Verb = "project.member"
	SetQuota          Verb = "project.quota"
	SeeProjectAudit   Verb = "audit.project"
	SeeTrusts         Verb = "project.trusts"
	ManageTrusts      Verb = "project.trust"

	ListEnvironments  Verb = "environment.list"
	CreateEnvironment Verb = "environment.create"
	SeeEnvironment    Verb = "environment.show"
	ModifyEnvironment Verb = "environment.modify"
	DeleteEnvironment Verb = "environment.delete"
	ClearEnvironment  Verb = "environment.clear"
	Halt              Verb = "environment.halt"
	Resume            Verb = "environment.resume"
	SetSecret         Verb = "environment.secret"
	SetSetting        Verb = "environment.setting"
	CloneEnvironment  Verb = "environment.clone"
	ProtectSettings   Verb = "environment.protect"
	ManageTokens      Verb = "environment.token"
	SeeTokens         Verb = "environment.tokens"
	AssignRoles       Verb = "environment.role"
	SeeAudit          Verb = "audit.show"
	Compile           Verb = "compile.request"
	CancelCompile     Verb = "compile.cancel"
	SeeCompiles       Verb = "compile.show"
	SeeVersions       Verb = "version.show"
	PutVersion        Verb = "version.put"
	Release           Verb = "version.release"
	Confirm           Verb = "version.confirm"
	DeleteVersion     Verb = "version.delete"
	RollBack          Verb = "version.rollback"
	SeeResources      Verb = "resource.show"
	Deploy            Verb = "resource.deploy"
	Unpark            Verb = "resource.unpark"
	ReportResources   Verb = "resource.report"
	SeeDrift          Verb = "drift.show"
	SeeAgents         Verb = "agent.show"
	PauseAgents       Verb = "agent.pause"
	JoinAgent         Verb = "agent.join"
	JoinProvisioner   Verb = "provisioner.join"
	SeeJoinTokens     Verb = "agent.tokens"
	ManageJoinTokens  Verb = "agent.token"
	RevokeAgent       Verb = "agent.revoke"
	RemoveAgent       Verb = "agent.remove"
	SeeDryRuns        Verb = "dryrun.show"
	StartDryRun       Verb = "dryrun.start"
	SeeGit            Verb = "git.show"
	AcceptCommit      Verb = "git.accept"
	UnblockCommit     Verb = "git.unblock"
	SeePromotions     Verb = "promotion.show"
	Promote           Verb = "promotion.promote"
	ApprovePromotion  Verb = "promotion.approve"
	PausePromotions   Verb = "promotion.pause"
	SeePulls          Verb = "pull.show"
	PreviewPull       Verb = "pull.preview"
	ApprovePull       Verb = "pull.approve"
	RetryOutbox       Verb = "pull.outbox"
	SeeDeliveries     Verb = "delivery.show"
	Redeliver         Verb = "delivery.redeliver"
	SeeNotifications  Verb = "notification.show"
	MarkNotifications Verb = "notification.mark"
	SeeParameters     Verb = "parameter.show"
	SetParameters     Verb = "parameter.set"
	RefreshFacts      Verb = "fact.refresh"
	SeeDiscovered     Verb = "discovered.show"
	WriteDiscovered   Verb = "discovered.write"
	SeeGates          Verb = "gate.show"
	Override          Verb = "gate.override"
	TagEnvironment    Verb = "environment.tag"
	SeeFiles          Verb = "file.show"
	SeeProcesses      Verb = "process.show"
	ManageProcesses   Verb = "process.retry"
	PutFiles          Verb = "file.put"

	SeeClusters           Verb = "cluster.show"
	PlanCluster           Verb = "cluster.plan"
	ChangeCluster         Verb = "cluster.change"
	OperateCluster        Verb = "cluster.operate"
	DeleteCluster         Verb = "cluster.delete"
	SeeCatalogue          Verb = "catalogue.show"
	ChangeCatalogue       Verb = "catalogue.change"
	SeeSharedCatalogue    Verb = "catalogue.shared-show"
	ChangeSharedCatalogue Verb = "catalogue.shared"
	UploadResource        Verb = "catalogue.resource"
	UploadSharedResource  Verb = "catalogue.shared-resource"
	DownloadResource      Verb = "catalogue.download"
	SeeTenant             Verb = "tenant.show"
	ManageTenants         Verb = "tenant.manage"
	SeeProvisioners       Verb = "provisioner.show"
	ManageProvisioners    Verb = "provisioner.manage"
	SeeAllProvisioners    Verb = "provisioner.list"
)

// Verbs is the table of all verbs. `ordain access verbs` prints it.
var Verbs = []Definition{
	{SeeHealth, Public, OnServer, "ask whether the server is up"},
	{LogIn, Public, OnServer, "log in"},
	{JoinAgent, Public, OnServer, "join as a remote agent, with a join token"},
	{JoinProvisioner, Public, OnServer, "join as a provisioner of a project, with a join token"},
	{ExchangeToken, Public, OnServer, "exchange the identity token of a CI job for one of this server"},
	{SeeDocs, Open, OnServer, "read the description of the API"},
	{SeeSelf, Open, OnServer, "see who is logged in"},
	{ManageSelf, Open, OnServer, "log out, manage own tokens"},
	{ChangePassword, Open, OnServer, "change the own password, or with user.manage that of others"},
	{SeeVerbs, Open, OnServer, "list verbs and labels"},
	{ListProjects, Open, OnServer, "list the projects that one may see"},
	{ListEnvironments, Open, OnServer, "list the environments that one may see"},
	{SeeRoles, Open, OnServer, "list roles"},
	{SeeStatus, Open, OnServer, "see the status of the server"},
	{SeeUsers, Administer, OnServer, "list users"},
	{ManageUsers, Administer, OnServer, "add and remove users, set their passwords"},
	{ManageRoles, Administer, OnServer, "define roles, bind them server-wide"},
	{ExplainAccess, Administer, OnServer, "explain what somebody else may do"},
	{SeeServerAudit, Administer, OnServer, "read the audit trail of the whole server"},
	{SeeAllProcesses, Administer, OnServer, "see the processes of the whole server"},
	{ManageAllProcesses, Administer, OnServer, "retry and cancel any process"},
	{SeeReplicas, Administer, OnServer, "see the processes that the server consists of"},
	{CreateProject, Administer, OnServer, "create projects"},
	{SetQuota, Administer, OnServer, "set the quotas of a project"},

	{SeeSharedCatalogue, Read, OnServer, "see what clusters of all projects can be made of"},
	{ChangeSharedCatalogue, Administer, OnServer, "change the catalogue of clusters that all projects share"},
	{UploadSharedResource, Administer, OnServer, "upload and activate files of plug-ins that all projects share"},
	{ManageTenants, Administer, OnServer, "set how much of the cluster service a project may use"},
	{SeeAllProvisioners, Administer, OnServer, "see the provisioners and queues of all projects"},

	{SeeProject, Read, OnProject, "see a project"},
	{SeeProjectSecrets, Read, OnProject, "see the names of a project's secrets, and its SSH host keys"},
	{SeeMembers, Read, OnProject, "see the members and quotas of a project"},
	{SeeCatalogue, Read, OnProject, "see what a project's clusters can be made of"},
	{SeeTenant, Read, OnProject, "see how much of the cluster service a project uses, and may"},
	{SeeProvisioners, Read, OnProject, "see the provisioners and queues of a project"},
	{SeeTrusts, Read, OnProject, "see which CI jobs a project trusts"},
	{CreateEnvironment, WriteIntent, OnProject, "create environments"},
	{ChangeCatalogue, WriteIntent, OnProject, "change what a project's clusters can be made of"},
	{UploadResource, WriteIntent, OnProject, "upload and activate files of plug-ins"},
	{DownloadResource, Administer, OnProject, "download files of plug-ins, which may be keys"},
	{ManageProvisioners, Administer, OnProject, "let provisioners join, which get the credentials of providers"},
	{RenameProject, Administer, OnProject, "rename a project"},
	{DeleteProject, Administer, OnProject, "delete a project with its environments"},
	{SetProjectSecret, Administer, OnProject, "set secrets that all environments of a project use"},
	{SetKnownHosts, Administer, OnProject, "set the SSH host keys that a project trusts"},
	{ManageMembers, Administer, OnProject, "add and remove members of a project"},
	{ManageTrusts, Administer, OnProject, "decide which CI jobs a project trusts"},
	{SeeProjectAudit, Administer, OnProject, "read the audit trail of a project"},

	{SeeEnvironment, Read, OnEnvironment, "see an environment and its settings"},
	{SeeCompiles, Read, OnEnvironment, "see compile reports"},
	{SeeVersions, Read, OnEnvironment, "see versions"},
	{SeeResources, Read, OnEnvironment, "see resources, their states and logs"},
	{SeeDrift, Read, OnEnvironment, "see drift"},
	{SeeAgents, Read, OnEnvironment, "see agents and executors"},
	{SeeDryRuns, Read, OnEnvironment, "see dry runs"},
	{SeeGit, Read, OnEnvironment, "see commits and blocks"},
	{SeePromotions, Read, OnEnvironment, "see promotions"},
	{SeePulls, Read, OnEnvironment, "see pull requests"},
	{SeeDeliveries, Read, OnEnvironment, "see webhooks"},
	{SeeNotifications, Read, OnEnvironment, "see notifications"},
	{SeeParameters, Read, OnEnvironment, "see parameters and facts"},
	{SeeDiscovered, Read, OnEnvironment, "see discovered resources"},
	{SeeGates, Read, OnEnvironment, "see windows, freezes, overrides and interventions"},
	{SeeFiles, Read, OnEnvironment, "read files of resources"},
	{SeeProcesses, Read, OnEnvironment, "see the processes of an environment"},
	{SeeClusters, Read, OnEnvironment, "see clusters, their jobs and the output of tasks"},
	{PlanCluster, Read, OnEnvironment, "plan a cluster without making it"},

	{Halt, Operate, OnEnvironment, "halt an environment"},
	{Resume, Operate, OnEnvironment, "resume an environment"},
	{Compile, Operate, OnEnvironment, "ask for a compile"},
	{CancelCompile, Operate, OnEnvironment, "cancel a compile"},
	{Deploy, Operate, OnEnvironment, "deploy or repair"},
	{Unpark, Operate, OnEnvironment, "deploy a parked resource again"},
	{ReportResources, Operate, OnEnvironment, "report what agents did"},
	{PauseAgents, Operate, OnEnvironment, "pause and unpause agents"},
	{RevokeAgent, Operate, OnEnvironment, "revoke a remote agent"},
	{StartDryRun, Operate, OnEnvironment, "start and cancel dry runs"},
	{PreviewPull, Operate, OnEnvironment, "preview a pull request again"},
	{ManageProcesses, Operate, OnEnvironment, "retry and cancel processes of an environment"},
	{RetryOutbox, Operate, OnEnvironment, "send to the forge again"},
	{Redeliver, Operate, OnEnvironment, "handle a webhook again"},
	{MarkNotifications, Operate, OnEnvironment, "mark notifications as read"},
	{RefreshFacts, Operate, OnEnvironment, "ask resources for facts"},
	{PausePromotions, Operate, OnEnvironment, "pause and resume promotions"},
	{OperateCluster, Operate, OnEnvironment, "pause, resume, abort and retry the jobs of a cluster"},

	{ModifyEnvironment, WriteIntent, OnEnvironment, "change the name, the source or the description"},
	{SetSecret, WriteIntent, OnEnvironment, "set credentials and other secrets"},
	{SetSetting, WriteIntent, OnEnvironment, "change settings"},
	{CloneEnvironment, WriteIntent, OnEnvironment, "clone an environment into projects where one may create them"},
	{PutVersion, WriteIntent, OnEnvironment, "export a version"},
	{PutFiles, WriteIntent, OnEnvironment, "upload files of resources"},
	{Release, WriteIntent, OnEnvironment, "release a version"},
	{Confirm, WriteIntent, OnEnvironment, "confirm a version that takes much away"},
	{RollBack, WriteIntent, OnEnvironment, "roll back to an earlier version"},
	{AcceptCommit, WriteIntent, OnEnvironment, "accept a commit that rewrites history"},
	{UnblockCommit, WriteIntent, OnEnvironment, "unblock a commit"},
	{Promote, WriteIntent, OnEnvironment, "promote a commit"},
	{ApprovePromotion, WriteIntent, OnEnvironment, "approve a promotion"},
	{ApprovePull, WriteIntent, OnEnvironment, "approve a pull request's preview"},
	{SetParameters, WriteIntent, OnEnvironment, "set and delete parameters and facts"},
	{WriteDiscovered, WriteIntent, OnEnvironment, "write and delete discovered resources"},
	{Override, WriteIntent, OnEnvironment, "let changes through a window or a freeze"},
	{ChangeCluster, WriteIntent, OnEnvironment, "create clusters, change them and roll them back"},
	{DeleteCluster, WriteIntent, OnEnvironment, "delete clusters with their machines"},

	{DeleteEnvironment, Administer, OnEnvironment, "delete an environment"},
	{ClearEnvironment, Administer, OnEnvironment, "delete all that an environment has"},
	{DeleteVersion, Administer, OnEnvironment, "delete a version"},
	{ProtectSettings, Administer, OnEnvironment, "protect settings from changes"},
	{ManageTokens, Administer, OnEnvironment, "create and revoke the tokens of an environment"},
	{SeeTokens, Administer, OnEnvironment, "list the tokens of an environment"},
	{ManageJoinTokens, Administer, OnEnvironment, "create and revoke the tokens with which agents join"},
	{SeeJoinTokens, Administer, OnEnvironment, "list the tokens with which agents join"},
	{RemoveAgent, Administer, OnEnvironment, "remove a remote agent"},
	{TagEnvironment, Administer, OnEnvironment, "set the tags of an environment, which roles can be bound to"},
	{AssignRoles, Administer, OnEnvironment, "give and take roles in an environment"},
	{SeeAudit, Administer, OnEnvironment, "read the audit trail of an environment"},
}

var byName = func() map[Verb]Definition {
	m := make(map[Verb]Definition, len(Verbs))
	for _, d := range Verbs {
		m[d.Verb] = d
	}
	return m
}()

// Define returns the definition of a verb; ok is false if there is no such verb.
func (v Verb) Define() (d Definition, ok bool) {
	d, ok = byName[v]
	return d, ok
}

// Changes reports whether doing a verb changes something, so that it belongs into the audit trail.
func (d Definition) Changes() bool {
	if slices.Contains([]Verb{SeeUsers, ExplainAccess, SeeServerAudit, SeeProjectAudit, SeeAudit, SeeTokens,
		SeeAllProcesses, SeeJoinTokens, SeeAllProvisioners}, d.Verb) {
		return false // administrators alone may see this
	}
	return slices.Contains([]Verb{ManageSelf, ChangePassword, ExchangeToken}, d.Verb) ||
		!slices.Contains([]Label{Public, Open, Read}, d.Label)
}
