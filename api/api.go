// Package api is the door for programs: Inmanta's REST API, version 1 and 2,
// over the server's verbs. Existing clients work against it unchanged.
//
//	request ─▶ arguments (path + query + body, one set) ─▶ a typed struct
//	                                                            │ one function per call
//	answer  ◀─ envelope (v1 under its key, v2 under data) ◀─ control
//
// A call is declared once, in the table of its file, by verb, path and a
// function of a struct of arguments. The struct's tags say which arguments the
// call knows; all the common rules (unknown arguments, environments, paging,
// errors, headers) are applied around it and nowhere else.
package api

import (
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// MaxBody is the largest request body, also after decompression.
const MaxBody = 100 << 20

// Config is what the API is made of. Control, Store and Logger are needed.
type Config struct {
	Control *control.Control // decides
	Store   *store.Store     // reads
	Logger  *slog.Logger
	// Version is the program's own.
	Version string
	// MaxBody limits request bodies in bytes; 0 means MaxBody.
	MaxBody int64
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
	log        *slog.Logger
	maxBody    int64
	factExpire time.Duration
	now        func() time.Time
}

// New makes the handler. It serves full paths: /api/v1/… and /api/v2/….
func New(cfg Config) (http.Handler, error) {
	if cfg.Control == nil || cfg.Store == nil || cfg.Logger == nil {
		return nil, errors.New("api.New: Control, Store and Logger are needed")
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = MaxBody
	}
	if cfg.FactExpire == 0 {
		cfg.FactExpire = time.Hour
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &server{
		control: cfg.Control, store: cfg.Store, version: cfg.Version, log: cfg.Logger,
		maxBody: cfg.MaxBody, factExpire: cfg.FactExpire, now: cfg.Now,
	}
	g := newRouter()
	s.projects(g)
	s.environments(g)
	s.secrets(g)
	s.settings(g)
	s.compiles(g)
	s.versions(g)
	s.holds(g)
	s.pulls(g)
	s.dryRuns(g)
	s.resources(g)
	s.states(g)
	s.deliveries(g)
	s.discovered(g)
	s.gates(g)
	s.git(g)
	s.promotions(g)
	s.agents(g)
	s.executors(g)
	s.notifications(g)
	s.parameters(g)
	s.facts(g)
	s.files(g)
	s.status(g)
	return options(compress(g)), nil
}

// newRouter returns a router that matches paths as they are written: a resource
// id is one segment, percent-encoded, and an encoded slash in it does not split.
// arguments.go decodes the values, once.
func newRouter() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // prints nothing
	g := gin.New()
	g.UseEscapedPath, g.UnescapePathValues, g.RedirectTrailingSlash = true, false, false
	g.HandleMethodNotAllowed = true
	g.NoRoute(func(c *gin.Context) { htmlError(c.Writer, http.StatusNotFound) })
	g.NoMethod(func(c *gin.Context) { htmlError(c.Writer, http.StatusMethodNotAllowed) })
	return g
}

// htmlError is what unknown paths and wrong verbs get: a page, not JSON.
func htmlError(w http.ResponseWriter, code int) {
	what := http.StatusText(code)
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(
		w,
		"<!doctype html><html lang=\"en\"><title>"+what+"</title><body>"+what+"</body></html>\n",
	) // who asked went away
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
		h.Set("Access-Control-Allow-Headers", "Content-Type, "+tidHeader)
		w.WriteHeader(http.StatusOK)
	})
}

var gzips = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// compress sends answers with content in gzip to clients that ask for it.
func compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !acceptsGzip(r.Header.Values("Accept-Encoding")) || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		cw := &gzipWriter{ResponseWriter: w}
		defer cw.close()
		next.ServeHTTP(cw, r)
	})
}

func acceptsGzip(values []string) bool {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			name, q, _ := strings.Cut(strings.TrimSpace(one), ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				q = strings.ReplaceAll(q, " ", "")
				return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
			}
		}
	}
	return false
}

// gzipWriter begins to compress with the first byte of a body, so that
// answers without one stay as they are.
type gzipWriter struct {
	http.ResponseWriter
	status int
	gz     *gzip.Writer
}

func (w *gzipWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *gzipWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if w.gz == nil {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Del("Content-Length")
		w.sendHeader()
		w.gz = gzips.Get().(*gzip.Writer)
		w.gz.Reset(w.ResponseWriter)
	}
	return w.gz.Write(p)
}

func (w *gzipWriter) sendHeader() {
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
}

func (w *gzipWriter) close() {
	if w.gz == nil {
		w.sendHeader()
		return
	}
	// A failed close means that the client went away.
	_ = w.gz.Close()
	w.gz.Reset(io.Discard)
	gzips.Put(w.gz)
}
