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
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// Config configures a console. Control, Store, Bus and Logger are required.
type Config struct {
	Control *control.Control // does what forms ask for
	Store   *store.Store     // is what pages show
	Bus     *bus.Bus         // announces to live pages that something moved
	Version string           // of this program
	Logger  *slog.Logger
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Heartbeat is how often a quiet stream shows that it is alive; 15 s when zero.
	Heartbeat time.Duration
	// Pace is the shortest time between two updates of one stream; 100 ms when zero.
	Pace time.Duration
	// MaxStreams is how many pages can be live at once; 256 when zero.
	MaxStreams int
}

type console struct {
	control   *control.Control
	store     *store.Store
	bus       *bus.Bus
	program   string // its version
	log       *slog.Logger
	now       func() time.Time
	heartbeat time.Duration
	pace      time.Duration
	streams   chan struct{} // holds an item for each open stream
	templates templates
	assets    assets

	environments shared[[]intent.Environment] // for the switcher of every page
	homes        shared[homeContent]
}

// New returns the handler of the console. It serves from the root: /, /e/…, /static/….
func New(cfg Config) (http.Handler, error) {
	if cfg.Control == nil || cfg.Store == nil || cfg.Bus == nil || cfg.Logger == nil {
		return nil, errors.New("console.New: Control, Store, Bus and Logger are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.Pace == 0 {
		cfg.Pace = 100 * time.Millisecond
	}
	if cfg.MaxStreams == 0 {
		cfg.MaxStreams = 256
	}
	c := &console{
		control: cfg.Control, store: cfg.Store, bus: cfg.Bus, program: cfg.Version, log: cfg.Logger, now: cfg.Now,
		heartbeat: cfg.Heartbeat, pace: cfg.Pace, streams: make(chan struct{}, cfg.MaxStreams),
	}
	c.environments.load = c.store.Environments
	c.homes.load = c.loadHome
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
	return headers(mux), nil
}

func (c *console) routes(mux *http.ServeMux) {
	page := func(pattern string, load loader) { mux.HandleFunc("GET "+pattern, c.page(load)) }
	page("/{$}", c.home)
	page("/e/{env}", c.overview)
	page("/e/{env}/runs", c.runs)
	page("/e/{env}/runs/{run}", c.run)
	page("/e/{env}/resources", c.resources)
	page("/e/{env}/resource", c.resource)
	page("/e/{env}/git", c.git)
	page("/e/{env}/drift", c.drift)
	page("/e/{env}/deliveries", c.deliveries)
	page("/e/{env}/deliveries/{delivery}", c.delivery)
	page("/e/{env}/versions", c.versions)
	page("/e/{env}/versions/{version}", c.version)
	page("/e/{env}/compare", c.compare)
	page("/e/{env}/dryruns/{dryrun}", c.dryRun)
	page("/e/{env}/pulls", c.pulls)
	page("/e/{env}/pulls/{number}", c.pull)
	page("/e/{env}/agents", c.agents)
	page("/e/{env}/executors", c.executors)
	page("/e/{env}/notifications", c.notifications)
	page("/e/{env}/settings", c.settings)
	mux.HandleFunc("GET /e/{env}/runs/{run}/output/{stage}", c.output)
	mux.HandleFunc("GET /e/{env}/dryruns/{dryrun}/value", c.dryRunValue)
	mux.HandleFunc("GET /search", c.search)

	post := func(pattern string, do action) { mux.HandleFunc("POST "+pattern, c.post(do)) }
	mux.HandleFunc("POST /environments", c.createEnvironment)
	post("/e/{env}/compile", c.doCompile)
	post("/e/{env}/deploy", c.doDeploy)
	post("/e/{env}/halt", c.doHalt)
	post("/e/{env}/resume", c.doResume)
	post("/e/{env}/resource/deploy", c.doDeployResource)
	post("/e/{env}/resource/unpark", c.doUnpark)
	post("/e/{env}/git/accept", c.doAccept)
	post("/e/{env}/git/unblock", c.doUnblock)
	post("/e/{env}/rollback", c.doRollBack)
	post("/e/{env}/promote", c.doPromote)
	post("/e/{env}/promote/approve", c.doApprovePromotion)
	post("/e/{env}/promote/pause", c.doPausePromotions)
	post("/e/{env}/promote/resume", c.doResumePromotions)
	post("/e/{env}/override", c.doOverride)
	post("/e/{env}/override/end", c.doEndOverride)
	post("/e/{env}/agents/pause", c.doPause)
	post("/e/{env}/versions/{version}/release", c.doRelease)
	post("/e/{env}/versions/{version}/confirm", c.doConfirm)
	post("/e/{env}/versions/{version}/dryrun", c.doDryRun)
	post("/e/{env}/deliveries/{delivery}/redeliver", c.doRedeliver)
	post("/e/{env}/notifications", c.doNotification)
	post("/e/{env}/dryruns", c.doDryRunCommit)
	post("/e/{env}/dryruns/{dryrun}/cancel", c.doCancelDryRun)
	post("/e/{env}/pulls/{number}/preview", c.doPreviewPull)
	post("/e/{env}/pulls/{number}/approve", c.doApprovePull)
	post("/e/{env}/outbox/retry", c.doRetryOutbox)
	post("/e/{env}/resource/facts", c.doFacts)
	post("/e/{env}/settings/set", c.doSetting)
	post("/e/{env}/settings/source", c.doSource)
	post("/e/{env}/settings/secret", c.doSecret)
	post("/e/{env}/settings/known-hosts", c.doKnownHosts)
	post("/e/{env}/settings/clear", c.doClear)
	post("/e/{env}/settings/delete", c.doDelete)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.failure(w, r, http.StatusNotFound, "There is no such page",
			"The address may be mistyped, or what it named was deleted.",
			"Go to the list of environments and start from there.")
	})
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
