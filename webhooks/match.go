package webhooks

import (
	"net/url"
	"path/filepath"
	"strings"
)

// targetsOf finds the environments whose source is one of these URLs. Forges
// name a repository in several ways, and people choose one of them; so
// protocol, user, letter case and the ending .git do not count. A match gives
// no right: that is what secrets are for.
func targetsOf(targets []Target, urls []string) []Target {
	want := map[string]bool{}
	for _, u := range urls {
		if key := repositoryKey(u); key != "" {
			want[key] = true
		}
	}
	var found []Target
	for _, t := range targets {
		if key := repositoryKey(t.Source.URL); key != "" && want[key] {
			found = append(found, t)
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

// follows reports whether an environment with this branch setting follows a
// branch. Without a setting it follows the default one; and any, when the
// forge does not say which that is: the fetch finds out.
func follows(setting, branch, defaultBranch string) bool {
	setting = strings.TrimPrefix(setting, "refs/heads/")
	if setting == "" {
		return defaultBranch == "" || strings.TrimPrefix(defaultBranch, "refs/heads/") == branch
	}
	return setting == branch
}
