package console

import (
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/weblink"
)

// commitView is a commit on a page: a link to the forge where that is known, and a button that copies it.
type commitView struct{ Short, Full, URL string }

func commitOf(site weblink.Site, full string) commitView {
	return commitView{Short: short(full), Full: full, URL: site.Commit(full)}
}

// sourceLinks returns the addresses of lines of an environment's model as a commit has it: at the forge, or on a page
// of the console where no forge is known.
type sourceLinks struct {
	env    intent.Environment
	site   weblink.Site
	commit string
	// pending has the files whose authors are still being looked up.
	pending map[string]bool
}

func sourceLinksOf(e intent.Environment, commit string) sourceLinks {
	return sourceLinks{env: e, site: weblink.OfEnvironment(e), commit: commit}
}

// line returns the address of a line. The file is a path in the project's folder; one outside of it has no address.
func (l sourceLinks) line(file string, line int) string {
	if len(l.commit) != 40 || file == "" || path.IsAbs(file) || strings.HasPrefix(path.Clean(file), "..") {
		return ""
	}
	inside := path.Join(l.env.Source.Subdir, file)
	if l.site.Known() {
		return l.site.File(l.commit, inside, line)
	}
	at := envURL(l.env.ID) + "/source?" + url.Values{"commit": {l.commit}, "path": {inside}}.Encode()
	if line > 0 {
		at += "#L" + strconv.Itoa(line)
	}
	return at
}

// places adds the addresses of what diagnostics are about. Modules that are installed beside the model are not in its
// repository.
func (l sourceLinks) places(list []diagnostic) {
	for i, d := range list {
		if !strings.HasPrefix(d.file, "libs/") {
			list[i].PlaceURL = l.line(d.file, d.Line)
		}
		l.places(d.Causes)
	}
}

// sourcePage shows a file of the model as a commit has it.
type sourcePage struct {
	frame
	Path   string
	Commit commitView
	Lines  []string
}

// source shows a file. The address of a line ends in #L and its number.
func (c *console) source(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	commit, file := r.URL.Query().Get("commit"), r.URL.Query().Get("path")
	if file == "" || commit == "" {
		return view{}, fault.New("console.source", fault.NotFound, "the address names no file and commit")
	}
	text, err := c.control.SourceFile(r.Context(), e.ID, commit, file)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, path.Base(file), "git", crumb{Text: "Git", URL: envURL(e.ID) + "/git"},
		crumb{Text: path.Base(file), Mono: true})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	return view{template: "source", data: sourcePage{
		frame: f, Path: file, Commit: commitOf(weblink.OfEnvironment(e), commit),
		Lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n"),
	}}, nil
}

// Number returns the number of a line that has an index.
func (sourcePage) Number(index int) int { return index + 1 }
