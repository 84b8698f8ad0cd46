// Package webconsole serves a web console of the reference: the files of a folder that somebody built elsewhere, an
// application of one page that speaks to the API.
//
//	/console                        ─▶ /console/
//	/console/<anything>/config.js   ─▶ written for each request: how people log in, which features are on
//	/console/<anything>/<file.ext>  ─▶ that file of the folder: below it, else by its last name alone
//	/console/<anything else>        ─▶ index.html; the application knows what page it stands for
//
// The last name counts because the pages of the application name their files relative to themselves.
package webconsole

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// Path is where the console is served.
const Path = "/console/"

const index = "index.html"

// maxIndex bounds what is read of index.html to find its scripts.
const maxIndex = 4 << 20

// Config says what is served.
type Config struct {
	Folder   string   // has index.html
	Features []string // that the console is to show beyond its usual ones
	// Login reports that people have to log in, with a name and a password.
	Login bool
}

// Console serves the files. It is safe for concurrent use.
type Console struct {
	cfg  Config
	root *os.Root

	lock sync.Mutex
	tags map[string]tag // of files, by name
}

// tag identifies the content of a file as it was at some time.
type tag struct {
	size     int64
	modified time.Time
	etag     string
	scripts  string // the hashes of the scripts within index.html, for the content security policy
}

// New opens the folder. It fails with NotFound if that has no index.html.
func New(cfg Config) (*Console, error) {
	const op = "webconsole.New"
	root, err := os.OpenRoot(cfg.Folder)
	if err == nil {
		if _, err = root.Stat(index); err != nil {
			_ = root.Close()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(op, fault.NotFound, "there is no web console in "+cfg.Folder).
			Hint("put its built files there, index.html among them, or set [web-ui] console-path")
	case err != nil:
		return nil, fault.Disk(op, cfg.Folder, err)
	}
	return &Console{cfg: cfg, root: root, tags: map[string]tag{}}, nil
}

// Close releases the folder.
func (c *Console) Close() error { return c.root.Close() }

// aFile matches the last name of a path that means a file, not a page.
var aFile = regexp.MustCompile(`\.[A-Za-z0-9]{2,5}$`)

func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the web console has pages and files only", http.StatusMethodNotAllowed)
		return
	}
	below, ok := strings.CutPrefix(r.URL.Path, Path)
	if !ok {
		http.Redirect(w, r, Path, http.StatusMovedPermanently)
		return
	}
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache") // asks each time whether the file is still the same
	switch last := path.Base(below); {
	case last == "config.js":
		h.Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = io.WriteString(w, c.config())
	case aFile.MatchString(last):
		if name := path.Clean(below); c.serve(w, r, name) || name != last && c.serve(w, r, last) {
			return
		}
		http.NotFound(w, r)
	case !c.serve(w, r, index):
		http.NotFound(w, r)
	}
}

// config is the module that tells the application about this server.
func (c *Console) config() string {
	var b strings.Builder
	if c.cfg.Login {
		b.WriteString("window.auth = {\"method\": \"database\"};\n")
	}
	features, err := json.Marshal(append([]string{}, c.cfg.Features...))
	if err != nil {
		panic("webconsole: features are texts: " + err.Error())
	}
	b.WriteString("export const features = " + string(features) + ";\n")
	return b.String()
}

// serve answers with a file of the folder; false: there is no such file. Hidden files are not served.
func (c *Console) serve(w http.ResponseWriter, r *http.Request, name string) bool {
	if !fs.ValidPath(name) || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
		return false
	}
	f, err := c.root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	t, err := c.tag(name, f, info)
	if err != nil {
		return false
	}
	w.Header().Set("ETag", t.etag)
	if name == index {
		w.Header().Set("Content-Security-Policy", policy(t.scripts))
		w.Header().Set("X-Frame-Options", "DENY")
	}
	http.ServeContent(w, r, path.Base(name), time.Time{}, f)
	return true
}

// tag returns the tag of an open file, which it reads unless it knows it.
func (c *Console) tag(name string, f io.ReadSeeker, info fs.FileInfo) (tag, error) {
	c.lock.Lock()
	known, ok := c.tags[name]
	c.lock.Unlock()
	if ok && known.size == info.Size() && known.modified.Equal(info.ModTime()) {
		return known, nil
	}
	digest := sha256.New()
	var text strings.Builder
	into := io.Writer(digest)
	if name == index && info.Size() <= maxIndex {
		into = io.MultiWriter(digest, &text)
	}
	if _, err := io.Copy(into, f); err != nil {
		return tag{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return tag{}, err
	}
	known = tag{
		size: info.Size(), modified: info.ModTime(), etag: `"` + hex.EncodeToString(digest.Sum(nil)[:16]) + `"`,
		scripts: scriptHashes(text.String()),
	}
	c.lock.Lock()
	c.tags[name] = known // at most one for each file of the folder
	c.lock.Unlock()
	return known, nil
}

var inlineScript = regexp.MustCompile(`(?is)<script\b([^>]*)>(.*?)</script\s*>`)

// scriptHashes are the sources that allow the scripts within a page, and no others.
func scriptHashes(page string) string {
	var b strings.Builder
	for _, found := range inlineScript.FindAllStringSubmatch(page, -1) {
		if strings.TrimSpace(found[2]) == "" {
			continue
		}
		sum := sha256.Sum256([]byte(found[2]))
		b.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
	}
	return b.String()
}

// policy is the content security policy of the application. It is laxer than that of our own pages, because libraries
// of such applications write styles, make functions from text and start workers from blobs; what is loaded and spoken
// to is this server alone.
func policy(scripts string) string {
	return "default-src 'self'; script-src 'self' 'unsafe-eval'" + scripts + "; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; connect-src 'self'; " +
		"base-uri 'self'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
}
