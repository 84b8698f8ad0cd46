// Package client speaks to the forge that a repository lies on: it sets the
// states of commits, writes comments on pull requests, reads pull requests, and
// opens pull requests, such as one that reverts a commit. Each forge is spoken to
// through its own Go client.
//
//	forge ──▶ Forge ──▶ go-github │ client-go (GitLab) │ sdk (Gitea, Forgejo) ──▶ one guarded HTTP client
//
// What a forge answers is written by strangers: texts are cut, sizes and times
// bounded, and a token is sent to its own host only.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/reach"
)

// Forge is one repository on its forge. It is safe for concurrent use. Faults
// tell what to do: Unavailable may be tried again, a *LimitedError says when,
// the others are for a person.
type Forge interface {
	// SetStatus says how a commit fares. Saying it again changes nothing.
	SetStatus(ctx context.Context, s Status) error
	// UpsertComment brings the one comment with a marker up to date, and makes
	// it when there is none. id is the comment as it was known; it gives the one that it is now.
	UpsertComment(ctx context.Context, c Comment) (id string, err error)
	// Pull looks a pull request up, and whether its author may write to the repository.
	Pull(ctx context.Context, number int) (Pull, error)
	// Pulls lists the open pull requests towards a branch, the latest first; at most 100.
	Pulls(ctx context.Context, base string) ([]Pull, error)
	// Refs names the references of a pull request at the repository; merge is
	// empty where the forge makes no merge.
	Refs(number int) (head, merge string)
	// Propose opens a pull request that changes files, from a branch of its own; it gives its page. Asked again it
	// gives the one that is open.
	Propose(ctx context.Context, p Proposal) (page string, err error)
	// Protected tells whether the forge keeps the user of the token from pushing commits to a branch, or wants them to
	// be reviewed first. NotFound when there is no such branch.
	Protected(ctx context.Context, branch string) (bool, error)
}

// Status is how a commit fares.
type Status struct {
	Commit      string
	Context     string // who says it, such as ordain/prod/compile
	State       intent.CommitState
	Description string
	URL         string // of the page with the details
}

// Comment is a text on a pull request.
type Comment struct {
	Number int
	ID     string // empty: not known
	Marker string // a line that only this comment has
	Body   string // holds the marker
}

// Pull is a pull or merge request. Strangers wrote all of its texts.
type Pull struct {
	Number  int
	State   intent.PullState
	Title   string
	URL     string
	Author  string
	Fork    bool // the head lies in another repository
	Trusted bool // the author may write to the repository; Pulls does not say
	Base    string
	Head    string // commit
	// Conflicts: the forge says that it does not merge.
	Conflicts bool
}

// Proposal asks for a pull request that changes files.
type Proposal struct {
	What    string           // it is, for messages to people: "the revert"
	Author  gitsync.Identity // of the commit, which Ordain makes; empty: the user of the token makes it alone
	Base    string           // branch
	Tip     string           // commit of Base that Changes are made for
	Branch  string           // to make; no other proposal has it
	Title   string
	Body    string
	Changes []gitsync.Change
}

// message is that of the commit.
func (p Proposal) message() string { return strings.TrimSpace(p.Title + "\n\n" + p.Body) }

// author is that of the commit; nil: the user of the token. Forges take no author without an address.
func (p Proposal) author() *gitsync.Identity {
	if p.Author.Name == "" {
		return nil
	}
	who := p.Author
	if who.Email == "" {
		who.Email = gitsync.Ordain.Email
	}
	return &who
}

// Config says which repository, and how to speak with its forge.
type Config struct {
	Kind  string // auto, github, gitlab or gitea
	URL   string // of the repository
	API   string // base of the API; empty: from the repository's URL
	Token string
	// Proxy and CA are those of the repository; empty: of the machine.
	Proxy string
	CA    string // PEM
	// Timeout bounds one call; 20 seconds when zero.
	Timeout   time.Duration
	UserAgent string
	// Reach says which addresses the forge and the proxy may have; nil: any.
	Reach *reach.Rules
}

// maxTitle bounds the texts of strangers.
const maxTitle = 300

// New makes the Forge of a repository. Nothing is asked yet.
func New(cfg Config) (Forge, error) {
	const op = "forge.New"
	where, err := locate(cfg.URL)
	if err != nil {
		return nil, err
	}
	kind := cfg.Kind
	if kind == "" || kind == "auto" {
		if kind = guess(where.host); kind == "" {
			return nil, fault.New(op, fault.Invalid, "what forge "+where.host+" is cannot be told from its name").
				Hint("say so in the setting forge: github, gitlab or gitea")
		}
	}
	if cfg.Token == "" {
		return nil, fault.New(op, fault.Invalid, "there is no token for the forge").
			Hint("make one that may write statuses and comments, and set it: ordain environment secret ENVIRONMENT " +
				"forge-token")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 20 * time.Second
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "ordain"
	}
	if cfg.API != "" {
		if where.api, err = CheckAPI(cfg.API); err != nil {
			return nil, err
		}
	}
	if where.api == nil && where.host == "" {
		return nil, fault.New(op, fault.Invalid, "a local repository does not say where its forge is").
			Hint("set forge and forge_api")
	}
	client, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "github":
		return newGitHub(cfg, where, client)
	case "gitlab":
		return newGitLab(cfg, where, client)
	case "gitea":
		return newGitea(cfg, where, client)
	}
	return nil, fault.New(op, fault.Invalid, fmt.Sprintf("%q is not a forge that is known", kind)).
		Hint("it is github, gitlab or gitea")
}

