package gitsync

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// sshPlace is where a repository is reached over SSH.
type sshPlace struct {
	user string // empty: the user name of the credentials
	host string
	port string
	path string // the argument of git-upload-pack; relative to the user's home when it begins with no slash
}

func (s *sshPlace) address() string { return net.JoinHostPort(s.host, s.port) }

// locateSSH parses ssh://user@host:port/path.
func locateSSH(raw string) (place, error) {
	bad := func(what string) (place, error) {
		return place{}, fault.New(opParse, fault.Invalid, "the SSH URL "+what).
			Hint("it should look like ssh://git@host/group/repository.git or git@host:group/repository.git")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return bad("is malformed")
	}
	if u.Hostname() == "" {
		return bad("names no host")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return bad("has a query (?…) or a fragment (#…)")
	}
	at := &sshPlace{host: strings.ToLower(u.Hostname()), port: u.Port(), path: u.Path}
	p := place{ssh: at, host: u.Host}
	if u.User != nil {
		at.user = u.User.Username()
		p.credentials.Password, _ = u.User.Password()
		u.User = url.User(at.user)
		if at.user == "" {
			u.User = nil
		}
	}
	u.Scheme = "ssh"
	p.shown = u.String()
	if err := at.check(); err != "" {
		return bad(err)
	}
	if strings.HasPrefix(at.path, "/~") { // like git: relative to a user's home
		at.path = at.path[1:]
	}
	return p, nil
}

// locateSCP parses user@host:path, the short form of an SSH URL. It returns false for a text that is not of this
// form.
func locateSCP(raw string) (place, bool, error) {
	rest, user := raw, ""
	if u, after, ok := strings.Cut(raw, "@"); ok && !strings.ContainsAny(u, `:/\[`) {
		user, rest = u, after
	}
	var host, path string
	if after, ok := strings.CutPrefix(rest, "["); ok { // an IPv6 address
		if host, path, ok = strings.Cut(after, "]:"); !ok {
			return place{}, false, nil
		}
	} else if host, path, ok = strings.Cut(rest, ":"); !ok || strings.ContainsAny(host, `/\`) {
		return place{}, false, nil
	}
	at := &sshPlace{user: user, host: strings.ToLower(host), path: path}
	if what := at.check(); what != "" {
		return place{}, true, fault.New(opParse, fault.Invalid, "the SSH URL "+what).
			Hint("it should look like git@host:group/repository.git")
	}
	return place{shown: raw, host: at.host, ssh: at}, true, nil
}

// check fills in the default port. It returns what is wrong, or an empty text.
func (s *sshPlace) check() string {
	if s.port == "" {
		s.port = "22"
	}
	if n, err := strconv.Atoi(s.port); err != nil || n < 1 || n > 65535 {
		return "has a port that is not a number"
	}
	switch {
	case s.host == "" || strings.HasPrefix(s.host, "-") || strings.ContainsAny(s.host, " '\"@,*?!"):
		return "names no host"
	case strings.HasPrefix(s.user, "-") || strings.ContainsAny(s.user, " '\":@"):
		return "names a user that cannot exist"
	case strings.Trim(s.path, "/") == "" || strings.HasPrefix(s.path, "-"), strings.HasPrefix(s.path, ":"):
		return "names no repository"
	}
	return ""
}

// key is equal for spellings that certainly mean the same repository.
func (s *sshPlace) key() string {
	path := s.path
	if !strings.HasPrefix(path, "/") {
		path = "/./" + path
	}
	return "ssh://" + s.user + "@" + s.address() + strings.TrimRight(path, "/")
}
