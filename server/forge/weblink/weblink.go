// Package weblink turns the remote of an environment into links to the pages of its forge: a commit, a line of a file,
// the repository itself.
//
//	remote (https, ssh, user@host:path) + settings forge, forge_api ──▶ Site ──▶ https://host/group/name/commit/4c81d2
//
// Each forge has a dialect of its own. A Site exists only if the name of the host says which forge it is, or the
// setting does; the zero Site returns no links. Links are https, and hold nothing of the remote but its host and path:
// a user name, a password, a query never get into them.
package weblink

import (
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"ordain.dev/ordain/internal/intent"
)

// dialect says how a forge writes the addresses below a repository.
type dialect struct {
	hosts        []string // what the name of a host contains
	commit, file string   // followed by the commit
	line         string   // fragment, followed by the number of the line
}

var dialects = map[string]dialect{
	"github":    {[]string{"github"}, "/commit/", "/blob/", "L"},
	"gitlab":    {[]string{"gitlab"}, "/-/commit/", "/-/blob/", "L"},
	"gitea":     {[]string{"gitea", "forgejo", "codeberg"}, "/commit/", "/src/commit/", "L"},
	"bitbucket": {[]string{"bitbucket"}, "/commits/", "/src/", "lines-"},
}

// Site is a repository on a forge.
type Site struct {
	home    string // https://host/group/name, escaped
	dialect dialect
}

// OfEnvironment returns the site of an environment's repository.
func OfEnvironment(e intent.Environment) Site {
	return Of(e.Source.URL, e.Text("forge"), e.Text("forge_api"))
}

// Of returns the site of a remote. kind is the setting forge: auto, none, or the name of a dialect; api is the setting
// forge_api, whose host is that of the pages if the remote's is another.
func Of(remote, kind, api string) Site {
	host, repository, ok := split(remote)
	if !ok || kind == "none" {
		return Site{}
	}
	base := "https://" + host
	if at, ok := webOf(api); ok {
		base = at
		host, _, _ = strings.Cut(strings.TrimPrefix(at, "https://"), "/")
	}
	if kind == "" || kind == "auto" {
		kind = guess(host)
	}
	d, ok := dialects[kind]
	if !ok {
		return Site{}
	}
	return Site{home: base + (&url.URL{Path: "/" + repository}).EscapedPath(), dialect: d}
}

// split returns the host and the path of a remote: https://, ssh:// or user@host:path. A port of SSH is not that of the
// pages.
func split(remote string) (host, repository string, ok bool) {
	text := strings.TrimSpace(remote)
	if !strings.Contains(text, "://") {
		before, after, found := strings.Cut(text, ":")
		if !found || strings.ContainsAny(before, `/\`) {
			return "", "", false
		}
		text = "ssh://" + before + "/" + after
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", "", false
	}
	switch u.Scheme {
	case "https":
		host = u.Host
	case "ssh", "git+ssh", "ssh+git":
		host = u.Hostname()
	default:
		return "", "", false
	}
	host = strings.ToLower(host)
	repository = strings.TrimSuffix(strings.Trim(path.Clean("/"+u.Path), "/"), ".git")
	return host, repository, hostName().MatchString(host) && strings.Contains(repository, "/")
}

var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)
})

// webOf returns the address of a forge's pages, given that of its API; false for hosts that serve the API alone.
func webOf(api string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(api))
	if err != nil || u.Scheme != "https" || u.User != nil || !hostName().MatchString(strings.ToLower(u.Host)) ||
		strings.HasPrefix(u.Host, "api.") {
		return "", false
	}
	at := strings.TrimRight(u.Path, "/")
	for _, end := range []string{"/api/v1", "/api/v3", "/api/v4"} {
		at = strings.TrimSuffix(at, end)
	}
	return "https://" + strings.ToLower(u.Host) + (&url.URL{Path: at}).EscapedPath(), true
}

// guess returns the kind of the forge whose name is in that of a host, or nothing.
func guess(host string) string {
	name, _, _ := strings.Cut(host, ":")
	for kind, d := range dialects {
		for _, word := range d.hosts {
			if strings.Contains(name, word) {
				return kind
			}
		}
	}
	return ""
}

// Known reports whether there are links at all.
func (s Site) Known() bool { return s.home != "" }

// Home returns the address of the repository, or nothing.
func (s Site) Home() string { return s.home }

var isCommit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{7,64}$`) })

// Commit returns the address of a commit, or nothing.
func (s Site) Commit(commit string) string {
	if !s.Known() || !isCommit().MatchString(commit) {
		return ""
	}
	return s.home + s.dialect.commit + commit
}

// File returns the address of a line of a file as a commit has it, or nothing. The path begins at the top of the
// repository; line 0 is the file as a whole.
func (s Site) File(commit, file string, line int) string {
	clean := path.Clean("/" + file)[1:]
	if !s.Known() || !isCommit().MatchString(commit) || clean == "" || clean != file {
		return ""
	}
	at := s.home + s.dialect.file + commit + (&url.URL{Path: "/" + clean}).EscapedPath()
	if line > 0 {
		at += "#" + s.dialect.line + strconv.Itoa(line)
	}
	return at
}
