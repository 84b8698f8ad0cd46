package webhooks

import (
	"net/url"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Targets are environments by the repositories that they use.
type Targets struct{ byKey map[string][]match }

// match is an environment that uses a repository, for its source or for a module.
type match struct {
	*Target
	module string // empty for its source
}

// NewTargets sorts environments by the repositories that they use.
func NewTargets(targets []Target) *Targets {
	t := &Targets{byKey: map[string][]match{}}
	for i := range targets {
		target := &targets[i]
		t.add(target, target.Source.URL, "")
		for _, m := range target.Modules {
			t.add(target, m.URL, m.Name)
		}
	}
	return t
}

func (t *Targets) add(target *Target, url, module string) {
	if key := repositoryKey(url); key != "" {
		t.byKey[key] = append(t.byKey[key], match{target, module})
	}
}

// of finds the environments that use one of these URLs, each once. Forges
// name a repository in several ways, and people choose one of them; so
// protocol, user, letter case and the ending .git do not count. A match gives
// no right: that is what secrets are for.
func (t *Targets) of(urls []string) []match {
	var found []match
	seen := map[intent.EnvironmentID]bool{}
	for _, u := range urls {
		for _, m := range t.byKey[repositoryKey(u)] {
			if !seen[m.Environment] {
				seen[m.Environment] = true
				found = append(found, m)
			}
		}
	}
	return found
}

// repositoryKey is equal for URLs that mean the same repository; empty when
// the text means none.
func repositoryKey(raw string) string {
	raw = strings.TrimSpace(raw)
	if filepath.IsAbs(raw) {
		return localKey(raw)
	}
	if !strings.Contains(raw, "://") {
		// user@host:path
		host, path, ok := strings.Cut(raw, ":")
		if _, after, found := strings.Cut(host, "@"); found {
			host = after
		}
		if !ok || strings.ContainsAny(host, `/\`) {
			return ""
		}
		return remoteKey(host, path)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" && !strings.EqualFold(u.Host, "localhost") || !filepath.IsAbs(u.Path) {
			return ""
		}
		return localKey(u.Path)
	case "http", "https":
		host := u.Hostname()
		if port := u.Port(); port != "" && port != "80" && port != "443" {
			host += ":" + port
		}
		return remoteKey(host, u.Path)
	case "ssh", "git", "git+ssh", "ssh+git":
		return remoteKey(u.Hostname(), u.Path) // its port says nothing of the web server's
	}
	return ""
}

func remoteKey(host, path string) string {
	path = strings.Trim(path, "/")
	path = strings.TrimSuffix(strings.TrimSuffix(path, ".git"), "/")
	if host == "" || path == "" {
		return ""
	}
	return strings.ToLower(host + "/" + path)
}

// localKey is exact: x and x.git are two folders.
func localKey(path string) string {
	path = filepath.Clean(path)
	if filepath.Base(path) == ".git" {
		path = filepath.Dir(path)
	}
	return "file:" + path
}
