// Package console is the door for people: pages that are rendered on the server, follow events live, and work without
// script.
//
//	GET page ─▶ load (store ▸ a typed struct) ─▶ template ─▶ HTML
//	GET page?live ─▶ the same load, again after every event ─▶ the fragments that changed
//	POST form ─▶ a verb of control ─▶ redirect to a page
//
// A page is a function from a request to a view: a struct, and the fragments of it that move. The stream of a page
// renders the same fragments with the same templates, so that what arrives live is what a reload would show. All text
// from models, handlers and remotes counts as hostile: html/template escapes it, and the pages' content security policy
// allows no inline script or style.
package console

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/shared"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/access/provider"
	"ordain.dev/ordain/server/access/tokens"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/admin"
	provisioners "ordain.dev/ordain/server/cluster/provisioner/authority"
	"ordain.dev/ordain/server/cluster/resources"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/edge"
	"ordain.dev/ordain/server/graph"
	"ordain.dev/ordain/server/store"
)

// Config configures a console. Control, Store, Bus, Logger, Auth and People are required.
type Config struct {
	Control *control.Control // does what forms ask for
	Store   *store.Store     // is what pages show
	Bus     *bus.Bus         // announces to live pages that something moved
	Version string           // of this program
	Logger  *slog.Logger
	Auth    access.Authenticator // proves who sends a request
	People  *people.Service      // logs people in
	Tokens  *tokens.Service      // makes and revokes tokens
	Agents  *authority.Service   // makes and revokes remote agents; nil: nobody can
	// Clusters, Catalogue and Resources are the cluster service; nil: there is none.
	Clusters  *cluster.Service
	Catalogue *admin.Service
	Resources *resources.Service
	// Provisioners lets provisioners join that run elsewhere; nil: nobody can.
	Provisioners *provisioners.Service
	// Provider is where people can log in, too; nil: nowhere.
	Provider *provider.Provider
	Audit    *audit.Recorder // keeps what they change; nil: nothing does
	// Idle reports that no process of the server carries out work, so that what pages show stands still; may be nil.
	Idle func() bool
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// FactExpire is how long a fact holds; an hour when zero.
	FactExpire time.Duration
	// Disk returns the free and the whole size of the disk with the server's data; nil: nobody knows.
	Disk func() (free, size int64, err error)
	// Separation says how environments are kept apart; Separated that nothing is missing.
	Separation string
	Separated  bool
	// Heartbeat is how often a quiet stream shows that it is alive; 15 s when zero.
	Heartbeat time.Duration
	// Pace is the shortest time between two updates of one stream; 250 ms when zero.
	Pace time.Duration
	// MaxStreams is how many pages can be live at once; 256 when zero.
	MaxStreams int
}

type console struct {
	control   *control.Control
	store     *store.Store
	bus       *bus.Bus
	auth      access.Authenticator
	people    *people.Service
	tokens    *tokens.Service
	remotes   *authority.Service
	clusters  *cluster.Service
	catalogue *admin.Service
	// joins lets provisioners join that run elsewhere; nil: nobody can.
	joins *provisioners.Service
	// resourceFiles are the files of plug-ins.
	resourceFiles *resources.Service
	provider      *provider.Provider
	audit         *audit.Recorder
	program       string // its version
	log           *slog.Logger
	now           func() time.Time
	idle          func() bool
	factExpire    time.Duration
	self          selfKnowledge // for the page about the server
	heartbeat     time.Duration
	pace          time.Duration
	streams       chan struct{} // holds an item for each open stream
	templates     templates
	assets        assets

	environments shared.Loads[everybody, []intent.Environment] // for the switcher of every page
	homes        shared.Loads[everybody, homeContent]
	overviews    shared.Loads[intent.EnvironmentID, overviewContent]
	graphs       *graph.Graphs
	layouts      graphLayouts
	stepEdges    stepEdges
}

