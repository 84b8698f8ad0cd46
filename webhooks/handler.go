package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Server is what the webhooks need of the server. It is called by many requests
// at once.
type Server interface {
	// HookTargets returns the environments that are bound to repositories, with their
	// secrets.
	HookTargets(ctx context.Context) ([]intent.HookTarget, error)
	// RecordDelivery makes a delivery durable. It returns the environments that had not
	// received this delivery before.
	RecordDelivery(ctx context.Context, d intent.Delivery) ([]intent.EnvironmentID, error)
}

// Config is what a Handler needs.
type Config struct {
	Server Server
	Logger *slog.Logger
	// MaxBody is the largest payload in bytes; 5 MiB when zero.
	MaxBody int64
	// Rate is how many webhooks per second one sender may send in the long run,
	// and Burst how many at once; 100 and 3,000 when zero.
	Rate  float64
	Burst int
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// Handler answers POST …/<forge>, wherever it is mounted, and GET …/counts.
type Handler struct {
	cfg       Config
	senders   *limiter
	refusals  *refusals
	targets   *targetCache
	counts    counts
	dialects  map[string]dialect
	bigBodies chan struct{} // bounds how many big payloads are handled at a time
}

const (
	// bigBody is the size in bytes above which only maxBigBodies payloads are
	// handled at a time.
	bigBody      = 1 << 20
	maxBigBodies = 8
	// maxRefused is the size in bytes of the largest payload that is read although it proves nothing.
	maxRefused = 256 << 10
	// maxKey is the longest id of a delivery that is kept.
	maxKey = 200
)

// New checks the configuration and makes a handler.
func New(cfg Config) (*Handler, error) {
	const op = "webhooks.New"
	switch {
	case cfg.Server == nil:
		return nil, fault.New(op, fault.Invalid, "Config.Server is missing")
	case cfg.Logger == nil:
		return nil, fault.New(op, fault.Invalid, "Config.Logger is missing")
	case cfg.MaxBody < 0 || cfg.Rate < 0 || cfg.Burst < 0:
		return nil, fault.New(op, fault.Invalid, "Config.MaxBody, Rate or Burst is negative")
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 5 << 20
	}
	if cfg.Rate == 0 {
		cfg.Rate = 100
	}
	if cfg.Burst == 0 {
		cfg.Burst = 3000
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	h := &Handler{
		cfg:       cfg,
		senders:   newLimiter(cfg.Rate, cfg.Burst, cfg.Now),
		targets:   &targetCache{server: cfg.Server},
		dialects:  dialectsByName(cfg.Now),
		bigBodies: make(chan struct{}, maxBigBodies),
	}
	h.refusals = newRefusals(h.recordRefused)
	return h, nil
}

// Answer is the body of an answer, for people who look at the forge's record of
// its deliveries.
type Answer struct {
	Message    string     `json:"message"`
	Delivery   *uuid.UUID `json:"delivery,omitempty"` // the recorded delivery
	Repository string     `json:"repository,omitempty"`
	Ref        string     `json:"ref,omitempty"`
	Commit     string     `json:"commit,omitempty"`
	// Environments are those for which the delivery was recorded.
	Environments []Named `json:"environments"`
}

// Named is an environment and its name.
type Named struct {
	Environment intent.EnvironmentID `json:"environment"`
	Name        string               `json:"name,omitempty"`
}

// ServeHTTP finds the forge's dialect by the end of the path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	if r.Method == http.MethodGet && name == "counts" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(h.Counts()) // it fails when the client is gone
		return
	}
	d, ok := h.dialects[name]
	if !ok {
		names := strings.Join(slices.Sorted(maps.Keys(h.dialects)), ", ")
		h.reply(w, http.StatusNotFound, Answer{
			Message: "webhooks are sent to /hooks/ and the name of the forge: " + names,
		})
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		h.reply(w, http.StatusMethodNotAllowed, Answer{Message: "webhooks are sent with POST"})
		return
	}
	if wait := h.senders.take(senderOf(r)); wait > 0 {
		h.later(w, http.StatusTooManyRequests, wait, "too many webhooks from this address; send it again later")
		return
	}
	h.serve(w, r, d)
}

