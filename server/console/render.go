package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

//go:embed templates static
var files embed.FS

// view is a page that is ready to be rendered: its template, the data of the template, and the fragments that move.
type view struct {
	template  string
	data      any
	fragments []fragment
	rendered  map[string]string // fragments that are rendered already, by id
	pace      time.Duration     // the shortest time between two updates; 0: as for other pages
	again     time.Duration     // after how long the browser loads the page again; 0: never
}

// fragment is one element of a page, with a template of its own. The id of the element is that of the fragment.
type fragment struct {
	id       string
	template string
	data     any
}

// loader returns the view of a page for a request.
type loader func(*http.Request) (view, error)

// templates returns the set of each page: the layout, the shared parts, and the page itself. A set is copied from what
// the process parsed, for the clock of the console, when it is asked for first.
type templates map[string]func() (*template.Template, error)

func parseTemplates(now func() time.Time) (templates, error) {
	parsed, err := parsedTemplates()
	if err != nil {
		return nil, err
	}
	out := templates{}
	for name, page := range parsed {
		out[name] = sync.OnceValues(func() (*template.Template, error) {
			set, err := page.Clone()
			if err != nil {
				return nil, err
			}
			return set.Funcs(functions(now)), nil
		})
	}
	return out, nil
}

// parsedTemplates are the sets of all pages. They are copied and never executed: what was executed cannot be copied.
var parsedTemplates = sync.OnceValues(func() (map[string]*template.Template, error) {
	pages, err := fs.Glob(files, "templates/page-*.html")
	if err != nil {
		return nil, err
	}
	base, err := template.New("").Funcs(functions(time.Now)).ParseFS(files, "templates/layout.html",
		"templates/parts*.html", "templates/cluster_admin_parts.html")
	if err != nil {
		return nil, err
	}
	out := map[string]*template.Template{}
	for _, page := range pages {
		set, err := base.Clone()
		if err == nil {
			set, err = set.ParseFS(files, page)
		}
		if err != nil {
			return nil, err
		}
		out[strings.TrimSuffix(strings.TrimPrefix(path.Base(page), "page-"), ".html")] = set
	}
	return out, nil
})

// execute writes a template of the set of a page.
func (t templates) execute(w io.Writer, page, name string, data any) error {
	load, ok := t[page]
	if !ok {
		return fmt.Errorf("there is no page %q", page)
	}
	set, err := load()
	if err != nil {
		return err
	}
	return set.ExecuteTemplate(w, name, data)
}

// page serves a page, or its stream.
func (c *console) page(v access.Verb, load loader) http.HandlerFunc {
	load = c.guardedLoad(v, load)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("live") {
			if admitted, err := c.admit(r, v); err != nil {
				c.fail(w, admitted, err)
				return
			}
			r = r.WithContext(keepHomeOrder(r.Context()))
			c.stream(w, r, load, func() error { // it admits r again before each update
				_, err := c.admit(r, v)
				return err
			})
			return
		}
		r = takeFlash(w, r)
		page, err := load(r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		c.render(w, r, http.StatusOK, page)
	}
}

