package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Server is what the webhooks ask of the server.
type Server interface {
	// Targets lists the environments that are bound to a repository.
	Targets(ctx context.Context) ([]Target, error)
	// Notify records that the source of an environment moved, and returns once
	// that is stored. A fault of kind Conflict says that the environment does
	// not want to know, for instance because it is halted.
	Notify(ctx context.Context, env intent.EnvironmentID, trigger intent.Trigger) error
}

// Target is an environment that may be notified.
type Target struct {
	Environment intent.EnvironmentID
	Name        string
	Source      intent.Source
	Secrets     [][]byte // any of them verifies a request; none refuses all
}

// Config is what the handler needs.
type Config struct {
	Server Server
	Logger *slog.Logger
	// MaxBody bounds a payload in bytes; 25 MiB, GitHub's own limit, when zero.
	MaxBody int64
}

// Handler answers POST …/github and POST …/gitlab, wherever it is mounted.
type Handler struct {
	cfg Config
}

// New checks the configuration and makes the handler.
func New(cfg Config) (*Handler, error) {
	const op = "webhooks.New"
	switch {
	case cfg.Server == nil:
		return nil, fault.New(op, fault.Invalid, "Config.Server is missing")
	case cfg.Logger == nil:
		return nil, fault.New(op, fault.Invalid, "Config.Logger is missing")
	case cfg.MaxBody < 0:
		return nil, fault.New(op, fault.Invalid, "Config.MaxBody is negative")
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 25 << 20
	}
	return &Handler{cfg: cfg}, nil
}

// Answer is what a forge gets to show.
type Answer struct {
	Message    string    `json:"message"`
	Repository string    `json:"repository,omitempty"`
	Branch     string    `json:"branch,omitempty"`
	Commit     string    `json:"commit,omitempty"`
	Started    []Started `json:"started"` // environments that were notified
	Skipped    []Skipped `json:"skipped,omitempty"`
}

// Started names an environment that was notified.
type Started struct {
	Environment intent.EnvironmentID `json:"environment"`
	Name        string               `json:"name,omitempty"`
}

// Skipped names an environment whose secret verified, and why it was not notified.
type Skipped struct {
	Started
	Reason string `json:"reason"`
}

// forge is one dialect.
type forge struct {
	name string
	// proof reads the header that proves who sends; an error says what is wrong with it.
	proof func(http.Header) (proof, error)
	parse func(http.Header, []byte) (event, error)
}

// proof verifies a request against a secret.
type proof func(body, secret []byte) bool

// event is what all dialects tell.
type event struct {
	kind          string // push, ping, or the forge's word for another
	repository    string // its name, for people
	urls          []string
	ref           string // full name of what was pushed
	commit        string
	deleted       bool
	defaultBranch string
	pusher        string
	subject       string
}

const kindPush, kindPing = "push", "ping"

// ServeHTTP tells the forges apart by the end of the path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/github"):
		h.serve(w, r, github)
	case strings.HasSuffix(r.URL.Path, "/gitlab"):
		h.serve(w, r, gitlab)
	default:
		reply(w, http.StatusNotFound, Answer{Message: "webhooks are sent to /hooks/github or /hooks/gitlab"})
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, f forge) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		reply(w, http.StatusMethodNotAllowed, Answer{Message: "webhooks are sent with POST"})
		return
	}
	proves, err := f.proof(r.Header)
	if err != nil {
		reply(w, http.StatusUnauthorized, Answer{Message: err.Error()})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.MaxBody))
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		reply(w, http.StatusRequestEntityTooLarge, Answer{Message: fmt.Sprintf("the payload is bigger than %d bytes", tooBig.Limit)})
		return
	}
	if err != nil {
		reply(w, http.StatusBadRequest, Answer{Message: "the payload broke off"})
		return
	}
	e, err := f.parse(r.Header, body)
	if err != nil {
		reply(w, http.StatusBadRequest, Answer{Message: "the payload is malformed: " + err.Error()})
		return
	}
	targets, err := h.cfg.Server.Targets(r.Context())
	if err != nil {
		h.cfg.Logger.Error("a webhook could not be answered", "forge", f.name, "error", err)
		w.Header().Set("Retry-After", "30")
		reply(w, http.StatusServiceUnavailable, Answer{Message: "the server cannot look its environments up; send it again"})
		return
	}
	answer := Answer{Repository: e.repository}
	known := targetsOf(targets, e.urls)
	if len(known) == 0 {
		answer.Message = "no environment uses this repository; nothing was started"
		reply(w, http.StatusAccepted, answer)
		return
	}
	verified := h.verify(f, known, proves, body)
	if len(verified) == 0 {
		reply(w, http.StatusUnauthorized, Answer{Message: "the request does not prove that it knows the webhook secret of an environment that uses this repository; " +
			"nothing was started. Check that the same secret is set in the forge and in the environment"})
		return
	}
	status := h.act(r.Context(), e, verified, &answer)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "30")
	}
	reply(w, status, answer)
}

