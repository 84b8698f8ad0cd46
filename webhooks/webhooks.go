package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Server is what the webhooks ask of the server.
type Server interface {
	// Targets gives the environments that are bound to repositories. They may
	// be a second old, unless fresh ones are asked for.
	Targets(ctx context.Context, fresh bool) (*Targets, error)
	// Expect tells that a request was read and is looked at. The function that it
	// gives is called just before Record, or when there is nothing to record; after
	// that it does nothing.
	Expect() (over func(recorded bool))
	// Record makes a delivery durable, and returns once it is. It gives the
	// environments that did not have this delivery before.
	Record(ctx context.Context, d intent.Delivery) (took []intent.EnvironmentID, err error)
}

// Target is an environment that may be notified.
type Target struct {
	Environment intent.EnvironmentID
	Name        string
	Source      intent.Source
	Modules     []Module
	Secrets     [][]byte // any of them verifies a request; none refuses all
}

// Module is a repository of a module that an environment's project uses.
type Module struct{ Name, URL string }

// Config is what the handler needs.
type Config struct {
	Server Server
	Logger *slog.Logger
	// MaxBody bounds a payload in bytes; 25 MiB, GitHub's own limit, when zero.
	MaxBody int64
	// Rate and Burst bound what one source may send: Rate webhooks per second in
	// the long run, Burst at once; 100 and 3,000 when zero.
	Rate, Burst float64
	// Now is the clock; time.Now outside tests.
	Now func() time.Time
}

// Handler answers POST …/<forge>, wherever it is mounted.
type Handler struct {
	cfg      Config
	sources  *limiter // by address
	refusals *limiter // bounds what is recorded and logged of requests that prove nothing
	counts   counts
	dialects map[string]dialect
	room     chan struct{} // bounds the big payloads that are in memory
}

// New checks the configuration and makes the handler.
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
		cfg.MaxBody = 25 << 20
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
	return &Handler{
		cfg: cfg, sources: newLimiter(cfg.Rate, cfg.Burst, cfg.Now), refusals: newLimiter(0.2, 20, cfg.Now),
		dialects: dialectsOf(cfg.Now), room: make(chan struct{}, bigBodies),
	}, nil
}

// Answer is what a forge gets to show.
type Answer struct {
	Message    string     `json:"message"`
	Delivery   *uuid.UUID `json:"delivery,omitempty"` // as it was recorded
	Repository string     `json:"repository,omitempty"`
	Ref        string     `json:"ref,omitempty"`
	Commit     string     `json:"commit,omitempty"`
	// Environments have it recorded, and look at it next.
	Environments []Named `json:"environments"`
}

// Named is an environment.
type Named struct {
	Environment intent.EnvironmentID `json:"environment"`
	Name        string               `json:"name,omitempty"`
}

// dialect is how one forge speaks.
type dialect struct {
	name string
	// proof reads what proves who sends; an error says what is wrong with it.
	proof func(http.Header) (proof, error)
	// parse reads the payload, and the forge's id of the delivery.
	parse func(http.Header, []byte) (Event, string, error)
}

// dialectsOf gives all dialects by their names.
func dialectsOf(now func() time.Time) map[string]dialect {
	out := map[string]dialect{}
	for _, d := range []dialect{github, gitlab(now), gitea, forgejo, gogs, bitbucket, bitbucketServer, azure, generic, standard(now)} {
		out[d.name] = d
	}
	return out
}

const (
	// bigBody is the size from which payloads wait for room.
	bigBody   = 1 << 20
	bigBodies = 8
	maxKey    = 200
)

// ServeHTTP tells the forges apart by the end of the path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && path.Base(r.URL.Path) == "counts" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(h.Counts()) // who asked went away
		return
	}
	d, ok := h.dialects[path.Base(r.URL.Path)]
	if !ok {
		h.reply(
			w,
			http.StatusNotFound,
			Answer{
				Message: "webhooks are sent to /hooks/ and the name of the forge: " + strings.Join(
					slices.Sorted(maps.Keys(h.dialects)),
					", ",
				),
			},
		)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		h.reply(w, http.StatusMethodNotAllowed, Answer{Message: "webhooks are sent with POST"})
		return
	}
	if wait := h.sources.take(sourceOf(r)); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		h.reply(
			w,
			http.StatusTooManyRequests,
			Answer{Message: "too many webhooks from this address; send it again later"},
		)
		return
	}
	h.serve(w, r, d)
}

// sourceOf names who sends, by address; a network of IPv6 is one source.
func sourceOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, d dialect) {
	proves, err := d.proof(r.Header)
	if err != nil {
		h.reply(w, http.StatusUnauthorized, Answer{Message: err.Error()})
		return
	}
	room := bodies.Get().(*bytes.Buffer)
	defer keep(room)
	body, status, err := h.read(w, r, room)
	if err != nil {
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "5")
		}
		h.reply(w, status, Answer{Message: err.Error()})
		return
	}
	over := h.cfg.Server.Expect()
	defer over(false)
	e, key, err := d.parse(r.Header, body)
	if err != nil {
		h.reply(w, http.StatusBadRequest, Answer{Message: "the payload is malformed: " + err.Error()})
		return
	}
	delivery := intent.Delivery{
		ID: uuid.New(), Forge: d.name, Key: printable(key, maxKey), Received: h.cfg.Now(), Size: int64(len(body)), Event: e,
	}
	h.pass(w, r, delivery, over, func(secret []byte) bool { return proves(body, secret) })
}

