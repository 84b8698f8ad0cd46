// Package api is the door for programs: Inmanta's REST API, version 1 and 2, over the server's store and control.
// Existing clients work with it unchanged.
//
//	request ─▶ arguments: path, query and body ─▶ a struct
//	                                                 │ one method per call ─▶ store (reads), control (decides)
//	answer  ◀─ envelope of version 1 or 2      ◀─ a struct
//
// A call is declared once, in the …Calls method of its file: its verb, its path, a sentence about it, and the method
// that answers it. The types of that method say which arguments the call knows and what it answers; the OpenAPI
// document, openapi.json, is generated from them. The rules that all calls share (unknown arguments, environments,
// paging, errors, headers) are applied in call.go and nowhere else.
package api

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/shared"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/people"
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

const (
	maxBody   = 10 << 20
	maxUpload = 100 << 20
	// bodiesInFlight are the bytes that all bodies may take together, but for one large one.
	bodiesInFlight = 32 << 20
)

// Config is what the API is made of. Control, Store, Logger, Auth, People and Tokens are needed.
type Config struct {
	Control *control.Control // decides
	Store   *store.Store     // is read
	Logger  *slog.Logger
	Auth    access.Authenticator // proves who sends a request
	People  *people.Service      // logs people in
	Audit   *audit.Recorder      // keeps what they change; nil: nothing does
	Tokens  *tokens.Service      // makes and revokes tokens
	Agents  *authority.Service   // makes and revokes remote agents; nil: nobody can
	// Clusters, Catalogue and Resources are the cluster service.
	Clusters  *cluster.Service
	Catalogue *admin.Service
	Resources *resources.Service
	// Provisioners lets provisioners join that run elsewhere; nil: nobody can.
	Provisioners *provisioners.Service
	// Version is the version of the program.
	Version string
	// Isolation says how environments are separated; Separated is whether they are, completely.
	Isolation string
	Separated bool
	// Python is the version of Python that compilers and handlers run in; empty: none is known.
	Python string
	// Sockets are the addresses on which the server listens.
	Sockets []string
	// MaxBody limits request bodies in bytes, also after decompression; 0 means 10 MiB.
	MaxBody int64
	// MaxUpload limits the bodies that hold a file; 0 means 100 MiB.
	MaxUpload int64
	// Bodies bounds the memory that all bodies take together; nil means 32 MiB and one large body.
	Bodies *edge.Bodies
	// FactExpire is how long a fact holds; 0 means an hour.
	FactExpire time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// server answers the calls.
type server struct {
	control    *control.Control
	store      *store.Store
	version    string
	python     string
	sockets    []string
	inflight   atomic.Int64 // requests that are being answered
	log        *slog.Logger
	auth       access.Authenticator
	people     *people.Service
	audit      *audit.Recorder
	tokens     *tokens.Service
	agents     *authority.Service
	clusters   *cluster.Service
	catalogue  *admin.Service
	resources  *resources.Service
	graphs     *graph.Graphs
	joining    *provisioners.Service
	isolation  serverSlice
	maxBody    int64
	maxUpload  int64
	bodies     *edge.Bodies
	factExpire time.Duration
	now        func() time.Time
	reads      shared.Loads[sharedKey, *readyAnswer]
}

// New returns the handler. It serves whole paths: /api/v1/… and /api/v2/….
func New(cfg Config) (http.Handler, error) {
	if cfg.Control == nil || cfg.Store == nil || cfg.Logger == nil || cfg.Auth == nil || cfg.People == nil ||
		cfg.Tokens == nil {
		return nil, errors.New("api.New: Control, Store, Logger, Auth, People and Tokens are needed")
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = maxBody
	}
	if cfg.MaxUpload == 0 {
		cfg.MaxUpload = maxUpload
	}
	if cfg.Bodies == nil {
		cfg.Bodies = edge.NewBodies(bodiesInFlight)
	}
	if cfg.FactExpire == 0 {
		cfg.FactExpire = time.Hour
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &server{
		control: cfg.Control, store: cfg.Store, version: cfg.Version, log: cfg.Logger, auth: cfg.Auth, audit: cfg.Audit,
		isolation: isolationSlice(cfg), people: cfg.People, tokens: cfg.Tokens, agents: cfg.Agents,
		clusters: cfg.Clusters, catalogue: cfg.Catalogue, resources: cfg.Resources, joining: cfg.Provisioners,
		python: cfg.Python, sockets: cfg.Sockets,
		maxBody:   cfg.MaxBody,
		maxUpload: cfg.MaxUpload, bodies: cfg.Bodies, factExpire: cfg.FactExpire, now: cfg.Now,
	}
	s.reads.AtOnce = sharedLoads
	router := newRouter()
	s.calls(router)
	router.GET(docsPath, tokenInQuery(s.guarded(access.SeeDocs, newDocs(cfg.Version).serve)))
	return options(edge.Compress(s.counted(router))), nil
}

// counted counts the requests that are being answered.
func (s *server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inflight.Add(1)
		defer s.inflight.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// calls declares all calls, and returns what the OpenAPI document says of them.
func (s *server) calls(router *gin.Engine) []*declaration {
	c := &calls{server: s, router: router}
	for _, group := range []struct {
		name    string
		declare func(*calls)
	}{
		{"Projects", s.projectCalls}, {"Quotas", s.quotaCalls}, {"Server processes", s.replicaCalls},
		{"Environments", s.environmentCalls}, {"Secrets", s.secretCalls},
		{"Settings", s.settingCalls}, {"Compiles", s.compileCalls}, {"Versions", s.versionCalls},
		{"Pushed-versions", s.pushCalls},
		{"Holds", s.holdCalls}, {"Resources", s.resourceCalls}, {"Logs", s.logCalls}, {"Graph", s.graphCalls},
		{"Drift", s.stateCalls}, {"Gates", s.gateCalls},
		{"Events", s.eventCalls},
		{"Agents", s.agentCalls}, {"Schedulers", s.schedulerCalls}, {"Remote-agents", s.remoteAgentCalls},
		{"Clusters", s.clusterCalls}, {"Cluster-catalogue", s.catalogueCalls},
		{"Plug-in-resources", s.pluginResourceCalls}, {"Tenants", s.tenantCalls},
		{"Dry-runs", s.dryRunCalls}, {"Filtered", s.filteredCalls}, {"Git", s.gitCalls},
		{"Standing", s.standingCalls},
		{"Promotions", s.promotionCalls}, {"Pull-requests", s.pullCalls},
		{"Processes", s.processCalls}, {"Webhooks", s.deliveryCalls},
		{"Notifications", s.notificationCalls}, {"Parameters", s.parameterCalls}, {"Facts", s.factCalls},
		{"GraphQL", s.graphqlCalls}, {"Metrics", s.metricCalls}, {"Queue", s.queueCalls},
		{"Discovery", s.discoveredCalls}, {"Audit", s.auditCalls}, {"Files", s.fileCalls}, {"Users", s.userCalls},
		{"Roles", s.roleCalls}, {"Tokens", s.tokenCalls}, {"Server", s.statusCalls},
	} {
		c.group = group.name
		group.declare(c)
	}
	return c.declared
}

// newRouter returns a router that matches paths as they are written: a resource id is one segment, percent-encoded,
// and an encoded slash in it does not split. arguments.go decodes the values, once.
func newRouter() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // prints nothing
	g := gin.New()
	g.UseEscapedPath, g.UnescapePathValues, g.RedirectTrailingSlash = true, false, false
	g.HandleMethodNotAllowed = true
	g.NoRoute(func(c *gin.Context) { htmlError(c.Writer, http.StatusNotFound) })
	g.NoMethod(func(c *gin.Context) { htmlError(c.Writer, http.StatusMethodNotAllowed) })
	return g
}

// htmlError answers unknown paths and wrong verbs: with a page, not JSON.
func htmlError(w http.ResponseWriter, status int) {
	text := http.StatusText(status)
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(status)
	// It fails when the client has gone away.
	_, _ = io.WriteString(w, "<!doctype html><html lang=\"en\"><title>"+text+"</title><body>"+text+"</body></html>\n")
}

// options answers OPTIONS on any path.
func options(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodOptions {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Methods", "HEAD, GET, POST, PUT, DELETE, OPTIONS, PATCH")
		h.Set("Access-Control-Allow-Headers",
			"Origin, Accept, Content-Type, Authorization, X-Requested-With, X-CSRF-Token, "+tidHeader)
		w.WriteHeader(http.StatusOK)
	})
}
