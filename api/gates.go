package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// shownGates is how many of the newest overrides and interventions are listed.
const shownGates = 500

// actor is who asks and why; calls that Inmanta has too can leave both out.
type actor struct {
	By     string `arg:"by"`
	Reason string `arg:"reason"`
}

func (a actor) as(ctx context.Context) context.Context {
	if a.By == "" {
		a.By = "the API"
	}
	return control.As(ctx, a.By, a.Reason)
}

// gates are the calls about what holds changes and who lets them through.
// Inmanta has none like them.
//
//	GET    /api/v2/override         overrides, newest first, also those that are over
//	PUT    /api/v2/override         {"by", "reason", "until" or "minutes", "agents"?}: let changes through windows and freezes
//	DELETE /api/v2/override/<id>    end one before its time
//	GET    /api/v2/interventions    who halted, resumed, paused, unpaused and let through, newest first
//	GET    /api/v2/maintenance      what holds changes of each agent now, and until when
//	GET    /api/v2/resource/<rid>/why   why a resource is not deployed
func (s *server) gates(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/override", func(ctx context.Context, a struct{ inEnvironment }) (reply, error) {
		if _, err := s.environment(ctx, a.Env); err != nil {
			return reply{}, err
		}
		list, err := s.store.Overrides(ctx, a.Env, shownGates)
		if err != nil {
			return reply{}, err
		}
		return v2(listed(list, s.overrideOf))
	})
	call(s, g, http.MethodPut, "/api/v2/override", func(ctx context.Context, a struct {
		inEnvironment
		By      string   `arg:"by,required"`
		Reason  string   `arg:"reason,required"`
		Until   *string  `arg:"until"`
		Minutes int      `arg:"minutes"`
		Agents  []string `arg:"agents"`
	}) (reply, error) {
		o := intent.Override{By: a.By, Reason: a.Reason, Agents: a.Agents}
		switch {
		case a.Until != nil && a.Minutes != 0, a.Until == nil && a.Minutes == 0:
			return reply{}, invalid("say until when, or for how many minutes")
		case a.Until != nil:
			at, err := parseTime(*a.Until)
			if err != nil {
				return reply{}, invalid("until: %v", err)
			}
			o.Until = at
		default:
			if a.Minutes < 1 || a.Minutes > int(intent.LongestOverride/time.Minute) {
				return reply{}, invalid(
					"minutes: an override lasts 1 to %d of them",
					int(intent.LongestOverride/time.Minute),
				)
			}
			o.Until = s.now().Add(time.Duration(a.Minutes) * time.Minute)
		}
		o, err := s.control.Override(ctx, a.Env, o)
		if err != nil {
			return reply{}, err
		}
		return v2(s.overrideOf(o))
	})
	call(s, g, http.MethodDelete, "/api/v2/override/{id}", func(ctx context.Context, a struct {
		inEnvironment
		actor
		ID uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		if err := s.control.EndOverride(a.as(ctx), a.Env, a.ID); err != nil {
			return reply{}, err
		}
		return nothing()
	})
	call(
		s,
		g,
		http.MethodGet,
		"/api/v2/interventions",
		func(ctx context.Context, a struct{ inEnvironment }) (reply, error) {
			if _, err := s.environment(ctx, a.Env); err != nil {
				return reply{}, err
			}
			list, err := s.store.Interventions(ctx, a.Env, shownGates)
			if err != nil {
				return reply{}, err
			}
			return v2(listed(list, func(x intent.Intervention) any {
				return map[string]any{
					"at":     stamp(x.At),
					"by":     x.By,
					"kind":   x.Kind,
					"agent":  textOrNull(x.Agent),
					"reason": x.Reason,
				}
			}))
		},
	)
	call(
		s,
		g,
		http.MethodGet,
		"/api/v2/maintenance",
		func(ctx context.Context, a struct{ inEnvironment }) (reply, error) {
			e, err := s.environment(ctx, a.Env)
			if err != nil {
				return reply{}, err
			}
			windows, err := e.Windows()
			if err != nil {
				return reply{}, err
			}
			now, list := s.now(), []any{}
			for i := range windows {
				w := &windows[i]
				open, until := w.At(now)
				list = append(list, map[string]any{
					"name": w.Name, "kind": w.Kind, "cron": w.Cron, "duration": w.Duration.Seconds(), "timezone": w.Zone,
					"agents": notNil(
						w.Agents,
					), "resources": notNil(w.Resources), "open": open, "changes": timeOrNull(until),
				})
			}
			lasting := []any{}
			for _, o := range e.Overrides {
				lasting = append(lasting, s.overrideOf(o))
			}
			return v2(map[string]any{"windows": list, "overrides": lasting})
		},
	)
	call(s, g, http.MethodGet, "/api/v2/resource/{rid}/why", func(ctx context.Context, a oneResource) (reply, error) {
		w, err := s.control.Why(ctx, a.Env, a.ID)
		if err != nil {
			return reply{}, err
		}
		reasons := []any{}
		for _, r := range w.Reasons {
			var on any
			if !r.Resource.IsZero() {
				on = r.Resource.String()
			}
			reasons = append(
				reasons,
				map[string]any{"kind": r.Kind, "text": r.Text, "until": timeOrNull(r.Until), "resource_id": on},
			)
		}
		return v2(
			map[string]any{
				"resource_id": w.Resource.String(),
				"status":      w.Status,
				"sentence":    w.Sentence,
				"reasons":     reasons,
			},
		)
	})
}

func (s *server) overrideOf(o intent.Override) map[string]any {
	return map[string]any{
		"id": o.ID, "by": o.By, "reason": o.Reason, "agents": notNil(o.Agents), "created": stamp(o.Created), "until": stamp(o.Until),
		"ended": maybe(o.Ended), "ended_by": textOrNull(o.EndedBy), "lasts": o.Lasts(s.now()),
	}
}

func timeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
