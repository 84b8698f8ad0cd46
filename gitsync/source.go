package gitsync

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
)

// Credentials are what a remote asks to see: a user name and a password, or a
// token as the password. They print masked.
type Credentials struct {
	Username string
	Password string
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

// redactor masks the credentials. A long user name alone is a token, as
// several forges take it.
func (c Credentials) redactor() *secret.Redactor {
	if c.Password == "" && len(c.Username) >= 12 {
		return secret.NewRedactor(c.Username)
	}
	return secret.NewRedactor(c.Password)
}

// Source is where intent is committed.
type Source struct {
	URL         string // http(s):// or file:// URL, or an absolute path; ParseSource takes credentials out of it
	Branch      string // branch, tag or full commit; empty: the default branch
	Credentials Credentials
}

// ParseSource reads a URL as a person gives it. Credentials in it go to their
// own field. A URL that can never be fetched from is a fault.
func ParseSource(raw string) (Source, error) {
	p, err := locate(raw)
	if err != nil {
		return Source{}, err
	}
	return Source{URL: p.shown, Credentials: p.credentials}, nil
}

// place is a URL that was understood.
type place struct {
	shown       string // as the person wrote it, without credentials
	local       string // path of a local repository; empty for a remote one
	host        string // of a remote one
	credentials Credentials
}

// key is equal for spellings that certainly mean the same repository.
func (p place) key() string {
	if p.local != "" {
		return "file://" + p.local
	}
	u, err := url.Parse(p.shown)
	if err != nil {
		return p.shown
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u.String()
}

// MirrorName gives the folder name of a repository's mirror: a hash and ".git".
func MirrorName(rawURL string) string {
	key := rawURL
	if p, err := locate(rawURL); err == nil {
		key = p.key()
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16]) + ".git"
}

// Below gives a Config.MirrorDir that keeps all mirrors in one folder.
func Below(base string) func(url string) string {
	return func(url string) string { return filepath.Join(base, MirrorName(url)) }
}

const opParse = "gitsync.ParseSource"

// locate understands the URL; credentials of the Source come before those in its URL.
func (s Source) locate() (place, error) {
	p, err := locate(s.URL)
	if err == nil && s.Credentials != (Credentials{}) {
		p.credentials = s.Credentials
	}
	return p, err
}

func locate(raw string) (place, error) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return place{}, fault.New(opParse, fault.Invalid, "the Git URL is empty").
			Hint("give an https:// URL, a file:// URL or an absolute path")
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return place{}, fault.New(opParse, fault.Invalid, "the Git URL holds a control character, such as a line break").
			Hint("copy it again from the repository's page")
	}
	if filepath.IsAbs(raw) {
		return place{shown: filepath.Clean(raw), local: filepath.Clean(raw)}, nil
	}
	scheme, _, isURL := strings.Cut(raw, "://")
	if !isURL {
		return place{}, notAURL(raw)
	}
	switch strings.ToLower(scheme) {
	case "http", "https":
		return locateHTTP(raw)
	case "file":
		return locateFile(raw)
	case "ssh", "git+ssh", "ssh+git":
		return place{}, sshFault()
	}
	return place{}, fault.New(opParse, fault.Invalid, "Git URLs that begin with "+printable(scheme)+":// are not supported").
		Hint("use an https:// URL, a file:// URL or an absolute path")
}

func locateHTTP(raw string) (place, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse quotes its input, credentials and all.
		var reason *url.Error
		if errors.As(err, &reason) {
			err = reason.Err
		}
		f := fault.New(opParse, fault.Invalid, "the Git URL is malformed")
		if !strings.Contains(raw, "@") {
			f = fault.Wrap(opParse, fault.Invalid, err).Say("the Git URL is malformed")
		}
		return place{}, f.Hint("write special characters of a user name or password as %XX, or set the credentials apart from the URL")
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
	return place{shown: (&url.URL{Scheme: "file", Path: filepath.Clean(u.Path)}).String(), local: filepath.Clean(u.Path)}, nil
}

func notAURL(raw string) error {
	// user@host:path, the short form of an SSH URL.
	if host, _, ok := strings.Cut(raw, ":"); ok && !strings.ContainsAny(host, `/\`) {
		return sshFault()
	}
	return fault.New(opParse, fault.Invalid, "the Git URL is neither a URL nor an absolute path").
		Hint("give an https:// URL, a file:// URL or an absolute path; relative paths would depend on where the server was started")
}

func sshFault() error {
	return fault.New(opParse, fault.Invalid, "Git over SSH is not supported yet").
		Hint("use the repository's https:// URL, with a token as the password when it is private")
}

// printable keeps what a stranger sent short and on one line.
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