// New returns the handler of the console. It serves from the root: /, /e/…, /static/….
func New(cfg Config) (http.Handler, error) {
	if cfg.Control == nil || cfg.Store == nil || cfg.Bus == nil || cfg.Logger == nil || cfg.Auth == nil ||
		cfg.People == nil {
		return nil, errors.New("console.New: Control, Store, Bus, Logger, Auth and People are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.FactExpire == 0 {
		cfg.FactExpire = time.Hour
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.Pace == 0 {
		cfg.Pace = 250 * time.Millisecond
	}
	if cfg.MaxStreams == 0 {
		cfg.MaxStreams = 256
	}
	c := &console{
		control: cfg.Control, store: cfg.Store, bus: cfg.Bus, auth: cfg.Auth, people: cfg.People, audit: cfg.Audit,
		tokens: cfg.Tokens, provider: cfg.Provider, remotes: cfg.Agents,
		clusters: cfg.Clusters, catalogue: cfg.Catalogue, resourceFiles: cfg.Resources,
		joins:   cfg.Provisioners,
		program: cfg.Version, log: cfg.Logger, now: cfg.Now,
		idle: cfg.Idle, factExpire: cfg.FactExpire, heartbeat: cfg.Heartbeat, pace: cfg.Pace,
		self:    selfKnowledge{cfg.Disk, cfg.Separation, cfg.Separated, cfg.Now()},
		streams: make(chan struct{}, cfg.MaxStreams),
	}
	c.graphs = graph.New(c.store)
	var err error
	if c.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if c.templates, err = parseTemplates(cfg.Now); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	c.routes(mux)
	mux.Handle("GET /static/", c.assets)
	return edge.Compress(headers(flashing(mux))), nil
}

// routes registers all routes, and returns the verb of each.
func (c *console) routes(mux *http.ServeMux) map[string]access.Verb {
	verbs := map[string]access.Verb{}
	handle := func(pattern string, v access.Verb, do http.HandlerFunc) {
		verbs[pattern] = v
		mux.HandleFunc(pattern, c.guarded(v, do))
	}
	page := func(pattern string, v access.Verb, load loader) {
		verbs["GET "+pattern] = v
		mux.HandleFunc("GET "+pattern, c.page(v, load))
	}
	handle("GET /login", access.LogIn, c.login)
	handle("POST /login", access.LogIn, c.doLogin)
	handle("GET /login/oidc", access.LogIn, c.beginProvider)
	handle("GET "+provider.CallbackPath, access.LogIn, c.finishProvider)
	handle("GET /first/{secret}", access.LogIn, c.first)
	handle("POST /first/{secret}", access.LogIn, c.doFirst)
	handle("POST /logout", access.ManageSelf, c.doLogout)
	page("/people", access.SeeUsers, c.peopleList)
	page("/account", access.SeeSelf, c.account)
	form := func(pattern string, v access.Verb, do func(*http.Request) (string, error)) {
		handle("POST "+pattern, v, c.form(do))
	}
	form("/people/add", access.ManageUsers, c.doAddUser)
	form("/people/delete", access.ManageUsers, c.doDeleteUser)
	form("/people/disable", access.ManageUsers, c.doDisableUser)
	form("/people/password", access.ManageUsers, c.doSetPassword)
	form("/people/give", access.ManageRoles, c.doGive)
	form("/people/take", access.ManageRoles, c.doTake)
	form("/people/role", access.ManageRoles, c.doCreateRole)
	form("/people/role/delete", access.ManageRoles, c.doDeleteRole)
	form("/account/password", access.ChangePassword, c.doOwnPassword)
	form("/account/end", access.ManageSelf, c.doEndSession)
	handle("POST /account/token", access.ManageSelf, c.doCreateToken)
	form("/account/token/revoke", access.ManageSelf, c.doRevokeToken)
	page("/{$}", access.ListEnvironments, c.home)
	page("/e/{env}", access.SeeEnvironment, c.overview)
	page("/e/{env}/runs", access.SeeCompiles, c.runs)
	page("/e/{env}/runs/{run}", access.SeeCompiles, c.run)
	page("/e/{env}/resources", access.SeeResources, c.resources)
	page("/e/{env}/resource", access.SeeResources, c.resource)
	page("/e/{env}/graph", access.SeeResources, c.graph)
	page("/e/{env}/git", access.SeeGit, c.git)
	page("/e/{env}/drift", access.SeeDrift, c.drift)
	page("/e/{env}/logs", access.SeeResources, c.logs)
	page("/e/{env}/orphans", access.SeeResources, c.orphans)
	page("/e/{env}/facts", access.SeeParameters, c.facts)
	page("/e/{env}/parameters", access.SeeParameters, c.parameters)
	page("/e/{env}/deliveries", access.SeeDeliveries, c.deliveries)
	page("/e/{env}/deliveries/{delivery}", access.SeeDeliveries, c.delivery)
	page("/e/{env}/versions", access.SeeVersions, c.versions)
	page("/e/{env}/versions/{version}", access.SeeVersions, c.version)
	page("/e/{env}/versions/{version}/decided", access.SeeVersions, c.decided)
	page("/e/{env}/compare", access.SeeVersions, c.compare)
	page("/e/{env}/dryruns/{dryrun}", access.SeeDryRuns, c.dryRun)
	page("/e/{env}/pulls", access.SeePulls, c.pulls)
	page("/e/{env}/pulls/{number}", access.SeePulls, c.pull)
	page("/e/{env}/agents", access.SeeAgents, c.agents)
	page("/e/{env}/executors", access.SeeAgents, c.executors)
	page("/e/{env}/queue", access.SeeAgents, c.queue)
	page("/e/{env}/metrics", access.SeeEnvironment, c.metrics)
	page("/e/{env}/notifications", access.SeeNotifications, c.notifications)
	page("/e/{env}/audit", access.SeeAudit, c.environmentAudit)
	page("/audit", access.SeeServerAudit, c.serverAudit)
	page("/status", access.SeeStatus, c.status)
	page("/e/{env}/processes", access.SeeProcesses, c.environmentProcesses)
	page("/processes", access.SeeAllProcesses, c.serverProcesses)
	form("/processes/retry", access.ManageAllProcesses, c.doRetryAnyProcess)
	form("/processes/cancel", access.ManageAllProcesses, c.doCancelAnyProcess)
	page("/e/{env}/settings", access.SeeEnvironment, c.settings)
	page("/e/{env}/settings/copy", access.SetSetting, c.copySettingsPage)
	page("/e/{env}/clone", access.CloneEnvironment, c.clonePage)
	page("/projects/{project}", access.SeeProject, c.projectPage)
	form("/projects/{project}/quota", access.SetQuota, c.doProjectQuota)
	form("/projects/{project}/give", access.ManageMembers, c.doGiveMember)
	form("/projects/{project}/take", access.ManageMembers, c.doTakeMember)
	handle("GET /e/{env}/runs/{run}/output/{stage}", access.SeeCompiles, c.output)
	handle("GET /e/{env}/dryruns/{dryrun}/value", access.SeeDryRuns, c.dryRunValue)
	handle("GET /e/{env}/audit/export", access.SeeAudit, c.exportAudit)
	handle("GET /audit/export", access.SeeServerAudit, c.exportAudit)
	handle("GET /search", access.ListEnvironments, c.search)
	page("/keyboard", access.ListEnvironments, c.keyboard)
	page("/e/{env}/keyboard", access.SeeEnvironment, c.keyboard)
	page("/e/{env}/source", access.SeeGit, c.source)

	c.clusterAdminRoutes(handle, page, form)

	post := func(pattern string, v access.Verb, do action) { handle("POST "+pattern, v, c.post(do)) }
	handle("POST /environments", access.ListEnvironments, c.createEnvironment) // checks the project itself
	post("/e/{env}/compile", access.Compile, c.doCompile)
	post("/e/{env}/runs/{run}/cancel", access.CancelCompile, c.doCancelRun)
	post("/e/{env}/deploy", access.Deploy, c.doDeploy)
	post("/e/{env}/halt", access.Halt, c.doHalt)
	post("/e/{env}/resume", access.Resume, c.doResume)
	post("/e/{env}/resource/deploy", access.Deploy, c.doDeployResource)
	for _, a := range bulkActions {
		post("/e/{env}/resources/"+a.Name, a.verb, c.doBulk(a))
	}
	post("/e/{env}/views", access.SeeResources, c.doSaveView)
	post("/e/{env}/views/delete", access.SeeResources, c.doDeleteView)
	post("/e/{env}/resource/unpark", access.Unpark, c.doUnpark)
	post("/e/{env}/git/accept", access.AcceptCommit, c.doAccept)
	post("/e/{env}/git/unblock", access.UnblockCommit, c.doUnblock)
	post("/e/{env}/rollback", access.RollBack, c.doRollBack)
	post("/e/{env}/promote", access.Promote, c.doPromote)
	post("/e/{env}/promote/approve", access.ApprovePromotion, c.doApprovePromotion)
	post("/e/{env}/promote/pause", access.PausePromotions, c.doPausePromotions)
	post("/e/{env}/promote/resume", access.PausePromotions, c.doResumePromotions)
	post("/e/{env}/override", access.Override, c.doOverride)
	post("/e/{env}/override/end", access.Override, c.doEndOverride)
	post("/e/{env}/agents/pause", access.PauseAgents, c.doPause)
	post("/e/{env}/agents/revoke", access.RevokeAgent, c.doRevokeAgent)
	post("/e/{env}/agents/remove", access.RemoveAgent, c.doRemoveAgent)
	post("/e/{env}/agents/token/revoke", access.ManageJoinTokens, c.doRevokeJoinToken)
	handle("POST /e/{env}/agents/token", access.ManageJoinTokens, c.doCreateJoinToken)
	post("/e/{env}/versions/{version}/release", access.Release, c.doRelease)
	post("/e/{env}/versions/{version}/confirm", access.Confirm, c.doConfirm)
	post("/e/{env}/versions/{version}/dryrun", access.StartDryRun, c.doDryRun)
	post("/e/{env}/deliveries/{delivery}/redeliver", access.Redeliver, c.doRedeliver)
	post("/e/{env}/notifications", access.MarkNotifications, c.doNotification)
	post("/e/{env}/dryruns", access.StartDryRun, c.doDryRunCommit)
	post("/e/{env}/dryruns/{dryrun}/cancel", access.StartDryRun, c.doCancelDryRun)
	post("/e/{env}/pulls/{number}/preview", access.PreviewPull, c.doPreviewPull)
	post("/e/{env}/pulls/{number}/approve", access.ApprovePull, c.doApprovePull)
	post("/e/{env}/processes/retry", access.ManageProcesses, c.doRetryProcess)
	post("/e/{env}/processes/cancel", access.ManageProcesses, c.doCancelProcess)
	post("/e/{env}/outbox/retry", access.RetryOutbox, c.doRetryOutbox)
	post("/e/{env}/resource/facts", access.RefreshFacts, c.doFacts)
	post("/e/{env}/parameters/set", access.SetParameters, c.doSetParameter)
	post("/e/{env}/parameters/delete", access.SetParameters, c.doDeleteParameter)
	change := func(path string, v access.Verb, form func(*http.Request) string, do action) {
		handle("POST /e/{env}/settings/"+path, v, c.settingsPost(form, do))
	}
	change("set", access.SetSetting, settingFormNamed, c.doSetting)
	change("source", access.ModifyEnvironment, formNamed("source"), c.doSource)
	change("secret", access.SetSecret, secretFormNamed, c.doSecret)
	change("known-hosts", access.SetKnownHosts, formNamed("hosts"), c.doKnownHosts)
	change("quota", access.SetQuota, formNamed("quotas"), c.doQuota)
	post("/e/{env}/settings/copy", access.SetSetting, c.doCopySettings)
	handle("POST /e/{env}/clone", access.CloneEnvironment, c.doClone)
	change("clear", access.ClearEnvironment, formNamed("clear"), c.doClear)
	change("delete", access.DeleteEnvironment, formNamed("delete"), c.doDelete)
	c.routeClusters(page, handle, post)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.failure(w, r, http.StatusNotFound, "There is no such page",
			"The address may be mistyped, or what it named was deleted.",
			"Go to the list of environments and start from there.")
	})
	return verbs
}

// headers sets the security headers of every answer.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy",
			"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
