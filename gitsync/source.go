package gitsync

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
)

// Credentials prove to a remote who is asking. They are masked wherever they are
// printed or logged.
type Credentials struct {
	Username      string
	Password      string // or a token
	SSHKey        string // a private key, as ssh-keygen writes it
	SSHPassphrase string // of SSHKey, when that is encrypted
}

// String hides the credentials.
func (c Credentials) String() string {
	if c == (Credentials{}) {
		return "no credentials"
	}
	return secret.Mask
}

// GoString hides them from %#v too.
func (c Credentials) GoString() string { return c.String() }

// LogValue hides them from structured logs.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// redactor masks the credentials. A long user name without a password counts as a
// token, because several forges accept one there.
func (c Credentials) redactor() *secret.Redactor {
	secrets := []string{c.Password}
	if c.Password == "" && c.SSHKey == "" && len(c.Username) >= 12 {
		secrets[0] = c.Username
	}
	for _, s := range []string{c.SSHKey, c.SSHPassphrase} {
		if s != "" {
			secrets = append(secrets, s)
		}
	}
	return secret.NewRedactor(secrets...)
}

// Trust says how a remote is reached, and how it has to prove its identity.
type Trust struct {
	// KnownHosts holds the keys of SSH servers, in the lines of OpenSSH's known_hosts.
	KnownHosts string
	// AcceptNew accepts the key of an SSH server that KnownHosts has no key of,
	// and passes it to Config.Learned. A key that has changed is refused all the same.
	AcceptNew bool
	// Scope says whose KnownHosts these are; Config.Learned gets it back. Sources with different scopes have separate
	// mirrors, so that nobody reads what only somebody else has the credentials for.
	Scope string
	// CABundle holds certificates, in PEM, of authorities to trust besides those of the machine.
	CABundle string
	// Proxy is the URL of a proxy (http, https or socks5). When it is empty, the
	// environment variables of this process decide (HTTPS_PROXY and so on).
	Proxy string
}

// String hides the trust, because the URL of the proxy may hold a password.
func (t Trust) String() string { return "trust" }

// GoString hides it from %#v too.
func (t Trust) GoString() string { return t.String() }

// Source is where intent is committed, and how to get at it. It is comparable:
// equal sources are fetched in the same way.
type Source struct {
	// URL is an http(s)://, ssh:// or file:// URL, user@host:path, or an absolute
	// path. It should hold no credentials: ParseSource moves them out of it.
	URL string
	// Branch is a branch, a tag, a full commit hash, or semver: and a range, for
	// the highest tag in that range. When it is empty, the default branch is meant.
	Branch string
	// Abbreviated allows Branch to be the beginning of a commit hash, of 4 digits or more.
	Abbreviated bool

	Credentials Credentials
	Trust       Trust

	// Depth is the number of commits of history that the first fetch brings; 0
	// for all of them. Local repositories are always read whole.
	Depth int
	// Only restricts what is fetched to one branch or tag (HEAD for the default
	// branch), and to Branch beside it; empty for all branches and tags.
	Only string
	// Submodules are checked out too.
	Submodules bool
	// MaxFile is the largest size, in bytes, of a file that is checked out; 0 for no limit.
	MaxFile int64
}

// ParseSource reads a URL as a person writes it, and moves the credentials in it
// to Source.Credentials. It sets no other fields. A URL that can never be fetched
// from is an Invalid fault.
func ParseSource(raw string) (Source, error) {
	p, err := locate(raw)
	if err != nil {
		return Source{}, err
	}
	return Source{URL: p.shown, Credentials: p.credentials}, nil
}

// place is a parsed Source.
type place struct {
	shown       string    // the URL as the person wrote it, without credentials
	local       string    // path of a local repository; empty for a remote one
	host        string    // of a remote repository
	ssh         *sshPlace // for a repository that is reached over SSH
	credentials Credentials
	also        []string // references that are fetched in addition to branches and tags
	trust       Trust
	depth       int
	only        string
	branch      string // is fetched in addition to only
	submodules  bool
	maxFile     int64
}

// wants reports whether a reference is fetched.
func (p place) wants(name string) bool { return mirrored(name) || slices.Contains(p.also, name) }

