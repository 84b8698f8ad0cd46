package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// Headers of the forges.
const (
	HeaderSignature   = "X-Hub-Signature-256"
	HeaderGitHubEvent = "X-GitHub-Event"
	HeaderGitLabToken = "X-Gitlab-Token"
)

const signaturePrefix = "sha256="

// Sign gives the value of X-Hub-Signature-256 for a body.
func Sign(body, secret []byte) string {
	return signaturePrefix + hex.EncodeToString(sum(body, secret))
}

func sum(body, secret []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return mac.Sum(nil)
}

// parseSignature reads the value of X-Hub-Signature-256.
func parseSignature(value string) ([]byte, error) {
	code, ok := strings.CutPrefix(value, signaturePrefix)
	if !ok || len(code) != 2*sha256.Size {
		return nil, errors.New("the header " + HeaderSignature + " is malformed: it must be sha256= and 64 hexadecimal digits")
	}
	signature, err := hex.DecodeString(code)
	if err != nil {
		return nil, errors.New("the header " + HeaderSignature + " is malformed: it must be sha256= and 64 hexadecimal digits")
	}
	return signature, nil
}

// verifySignature compares in constant time.
func verifySignature(signature, body, secret []byte) bool {
	return len(secret) > 0 && hmac.Equal(signature, sum(body, secret))
}

var github = forge{
	name: "github",
	proof: func(h http.Header) (proof, error) {
		value := h.Get(HeaderSignature)
		if value == "" {
			return nil, errors.New("the request is not signed: set the environment's webhook secret in the settings of the forge's webhook")
		}
		signature, err := parseSignature(value)
		return func(body, secret []byte) bool { return verifySignature(signature, body, secret) }, err
	},
	parse: parseGitHub,
}

func parseGitHub(h http.Header, body []byte) (event, error) {
	kind := h.Get(HeaderGitHubEvent)
	if kind == "" {
		return event{}, errors.New("the header " + HeaderGitHubEvent + " is missing")
	}
	// The other content type that GitHub offers wraps the payload in a form.
	if media, _, _ := mime.ParseMediaType(h.Get("Content-Type")); media == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(body))
		if err != nil || form.Get("payload") == "" {
			return event{}, errors.New("the form has no field payload")
		}
		body = []byte(form.Get("payload"))
	}
	var p struct {
		Ref        string
		After      string
		Deleted    bool
		Repository struct {
			FullName      string `json:"full_name"`
			CloneURL      string `json:"clone_url"`
			SSHURL        string `json:"ssh_url"`
			GitURL        string `json:"git_url"`
			HTMLURL       string `json:"html_url"`
			DefaultBranch string `json:"default_branch"`
		}
		Pusher     struct{ Name, Login string }
		HeadCommit struct{ Message string } `json:"head_commit"`
	}
	if err := decode(body, &p); err != nil {
		return event{}, err
	}
	r := p.Repository
	e := event{
		kind: kind, repository: printable(r.FullName, 200), urls: some(r.CloneURL, r.SSHURL, r.GitURL, r.HTMLURL),
		ref: p.Ref, commit: p.After, deleted: p.Deleted || zeros(p.After), defaultBranch: r.DefaultBranch,
		pusher: p.Pusher.Name, subject: p.HeadCommit.Message,
	}
	if e.pusher == "" {
		e.pusher = p.Pusher.Login // Gitea
	}
	return e, e.complete("repository.clone_url")
}

var gitlab = forge{
	name: "gitlab",
	proof: func(h http.Header) (proof, error) {
		token := h.Get(HeaderGitLabToken)
		if token == "" {
			return nil, errors.New("the request has no " + HeaderGitLabToken + ": set the environment's webhook secret as the secret token of the webhook")
		}
		given := sha256.Sum256([]byte(token)) // of equal length, whatever the token
		return func(_, secret []byte) bool {
			want := sha256.Sum256(secret)
			return len(secret) > 0 && subtle.ConstantTimeCompare(given[:], want[:]) == 1
		}, nil
	},
	parse: parseGitLab,
}

func parseGitLab(_ http.Header, body []byte) (event, error) {
	type repository struct {
		GitHTTPURL        string `json:"git_http_url"`
		GitSSHURL         string `json:"git_ssh_url"`
		HTTPURL           string `json:"http_url"`
		SSHURL            string `json:"ssh_url"`
		WebURL            string `json:"web_url"`
		Homepage          string `json:"homepage"`
		PathWithNamespace string `json:"path_with_namespace"`
		DefaultBranch     string `json:"default_branch"`
	}
	var p struct {
		ObjectKind string `json:"object_kind"`
		EventName  string `json:"event_name"`
		Ref        string
		After      string
		UserName   string `json:"user_name"`
		Project    repository
		Repository repository
		Commits    []struct{ ID, Message string }
	}
	if err := decode(body, &p); err != nil {
		return event{}, err
	}
	kind := p.ObjectKind
	if kind == "" {
		kind = p.EventName // system hooks
	}
	if kind == "tag_push" {
		kind = kindPush // told apart by its ref
	}
	if kind == "" {
		return event{}, errors.New("it has neither object_kind nor event_name")
	}
	e := event{
		kind: kind, repository: printable(p.Project.PathWithNamespace, 200), ref: p.Ref, commit: p.After, deleted: zeros(p.After),
		defaultBranch: p.Project.DefaultBranch, pusher: p.UserName,
	}
	for _, r := range []repository{p.Project, p.Repository} {
		e.urls = append(e.urls, some(r.GitHTTPURL, r.GitSSHURL, r.HTTPURL, r.SSHURL, r.WebURL, r.Homepage)...)
	}
	for _, c := range p.Commits {
		if c.ID == p.After {
			e.subject = c.Message
		}
	}
	return e, e.complete("project.git_http_url")
}

// complete checks what a push cannot do without.
func (e event) complete(urlField string) error {
	switch {
	case e.kind != kindPush:
		return nil
	case len(e.urls) == 0:
		return fmt.Errorf("it names no repository: %s is missing", urlField)
	case e.ref == "":
		return errors.New("it names no branch: ref is missing")
	}
	return nil
}

// decode reads JSON and says where it is wrong, without quoting it.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	var (
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
	)
	switch {
	case err == nil:
		return nil
	case len(body) == 0:
		return errors.New("it is empty")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON, at byte %d", syntax.Offset)
	case errors.As(err, &typed):
		return fmt.Errorf("%s cannot be a JSON %s", printable(typed.Field, 60), typed.Value)
	}
	return errors.New("it is not JSON")
}

func some(urls ...string) []string {
	var given []string
	for _, u := range urls {
		if u != "" {
			given = append(given, u)
		}
	}
	return given
}

// zeros reports whether a commit is the one that stands for none.
func zeros(commit string) bool { return commit != "" && strings.Trim(commit, "0") == "" }