// serve handles one webhook. It does nothing but record it before it answers.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, d dialect) {
	proves, err := d.proof(r.Header)
	if err != nil {
		h.reply(w, http.StatusUnauthorized, Answer{Message: err.Error()})
		return
	}
	if r.ContentLength < 0 || r.ContentLength > bigBody {
		select {
		case h.bigBodies <- struct{}{}:
			defer func() { <-h.bigBodies }()
		default:
			h.later(w, http.StatusServiceUnavailable, 5*time.Second,
				"the server is busy with other big payloads; send it again")
			return
		}
	}
	body, status, err := h.read(w, r)
	if err != nil {
		h.reply(w, status, Answer{Message: err.Error()})
		return
	}

	received := request{dialect: d, header: r.Header, body: body, proves: proves}
	known, verified, err := h.match(r.Context(), &received)
	if malformed := (*malformedError)(nil); errors.As(err, &malformed) {
		h.reply(w, http.StatusBadRequest, Answer{Message: "the payload is malformed: " + malformed.Error()})
		return
	}
	if err != nil {
		h.unavailable(w, d, err)
		return
	}
	e := received.event
	answer := Answer{Repository: e.Repository, Ref: e.Ref, Commit: e.Commit}
	switch {
	case !received.proven:
		h.refuse(r.Context(), &received)
		h.reply(w, http.StatusUnauthorized, Answer{
			Message: "the request does not prove that it knows the webhook secret of an environment that uses this " +
				"repository; nothing was started. " +
				"Check that the same secret is set in the forge and in the environment",
		})
	case len(known) == 0 && e.Kind == intent.HookPing && len(e.URLs) == 0:
		answer.Message = "the secret is right; this test names no repository, so the first push will show which " +
			"environments it reaches"
		h.reply(w, http.StatusAccepted, answer)
	case len(verified) == 0:
		// Environments with other secrets may use the repository. The sender, who knows the secret of one, must not
		// learn which repositories those of others use.
		if len(known) > 0 {
			h.refuse(r.Context(), &received)
		}
		answer.Message = "no environment uses this repository with this secret; nothing was started. " +
			"If one should, set the same secret in the forge and in the environment"
		h.reply(w, http.StatusAccepted, answer)
	default:
		h.record(w, r, received.delivery(h.cfg.Now()), verified, answer)
	}
}

// read reads the body. With an error it returns the status of the answer.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, int, error) {
	if r.ContentLength > h.cfg.MaxBody {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the payload is bigger than %d bytes", h.cfg.MaxBody)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.MaxBody))
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the payload is bigger than %d bytes", tooBig.Limit)
	}
	if err != nil {
		return nil, http.StatusBadRequest, errors.New("the payload broke off")
	}
	return body, 0, nil
}

// request is a webhook on its way to the record.
type request struct {
	dialect dialect
	header  http.Header
	body    []byte
	proves  proof

	proven bool // the sender knows the secret of some environment
	parsed bool
	event  Event
	key    string // the forge's id of the delivery
}

// malformedError says what is wrong with a payload.
type malformedError struct{ error }

// parse reads the payload, once.
func (r *request) parse() (err error) {
	if r.parsed {
		return nil
	}
	if r.event, r.key, err = r.dialect.parse(r.header, r.body); err != nil {
		return &malformedError{err}
	}
	r.parsed = true
	return nil
}

func (r *request) delivery(received time.Time) intent.Delivery {
	return intent.Delivery{
		ID: uuid.New(), Forge: r.dialect.name, Key: printable(r.key, maxKey), Received: received,
		Size: int64(len(r.body)), Event: r.event,
	}
}

// match returns the environments that use the repository of a request, and those
// of them whose secret the sender knows. It reads the payload only if the sender
// knows the secret of some environment. If it finds none, it looks again among
// the newest environments.
func (h *Handler) match(ctx context.Context, r *request) (known, verified []match, err error) {
	for _, read := range []func(context.Context) (*targets, error){h.targets.get, h.targets.newest} {
		all, err := read(ctx)
		if err != nil {
			return nil, nil, err
		}
		secrets := all.proven(ctx, r.proves, r.body)
		if len(secrets) == 0 {
			continue
		}
		r.proven = true
		if err := r.parse(); err != nil {
			return nil, nil, err
		}
		known = all.using(r.event.URLs)
		for _, m := range known {
			if m.guardedBy(secrets) {
				verified = append(verified, m)
			}
		}
		if len(verified) > 0 {
			break
		}
	}
	return known, verified, ctx.Err()
}