// key is the same for all spellings of a URL that certainly mean the same repository.
func (p place) key() string {
	if p.local != "" {
		return "file://" + p.local
	}
	if p.ssh != nil {
		return p.ssh.key()
	}
	u, err := url.Parse(p.shown)
	if err != nil {
		return p.shown
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u.String()
}

// SameHost reports whether two repositories are on the same server, so that one may
// see the credentials of the other: they have the same protocol, host and port.
// Local repositories have no host.
func SameHost(a, b string) bool {
	p, errA := locate(a)
	q, errB := locate(b)
	return errA == nil && errB == nil && p.sameHost(q)
}

func (p place) sameHost(q place) bool {
	switch {
	case p.local != "" || q.local != "":
		return false
	case p.ssh != nil && q.ssh != nil:
		return p.ssh.address() == q.ssh.address()
	case p.ssh != nil || q.ssh != nil:
		return false
	}
	scheme := func(p place) string { s, _, _ := strings.Cut(p.shown, "://"); return strings.ToLower(s) }
	port := map[string]string{"http": ":80", "https": ":443"}[scheme(p)]
	return scheme(p) == scheme(q) &&
		strings.EqualFold(strings.TrimSuffix(p.host, port), strings.TrimSuffix(q.host, port))
}

// MirrorPath returns the folder of a repository's mirror for sources without a scope: a hash and ".git".
func (s *Syncer) MirrorPath(rawURL string) string { return s.scopedPath(rawURL, "") }

// MirrorOf returns the folder of the mirror of a source that is fetched whole.
func (s *Syncer) MirrorOf(src Source) string { return s.scopedPath(src.URL, src.Trust.Scope) }

func (s *Syncer) scopedPath(rawURL, scope string) string {
	key := rawURL
	if p, err := locate(rawURL); err == nil {
		key = p.key()
	}
	if scope != "" {
		key += "\x00" + scope
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.cfg.Mirrors, hex.EncodeToString(sum[:16])+".git")
}

// mirrorDir returns the folder of a place's mirror. There are separate mirrors for
// fetching only a part of a repository.
func (s *Syncer) mirrorDir(p place) string {
	dir := s.scopedPath(p.shown, p.trust.Scope)
	if p.depth == 0 && p.only == "" {
		return dir
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d %s", p.depth, p.only)))
	return strings.TrimSuffix(dir, ".git") + "-" + hex.EncodeToString(sum[:6]) + ".git"
}

const opParse = "gitsync.ParseSource"

// locate parses the URL. Credentials of the Source take precedence over those in its URL.
func (s Source) locate() (place, error) {
	p, err := locate(s.URL)
	if err == nil && s.Credentials != (Credentials{}) {
		p.credentials = s.Credentials
	}
	p.trust, p.depth, p.only, p.submodules, p.maxFile = s.Trust, max(s.Depth, 0), s.Only, s.Submodules, s.MaxFile
	if p.local != "" {
		p.depth, p.only = 0, ""
	}
	if strings.HasPrefix(p.only, rangePrefix) || plumbing.IsHash(p.only) {
		p.only = "" // any branch or tag may contain it
	}
	return p, err
}

// locate parses the URL of a repository.
func locate(raw string) (place, error) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return place{}, fault.New(opParse, fault.Invalid, "the Git URL is empty").
			Hint("give an https:// or ssh:// URL, a file:// URL or an absolute path")
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return place{}, fault.New(opParse, fault.Invalid,
			"the Git URL holds a control character, such as a line break").
			Hint("copy it again from the repository's page")
	}
	if filepath.IsAbs(raw) {
		return place{shown: filepath.Clean(raw), local: filepath.Clean(raw)}, nil
	}
	scheme, _, isURL := strings.Cut(raw, "://")
	if !isURL {
		if p, is, err := locateSCP(raw); is {
			return p, err
		}
		return place{}, fault.New(opParse, fault.Invalid, "the Git URL is neither a URL nor an absolute path").
			Hint("give an https:// or ssh:// URL, a file:// URL or an absolute path; " +
				"relative paths would depend on where the server was started")
	}
	switch strings.ToLower(scheme) {
	case "http", "https":
		return locateHTTP(raw)
	case "file":
		return locateFile(raw)
	case "ssh", "git+ssh", "ssh+git":
		return locateSSH(raw)
	}
	return place{}, fault.New(opParse, fault.Invalid,
		"Git URLs that begin with "+printable(scheme)+":// are not supported").
		Hint("use an https:// or ssh:// URL, a file:// URL or an absolute path")
}

func locateHTTP(raw string) (place, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse quotes the URL with its credentials.
		var reason *url.Error
		if errors.As(err, &reason) {
			err = reason.Err
		}
		f := fault.New(opParse, fault.Invalid, "the Git URL is malformed")
		if !strings.Contains(raw, "@") {
			f = fault.Wrap(opParse, fault.Invalid, err).Say("the Git URL is malformed")
		}
		return place{}, f.Hint(
			"write special characters of a user name or password as %XX, or set the credentials apart from the URL",
		)
	}
	if u.Hostname() == "" {
		return place{}, fault.New(opParse, fault.Invalid, "the Git URL names no host").
			Hint("it should look like https://host/group/repository.git")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return place{}, fault.New(opParse, fault.Invalid, "the Git URL has a query (?…) or a fragment (#…)").
			Hint("remove it; set tokens as the environment's Git credentials, and the branch as its branch")
	}
	p := place{host: u.Host}
	if u.User != nil {
		p.credentials.Username = u.User.Username()
		p.credentials.Password, _ = u.User.Password()
		u.User = nil
	}
	p.shown = u.String()
	return p, nil
}

func locateFile(raw string) (place, error) {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return place{}, fault.New(opParse, fault.Invalid, "the file:// URL is malformed").
			Hint("write it as file:///absolute/path, with special characters as %XX; or give the absolute path alone")
	}
	if u.Host != "" && !strings.EqualFold(u.Host, "localhost") {
		return place{}, fault.New(opParse, fault.Invalid, "the file:// URL names a host").
			Hint("write it with three slashes: file:///absolute/path")
	}
	if !filepath.IsAbs(u.Path) {
		return place{}, fault.New(opParse, fault.Invalid, "the file:// URL holds no absolute path").
			Hint("write it as file:///absolute/path")
	}
	return place{
		shown: (&url.URL{Scheme: "file", Path: filepath.Clean(u.Path)}).String(),
		local: filepath.Clean(u.Path),
	}, nil
}

// printable makes a stranger's text one line of at most 100 bytes.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '?'
		}
		return r
	}, s)
	if len(s) > 100 {
		s = strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}