// verify finds the environments whose secret the sender knows.
func (h *Handler) verify(f forge, known []Target, proves proof, body []byte) []Target {
	var verified []Target
	for _, t := range known {
		if len(t.Secrets) == 0 {
			h.cfg.Logger.Warn("a webhook was refused: the environment has no webhook secret", "forge", f.name, "environment", t.Environment, "name", t.Name,
				"hint", "set one with: ordain environment secret "+t.Environment.String()+" webhook; and the same in the forge")
			continue
		}
		ok := false
		for _, secret := range t.Secrets {
			ok = proves(body, secret) || ok
		}
		if !ok {
			h.cfg.Logger.Warn("a webhook was refused: its secret is not that of the environment", "forge", f.name, "environment", t.Environment, "name", t.Name)
			continue
		}
		verified = append(verified, t)
	}
	return verified
}

// act notifies those who follow the branch, and fills in the answer.
func (h *Handler) act(ctx context.Context, e event, verified []Target, answer *Answer) int {
	branch, isBranch := strings.CutPrefix(e.ref, "refs/heads/")
	switch {
	case e.kind == kindPing:
		answer.Message = "the webhook is set up well"
		return http.StatusAccepted
	case e.kind != kindPush:
		answer.Message = fmt.Sprintf("events of kind %q start nothing; only pushes do", printable(e.kind, 60))
		return http.StatusAccepted
	case !isBranch:
		answer.Message = fmt.Sprintf("%s is not a branch; only pushes to branches start something", printable(e.ref, 200))
		return http.StatusAccepted
	case e.deleted:
		answer.Branch = branch
		answer.Message = "the branch was deleted; nothing was started, and what is deployed stays"
		return http.StatusAccepted
	}
	answer.Branch, answer.Commit = branch, e.commit
	status := http.StatusAccepted
	for _, t := range verified {
		who := Started{Environment: t.Environment, Name: t.Name}
		if !follows(t.Source.Branch, branch, e.defaultBranch) {
			answer.Skipped = append(answer.Skipped, Skipped{who, "it follows another branch"})
			continue
		}
		err := h.cfg.Server.Notify(ctx, t.Environment, intent.Trigger{Type: "webhook", Message: e.message(branch)})
		switch {
		case err == nil:
			answer.Started = append(answer.Started, who)
		case fault.Is(err, fault.Conflict):
			answer.Skipped = append(answer.Skipped, Skipped{who, err.Error()})
		default:
			h.cfg.Logger.Error("a webhook could not be passed on", "environment", t.Environment, "error", err)
			answer.Skipped = append(answer.Skipped, Skipped{who, "the server could not record it; send it again"})
			status = http.StatusServiceUnavailable
		}
	}
	switch {
	case status != http.StatusAccepted:
		answer.Message = "not every environment could be notified"
	case len(answer.Started) == 0:
		answer.Message = "nothing was started"
	case len(answer.Started) == 1:
		answer.Message = "1 environment was notified"
	default:
		answer.Message = fmt.Sprintf("%d environments were notified", len(answer.Started))
	}
	return status
}

// message tells people what happened: "ada pushed 1234567 to main: fix the doors".
func (e event) message(branch string) string {
	who := printable(e.pusher, 60)
	if who == "" {
		who = "someone"
	}
	text := who + " pushed"
	if len(e.commit) >= 7 {
		text += " " + printable(e.commit[:7], 7)
	}
	text += " to " + printable(branch, 100)
	if e.subject != "" {
		text += ": " + printable(e.subject, 100)
	}
	return text
}

func reply(w http.ResponseWriter, status int, answer Answer) {
	if answer.Started == nil {
		answer.Started = []Started{}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(answer) // the sender went away
}

// printable keeps a stranger's text short and on one line.
func printable(s string, limit int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit]) + "…"
	}
	return strings.TrimSpace(s)
}
