package webhooks

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// repositoryKey is equal for URLs that mean the same repository, and empty for a
// text that means none. A forge names a repository in several ways, and people
// clone from any of them: protocol, user, letter case, the ending .git, slashes at
// the end and the usual ports do not count. Forges that have a host of their own
// for SSH, and the many addresses of Azure DevOps, are known by name.
//
// Two repositories may share a key only if no forge would have both. Where that is
// wrong all the same, an environment looks at its repository in vain.
func repositoryKey(raw string) string {
	raw = strings.TrimSpace(raw)
	if filepath.IsAbs(raw) {
		return localKey(raw)
	}
	if !strings.Contains(raw, "://") {
		return shortKey(raw)
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
		return remoteKey(u.User.Username(), host, u.Path)
	case "ssh", "git", "git+ssh", "ssh+git":
		// The port of the SSH server says nothing about the web server.
		return remoteKey(u.User.Username(), u.Hostname(), u.Path)
	}
	return ""
}

// shortKey is the key of user@host:path, the short form of an SSH URL. The host may
// stand in brackets, with a port: [user@host:port]:path.
func shortKey(raw string) string {
	var host, path string
	var ok bool
	user, rest, found := strings.Cut(raw, "@")
	if !found || strings.ContainsAny(user, `:/\[`) {
		user, rest = "", raw
	}
	if inside, is := strings.CutPrefix(rest, "["); is {
		if host, path, ok = strings.Cut(inside, "]:"); !ok {
			return ""
		}
		if u, after, found := strings.Cut(host, "@"); found {
			user, host = u, after
		}
		if strings.Count(host, ":") == 1 { // more are an IPv6 address
			host, _, _ = strings.Cut(host, ":")
		}
	} else if host, path, ok = strings.Cut(rest, ":"); !ok || strings.ContainsAny(host, `/\`) {
		return ""
	}
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	return remoteKey(user, host, path)
}

// sshHosts are the hosts that forges serve SSH from, for networks that only let
// port 443 pass, and other names of forges.
var sshHosts = map[string]string{
	"ssh.github.com":       "github.com",
	"www.github.com":       "github.com",
	"altssh.gitlab.com":    "gitlab.com",
	"www.gitlab.com":       "gitlab.com",
	"altssh.bitbucket.org": "bitbucket.org",
	"www.bitbucket.org":    "bitbucket.org",
}

func remoteKey(user, host, path string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if usual, is := sshHosts[host]; is {
		host = usual
	}
	names := strings.FieldsFunc(strings.ToLower(path), func(r rune) bool { return r == '/' })
	if len(names) > 0 {
		last := &names[len(names)-1]
		if *last = strings.TrimSuffix(*last, ".git"); *last == "" {
			names = names[:len(names)-1]
		}
	}
	host, names = azureNames(strings.ToLower(user), host, names)
	if host == "" || len(names) == 0 {
		return ""
	}
	return host + "/" + strings.Join(names, "/")
}

// azureNames turns the addresses of one repository on Azure DevOps into one:
//
//	dev.azure.com         ORG/PROJECT/_git/REPO   (with any user)
//	ORG.visualstudio.com  [DefaultCollection/]PROJECT/_git/REPO
//	ssh.dev.azure.com     v3/ORG/PROJECT/REPO
//	vs-ssh.visualstudio.com  v3/ORG/PROJECT/REPO, or [DefaultCollection/]PROJECT/_ssh/REPO with the user ORG
//
// The project is left out of web addresses when it is named like the repository;
// that holds for Azure DevOps Server, which people run themselves, too.
func azureNames(user, host string, names []string) (string, []string) {
	const cloud, old = "dev.azure.com", ".visualstudio.com"
	switch org, isOld := strings.CutSuffix(host, old); {
	case (host == "ssh."+cloud || host == "vs-ssh"+old) && len(names) == 4 && names[0] == "v3":
		host, names = cloud, []string{names[1], names[2], "_git", names[3]}
	case host == "vs-ssh"+old:
		if user == "" {
			return host, names
		}
		host, names = cloud, append([]string{user}, names...)
	case isOld && org != "":
		host, names = cloud, append([]string{org}, names...)
	}
	if host == cloud && len(names) > 1 && names[1] == "defaultcollection" {
		names = slices.Delete(names, 1, 2)
	}
	at := slices.IndexFunc(names, func(name string) bool { return name == "_git" || name == "_ssh" && host == cloud })
	if at < 0 {
		return host, names
	}
	names[at] = "_git"
	if at+2 == len(names)-1 && (names[at+1] == "_full" || names[at+1] == "_optimized") {
		names = slices.Delete(names, at+1, at+2)
	}
	if at+1 != len(names)-1 {
		return host, names
	}
	for repository := names[at+1]; at > 0 && names[at-1] == repository; at-- {
		names = slices.Delete(names, at-1, at)
	}
	return host, names
}

// localKey keeps the ending .git: x and x.git are two folders.
func localKey(path string) string {
	path = filepath.Clean(path)
	if filepath.Base(path) == ".git" {
		path = filepath.Dir(path)
	}
	return "file:" + path
}