// place is a repository on a forge.
type place struct {
	host  string
	api   *url.URL // as it was set; nil: to be derived
	web   *url.URL // of the forge
	path  string   // group/…/name
	owner string
	name  string
}

// locate reads the URL of a repository as Git has it: https://, ssh:// and user@host:path.
func locate(raw string) (place, error) {
	const op = "forge.New"
	none := fault.New(op, fault.Invalid, "the environment's repository lies on no forge").
		Hint("statuses and previews need a repository that is fetched by HTTP or SSH; or set forge and forge_api")
	text := strings.TrimSpace(raw)
	if !strings.Contains(text, "://") {
		if host, rest, ok := strings.Cut(text, ":"); ok && !strings.ContainsAny(host, `/\`) {
			text = "ssh://" + host + "/" + rest
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		return place{}, none
	}
	web := &url.URL{Scheme: "https", Host: u.Hostname()}
	switch u.Scheme {
	case "http", "https":
		web = &url.URL{Scheme: u.Scheme, Host: u.Host}
	case "ssh", "git+ssh", "ssh+git":
	case "file", "":
		// A copy of a repository; where it lies on its forge is said by forge_api alone.
	default:
		return place{}, none
	}
	full := strings.TrimSuffix(strings.Trim(path.Clean("/"+u.Path), "/"), ".git")
	parts := strings.Split(full, "/")
	if len(parts) < 2 {
		return place{}, none
	}
	if u.Hostname() == "" {
		parts = parts[len(parts)-2:] // what is before that is this machine's
	}
	return place{
		host:  strings.ToLower(u.Hostname()),
		web:   web,
		path:  strings.Join(parts, "/"),
		name:  parts[len(parts)-1],
		owner: parts[len(parts)-2],
	}, nil
}

// guess tells a forge by its name.
func guess(host string) string {
	for kind, names := range map[string][]string{
		"github": {"github"}, "gitlab": {"gitlab"}, "gitea": {"gitea", "forgejo", "codeberg"},
	} {
		for _, name := range names {
			if strings.Contains(host, name) {
				return kind
			}
		}
	}
	return ""
}

// CheckAPI reads the setting forge_api.
func CheckAPI(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, fault.New("forge.CheckAPI", fault.Invalid, "the base of the forge's API is a URL such as "+
			"https://git.example.org").
			Hint("without user name, query and fragment")
	}
	return u, nil
}

// cut keeps what a stranger wrote short.
func cut(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	if len(s) > maxTitle {
		s = strings.ToValidUTF8(s[:maxTitle], "") + "…"
	}
	return s
}

// isCommit tells that a text is a full hash.
func isCommit(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// checked refuses an answer that cannot be meant.
func (p Pull) checked() (Pull, error) {
	p.Title, p.URL, p.Author = cut(p.Title), cut(p.URL), cut(p.Author)
	if !strings.HasPrefix(p.URL, "https://") && !strings.HasPrefix(p.URL, "http://") {
		p.URL = ""
	}
	if p.Number <= 0 || !isCommit(p.Head) || p.Base == "" || len(p.Base) > 255 {
		return p, fault.New("forge.Pull", fault.Unavailable,
			"the forge's answer about the pull request is not complete")
	}
	return p, nil
}

// explain turns what a client says into a fault. answer may be nil.
func explain(op, what string, answer *http.Response, err error) error {
	if err == nil {
		return nil
	}
	if limited := limitOf(err); limited != nil {
		return limited
	}
	if refused := (*fault.Error)(nil); errors.As(err, &refused) { // of package reach: the forge was not asked at all
		return fault.Wrap(op, refused.Kind, refused).Say(what)
	}
	kind, hint := fault.Unavailable, ""
	if answer != nil {
		switch code := answer.StatusCode; {
		case code == http.StatusUnauthorized:
			kind, hint = fault.Unauthorized, "the token is wrong or has expired: ordain environment secret "+
				"ENVIRONMENT forge-token"
		case code == http.StatusForbidden:
			kind, hint = fault.Forbidden, "the token may not do this: give it the rights that docs/git.md names"
		case code == http.StatusNotFound || code == http.StatusGone:
			kind, hint = fault.NotFound, "the forge does not show it to this token, or forge_api is wrong"
		case code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusConflict:
			kind = fault.Invalid
		}
	}
	text := what + ": " + reason(answer, err)
	return fault.New(op, kind, text).Hint(hint)
}

// reason says what went wrong in a line, without addresses that may hold more than they should.
func reason(answer *http.Response, err error) string {
	if answer != nil && answer.StatusCode >= 300 {
		return fmt.Sprintf("the forge answered %d (%s)", answer.StatusCode, cut(err.Error()))
	}
	return cut(err.Error())
}