// record records a delivery for the environments whose secret the sender knows,
// and answers.
func (h *Handler) record(w http.ResponseWriter, r *http.Request, d intent.Delivery, verified []match, answer Answer) {
	d.Verified = true
	names := map[intent.EnvironmentID]string{}
	for _, m := range verified {
		names[m.Environment] = m.Name
		d.Outcomes = append(d.Outcomes, intent.DeliveryOutcome{
			Environment: m.Environment, Module: m.module, State: intent.OutcomeWaiting,
		})
	}
	took, err := h.cfg.Server.RecordDelivery(r.Context(), d)
	if err != nil {
		h.unavailable(w, h.dialects[d.Forge], err)
		return
	}
	status := http.StatusAccepted
	answer.Delivery = &d.ID
	switch {
	case len(took) == 0:
		answer.Delivery = nil
		answer.Message = "this delivery was received before; nothing was started"
		status = http.StatusOK
	case d.Event.Kind == intent.HookPing:
		answer.Message = "the webhook is set up well"
	case len(took) == 1:
		answer.Message = "recorded for 1 environment"
	default:
		answer.Message = fmt.Sprintf("recorded for %d environments", len(took))
	}
	for _, env := range took {
		answer.Environments = append(answer.Environments, Named{env, names[env]})
	}
	h.reply(w, status, answer)
}

// refuse notes a request that proves nothing for the environments that it names. It does not read big ones, and in a
// flood not all of the others.
func (h *Handler) refuse(ctx context.Context, r *request) {
	now := h.cfg.Now()
	if len(r.body) > maxRefused || !h.refusals.parsing.Allow() || r.parse() != nil {
		return
	}
	all, err := h.targets.get(ctx)
	if err != nil {
		return
	}
	e := r.event
	e.Paths, e.More = nil, nil
	for _, m := range all.using(e.URLs) {
		reason := badSignature
		if len(m.Secrets) == 0 {
			reason = noSecret
		}
		d := r.delivery(now)
		d.Event = e
		d.Outcomes = []intent.DeliveryOutcome{{
			Environment: m.Environment, Name: m.Name, Module: m.module, State: intent.OutcomeRefused, Reason: reason,
			Handled: &now,
		}}
		h.refusals.add(d)
	}
}

// Reasons why a request is refused.
const (
	badSignature = "its signature does not fit the environment's webhook secret"
	noSecret     = "the environment has no webhook secret"
)

// recordRefused records a refused request, and how many others were like it.
func (h *Handler) recordRefused(ctx context.Context, d intent.Delivery, more int) {
	o := &d.Outcomes[0]
	hint := "set the same secret in the forge and in the environment"
	if o.Reason == noSecret {
		hint = "set one with: ordain environment secret " + o.Environment.String() +
			" webhook; and the same in the forge"
	}
	h.cfg.Logger.Warn("a webhook was refused: "+o.Reason,
		"forge", d.Forge, "environment", o.Environment, "name", o.Name, "others", more, "hint", hint)
	o.Reason = andMore(o.Reason, more)
	if _, err := h.cfg.Server.RecordDelivery(ctx, d); err != nil {
		h.cfg.Logger.Error("a refused webhook could not be recorded", "forge", d.Forge, "error", err)
	}
}

// unavailable answers when the database is away, so that the forge sends the
// webhook again.
func (h *Handler) unavailable(w http.ResponseWriter, d dialect, err error) {
	h.cfg.Logger.Error("a webhook could not be recorded", "forge", d.name, "error", err)
	h.later(w, http.StatusServiceUnavailable, 30*time.Second, "the server cannot record it now; send it again")
}

// later answers that the webhook should be sent again after a wait.
func (h *Handler) later(w http.ResponseWriter, status int, wait time.Duration, message string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	h.reply(w, status, Answer{Message: message})
}

func (h *Handler) reply(w http.ResponseWriter, status int, answer Answer) {
	h.counts.add(status)
	if answer.Environments == nil {
		answer.Environments = []Named{}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(answer) // it fails when the sender is gone
}
