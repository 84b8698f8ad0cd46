// Package audit records who changed what.
//
//	door ─▶ Begin ─▶ ctx ─▶ control: Subject, Change, Because ─▶ door ─▶ End ─▶ one row
//
// A door begins a trail for every request whose verb changes something, and ends it when the request was answered. The
// verbs of control add what only they know: what it was about, the values before and after, the reason. Secrets are
// never part of it: a verb that sets one says that it was set.
//
// The rows are append-only: the database refuses to change them, and to delete them before their retention is over.
package audit

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/edge"
)

// Bounds of the texts of an entry, in bytes; what is longer is cut.
const (
	maxText  = 1000
	maxValue = 16 << 10
)

// Store keeps entries; *store.Store does.
type Store interface {
	AddAudit(ctx context.Context, e intent.AuditEntry) error
}

// Recorder writes trails into the store. It is safe for concurrent use.
type Recorder struct {
	Store  Store
	Logger *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// Trail is the entry of a request that is being served. The zero pointer records nothing.
type Trail struct {
	mu     sync.Mutex
	entry  intent.AuditEntry
	failed error // see Failed
}

type trailKey struct{}

// Begin begins the trail of a request. It returns nil for a verb that changes nothing.
func (r *Recorder) Begin(req *http.Request, door string, v access.Verb) (context.Context, *Trail) {
	ctx := req.Context()
	d, _ := v.Define()
	if r == nil || !d.Changes() {
		return ctx, nil
	}
	p := access.Of(ctx)
	t := &Trail{entry: intent.AuditEntry{
		Actor: p.Name, Kind: string(p.Kind), Credential: p.Credential,
		Address: edge.ClientAddress(req), Door: door, Verb: string(v),
	}}
	return context.WithValue(ctx, trailKey{}, t), t
}

// On says which environment the request is about.
func On(ctx context.Context, e intent.Environment) {
	of(ctx).change(func(a *intent.AuditEntry) {
		a.Project, a.ProjectName, a.Environment, a.EnvironmentName = e.ProjectID, e.ProjectName, e.ID, e.Name
	})
}

// OnProject says which project the request is about.
func OnProject(ctx context.Context, p intent.Project) {
	of(ctx).change(func(a *intent.AuditEntry) { a.Project, a.ProjectName = p.ID, p.Name })
}

// As says who sent a request that was nobody's when it arrived, and has proved who it is since.
func As(ctx context.Context, p access.Principal) {
	of(ctx).change(func(a *intent.AuditEntry) {
		a.Actor, a.Kind, a.Credential = cut(p.Name, maxText), string(p.Kind), p.Credential
	})
}

// End writes the trail of a request that ended with an error, or nil. A request of nobody, which was turned away at the
// door, leaves no trail.
func (r *Recorder) End(ctx context.Context, t *Trail, outcome error) {
	if r == nil || t == nil {
		return
	}
	t.mu.Lock()
	e := t.entry
	if outcome == nil {
		outcome = t.failed
	}
	t.mu.Unlock()
	if e.Kind == "" {
		return
	}
	e.At = time.Now()
	if r.Now != nil {
		e.At = r.Now()
	}
	switch {
	case outcome == nil:
		e.Outcome = intent.AuditDone
	case fault.Is(outcome, fault.Forbidden):
		e.Outcome, e.Problem = intent.AuditRefused, cut(outcome.Error(), maxText)
	default:
		e.Outcome, e.Problem = intent.AuditFailed, cut(outcome.Error(), maxText)
	}
	// The client may be gone; what it did is recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := r.Store.AddAudit(ctx, e); err != nil {
		r.Logger.Error("an entry of the audit trail could not be written", "actor", e.Actor, "verb", e.Verb,
			"environment", e.Environment, "subject", e.Subject, "outcome", e.Outcome, "error", err)
	}
}

// Verb says what a request turned out to do, for routes on which that depends on the request.
func Verb(ctx context.Context, v access.Verb) {
	of(ctx).change(func(e *intent.AuditEntry) { e.Verb = string(v) })
}

// Subject says what else a request is about, such as the name of a setting or an agent.
func Subject(ctx context.Context, subject string) {
	of(ctx).change(func(e *intent.AuditEntry) { e.Subject = cut(subject, maxText) })
}

// Change adds what was there before, and what is there now. Neither may contain a secret. nil stands for nothing.
func Change(ctx context.Context, before, after any) {
	of(ctx).change(func(e *intent.AuditEntry) { e.Before, e.After = value(before), value(after) })
}

// Aside returns a context for a part of a request whose details do not belong into its entry.
func Aside(ctx context.Context) context.Context {
	return context.WithValue(ctx, trailKey{}, (*Trail)(nil))
}

// Failed says that a request failed, for a door that answers it before it ends the trail.
func Failed(ctx context.Context, err error) {
	if t := of(ctx); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.failed = err
	}
}

// Because adds who acts, in their own words, and why. The name only counts when nobody is logged in.
func Because(ctx context.Context, by, reason string) {
	of(ctx).change(func(e *intent.AuditEntry) {
		if by != "" && e.Kind == string(access.Local) {
			e.Actor = cut(by, maxText)
		}
		if reason != "" {
			e.Reason = cut(reason, maxText)
		}
	})
}

func of(ctx context.Context) *Trail {
	t, _ := ctx.Value(trailKey{}).(*Trail)
	return t
}

func (t *Trail) change(do func(*intent.AuditEntry)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	do(&t.entry)
}

func value(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil || len(text) > maxValue {
		return json.RawMessage(`"(too large to keep)"`)
	}
	return text
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