// render sends a whole page. It renders the page before it sends the first byte, so that a failure cannot leave half a
// page.
func (c *console) render(w http.ResponseWriter, r *http.Request, code int, v view) {
	var b bytes.Buffer
	if err := c.templates.execute(&b, v.template, "layout", v.data); err != nil {
		c.log.Error("a page cannot be rendered", "path", r.URL.Path, "error", err)
		http.Error(w, "This page cannot be shown; the server's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.again > 0 {
		w.Header().Set("Refresh", strconv.Itoa(max(1, int(v.again.Seconds()))))
	}
	w.WriteHeader(code)
	// An error here means that the browser went away.
	_, _ = w.Write(b.Bytes())
}

func (c *console) renderFragment(v view, f fragment) (string, error) {
	if html, ok := v.rendered[f.id]; ok {
		return html, nil
	}
	var b bytes.Buffer
	if err := c.templates.execute(&b, v.template, f.template, f.data); err != nil {
		return "", fmt.Errorf("fragment %s: %w", f.id, err)
	}
	return strings.TrimSpace(b.String()), nil
}

// failurePage says what went wrong, what it means, and what to do.
type failurePage struct {
	frame
	What, Why, Do string
}

func (c *console) failure(w http.ResponseWriter, r *http.Request, code int, what, why, do string) {
	f := c.strangerFrame(what)
	var err error
	if r, err = access.Enter(c.auth, r); err == nil && access.Of(r.Context()).Known() {
		f, err = c.frame(r, what, "")
	}
	if err != nil { // not even the list of environments can be read
		f = frame{Title: what, Assets: c.assets.paths, Version: c.program}
	}
	f.Live = false
	c.render(w, r, code, view{template: "failure", data: failurePage{frame: f, What: what, Why: why, Do: do}})
}

// fail shows an error. Strangers are sent to the login.
func (c *console) fail(w http.ResponseWriter, r *http.Request, err error) {
	if fault.Is(err, fault.Unauthorized) && !access.Of(r.Context()).Known() {
		if r.URL.Query().Has("live") { // the script then loads the page again
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: gone\ndata: reload\n\n") // it fails when the browser has gone away
			return
		}
		http.Redirect(w, r, loginAddress(r), http.StatusSeeOther)
		return
	}
	code, what, why, do := c.meaning(r, err)
	if do == "" {
		do = "Try again; if it fails again, look into the server's log."
	}
	c.failure(w, r, code, what, why, do)
}

// meaning says what an error means to a person: the status of the answer, what happened, why, and what to do.
func (c *console) meaning(r *http.Request, err error) (code int, what, why, do string) {
	code, what = http.StatusInternalServerError, "Something went wrong in the server"
	why = "The text of this error may hold anything, so it is only in the server's log."
	do = "Try again; if it fails again, look into the server's log."
	var f *fault.Error
	if errors.As(err, &f) {
		do = f.Advice
		shown := *f
		shown.Advice = ""
		why = shown.Error()
	}
	switch fault.KindOf(err) {
	case fault.Invalid:
		code, what = http.StatusBadRequest, "This cannot be done as asked"
	case fault.Unauthorized:
		code, what = http.StatusUnauthorized, "You have to log in"
	case fault.TooMany:
		code, what = http.StatusTooManyRequests, "This was tried too often"
	case fault.Forbidden:
		code, what = http.StatusForbidden, "This is not allowed"
	case fault.NotFound:
		code, what = http.StatusNotFound, "This does not exist"
	case fault.Conflict:
		code, what = http.StatusConflict, "This cannot be done now"
	case fault.Unavailable, fault.Exhausted:
		code, what = http.StatusServiceUnavailable, "The server cannot answer right now"
	default:
		c.log.Error("a page failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	return code, what, why, do
}

// assets are the style sheet, the script and the icon, under names that change with their content, so that browsers may
// keep them forever.
type assets struct {
	content map[string][]byte // by request path
	paths   assetPaths
}

type assetPaths struct {
	CSS, JS, Icon string
}

func loadAssets() (assets, error) {
	a := assets{content: map[string][]byte{}}
	for name, path := range map[string]*string{
		"console.css": &a.paths.CSS, "console.js": &a.paths.JS, "icon.svg": &a.paths.Icon,
	} {
		content, err := files.ReadFile("static/" + name)
		if err != nil {
			return a, err
		}
		sum := sha256.Sum256(content)
		*path = "/static/" + hex.EncodeToString(sum[:6]) + "/" + name
		a.content[*path] = content
	}
	return a, nil
}

// ServeHTTP sends an asset.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := a.content[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	// An error here means that the browser went away.
	_, _ = w.Write(content)
}