// bodies is room for payloads of the usual size, used again and again: what is
// read of a payload is copied. A burst of them would be garbage otherwise, whose
// collection takes the processors from the answers.
var bodies = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, 16<<10)) }}

func keep(room *bytes.Buffer) {
	if room.Cap() <= 64<<10 {
		room.Reset()
		bodies.Put(room)
	}
}

// read takes the body. Big ones wait for room, so that strangers cannot fill the memory.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, room *bytes.Buffer) ([]byte, int, error) {
	if r.ContentLength > h.cfg.MaxBody {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the payload is bigger than %d bytes", h.cfg.MaxBody)
	}
	if r.ContentLength < 0 || r.ContentLength > bigBody {
		select {
		case h.room <- struct{}{}:
			defer func() { <-h.room }()
		default:
			return nil, http.StatusServiceUnavailable, errors.New(
				"the server is busy with other big payloads; send it again",
			)
		}
	}
	_, err := room.ReadFrom(http.MaxBytesReader(w, r.Body, h.cfg.MaxBody))
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the payload is bigger than %d bytes", tooBig.Limit)
	}
	if err != nil {
		return nil, http.StatusBadRequest, errors.New("the payload broke off")
	}
	return room.Bytes(), 0, nil
}

// pass finds who may be concerned and records the delivery. Nothing else is
// done before the answer.
func (h *Handler) pass(
	w http.ResponseWriter,
	r *http.Request,
	d intent.Delivery,
	over func(recorded bool),
	proves func(secret []byte) bool,
) {
	answer := Answer{Repository: d.Event.Repository, Ref: d.Event.Ref, Commit: d.Event.Commit}
	known, verified, err := h.find(r.Context(), d.Event.URLs, proves)
	if err != nil {
		h.broken(w, d, err)
		return
	}
	if len(known) == 0 {
		answer.Message = "no environment uses this repository; nothing was started"
		if d.Event.Kind == intent.HookPing && len(d.Event.URLs) == 0 {
			answer.Message = "this test names no repository; whether the secret is right, the first push will tell"
		}
		h.reply(w, http.StatusAccepted, answer)
		return
	}
	if len(verified) == 0 {
		h.refuse(r.Context(), d, known)
		h.reply(
			w,
			http.StatusUnauthorized,
			Answer{
				Message: "the request does not prove that it knows the webhook secret of an environment that uses this repository; " +
					"nothing was started. Check that the same secret is set in the forge and in the environment",
			},
		)
		return
	}
	d.Verified = true
	names := map[intent.EnvironmentID]string{}
	for _, m := range verified {
		names[m.Environment] = m.Name
		d.Outcomes = append(
			d.Outcomes,
			intent.DeliveryOutcome{Environment: m.Environment, Module: m.module, State: intent.OutcomeWaiting},
		)
	}
	over(true)
	took, err := h.cfg.Server.Record(r.Context(), d)
	if err != nil {
		h.broken(w, d, err)
		return
	}
	status := http.StatusAccepted
	switch answer.Delivery = &d.ID; {
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

// find gives the environments that use a repository, and those whose secret
// the sender knows. When it finds none it looks again among the newest.
func (h *Handler) find(
	ctx context.Context,
	urls []string,
	proves func(secret []byte) bool,
) (known, verified []match, err error) {
	for _, fresh := range []bool{false, true} {
		targets, err := h.cfg.Server.Targets(ctx, fresh)
		if err != nil {
			return nil, nil, err
		}
		known = targets.of(urls)
		for _, m := range known {
			ok := false
			for _, secret := range m.Secrets {
				ok = proves(secret) || ok
			}
			if ok {
				verified = append(verified, m)
			}
		}
		if len(verified) > 0 {
			break
		}
	}
	return known, verified, nil
}

// refuse records a request that proves nothing, for people to see; not each of a flood.
func (h *Handler) refuse(ctx context.Context, d intent.Delivery, known []match) {
	if h.refusals.take("") > 0 {
		return
	}
	for _, m := range known {
		reason, hint := "its signature does not fit the environment's webhook secret", "set the same secret in the forge and in the environment"
		if len(m.Secrets) == 0 {
			reason, hint = "the environment has no webhook secret", "set one with: ordain environment secret "+m.Environment.String()+" webhook; and the same in the forge"
		}
		h.cfg.Logger.Warn(
			"a webhook was refused: "+reason,
			"forge",
			d.Forge,
			"environment",
			m.Environment,
			"name",
			m.Name,
			"hint",
			hint,
		)
		d.Outcomes = append(
			d.Outcomes,
			intent.DeliveryOutcome{
				Environment: m.Environment,
				Module:      m.module,
				State:       intent.OutcomeRefused,
				Reason:      reason,
				Handled:     &d.Received,
			},
		)
	}
	d.Event.Paths, d.Event.More = nil, nil
	if _, err := h.cfg.Server.Record(ctx, d); err != nil {
		h.cfg.Logger.Error("a refused webhook could not be recorded", "forge", d.Forge, "error", err)
	}
}

// broken answers when the place of record is away: the forge sends again.
func (h *Handler) broken(w http.ResponseWriter, d intent.Delivery, err error) {
	h.cfg.Logger.Error("a webhook could not be recorded", "forge", d.Forge, "error", err)
	w.Header().Set("Retry-After", "30")
	h.reply(w, http.StatusServiceUnavailable, Answer{Message: "the server cannot record it now; send it again"})
}

func (h *Handler) reply(w http.ResponseWriter, status int, answer Answer) {
	h.counts.answered(status)
	if answer.Environments == nil {
		answer.Environments = []Named{}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(answer) // the sender went away
}
