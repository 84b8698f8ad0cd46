package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// stateCalls are about resources that are left alone, and about those that drifted. Inmanta has no such calls.
func (s *server) stateCalls(c *calls) {
	whole(c, http.MethodGet, "/api/v2/drift", "List the records of drift.",
		access.SeeDrift, s.listDrift, pagesOf(store.DriftList))
	v2(c, http.MethodPost, "/api/v2/unpark",
		"Unpark resources, all of them when none is named. The answer names those that were parked.",
		access.Unpark, s.unpark)
}

// drift is a record of drift.
type drift struct {
	ID         uuid.UUID           `json:"id"`
	ResourceID string              `json:"resource_id"`
	Attribute  string              `json:"attribute"`
	Desired    json.RawMessage     `json:"desired"`
	Found      json.RawMessage     `json:"found"`
	Version    int                 `json:"version"`
	Since      timestamp           `json:"since"`
	Seen       timestamp           `json:"seen"`
	Ended      *timestamp          `json:"ended"`
	Ending     *intent.DriftEnding `json:"ending"`
}

// retrying is how a resource is tried again, or why it is not.
type retrying struct {
	Parked   *intent.Parking `json:"parked"`
	ParkedAt *timestamp      `json:"parked_at"`
	RetryAt  *timestamp      `json:"retry_at"`
	Attempts int             `json:"attempts"`
	Drifted  bool            `json:"drifted"`
}

// breaker is the breaker of an agent.
type breaker struct {
	State     string     `json:"state"`
	Since     *timestamp `json:"since"`
	Failures  int        `json:"failures"`
	NextProbe *timestamp `json:"next_probe"`
}

// someResources names resources; leaving the list out means all, and an empty list means none.
type someResources struct {
	inEnvironment
	Resources []string `arg:"resource_ids"`
}

func (s *server) listDrift(ctx context.Context, a pageIn) (page[drift], error) {
	q, err := a.query(store.DriftList)
	if err != nil {
		return page[drift]{}, err
	}
	found, err := s.store.Drift(ctx, a.Env, q)
	return pageOf(address{path: "/api/v2/drift", list: store.DriftList}, q, found, driftOf,
		func(d intent.Drift) place {
			if q.Sort == "resource_id" {
				return at(d.Resource.String(), d.ID.String())
			}
			return atTime(d.Since, d.ID.String())
		}), err
}

func (s *server) unpark(ctx context.Context, a someResources) ([]string, error) {
	named, err := parseIDs("resource_ids", a.Resources)
	if err != nil || a.Resources != nil && len(named) == 0 {
		return []string{}, err
	}
	freed, err := s.control.Unpark(ctx, a.Env, named)
	return ids(freed), err
}

func driftOf(d intent.Drift) drift {
	return drift{
		ID: d.ID, ResourceID: d.Resource.String(), Attribute: d.Attribute, Desired: d.Desired, Found: d.Found,
		Version: d.Version, Since: stamp(d.Since), Seen: stamp(d.Seen), Ended: maybe(d.Ended), Ending: orNull(d.Ending),
	}
}

func retryingOf(st intent.ResourceState) retrying {
	return retrying{
		Parked: orNull(st.Parked), ParkedAt: maybe(st.ParkedAt), RetryAt: maybe(st.RetryAt), Attempts: st.Attempts,
		Drifted: st.Drifted,
	}
}

func breakerOf(b intent.Breaker) breaker {
	out := breaker{State: "closed", Since: maybe(b.Since), Failures: b.Failures, NextProbe: maybe(b.ProbeAt)}
	if b.Open() {
		out.State = "open"
	}
	return out
}
