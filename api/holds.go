package api

import (
	"context"
	"net/http"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// holdCalls are about versions that wait for a person. Inmanta has no such calls; its own calls answer 409 when they
// are to release such a version.
func (s *server) holdCalls(c *calls) {
	const one = "/api/v2/desiredstate/{version}/"
	v2(c, http.MethodGet, one+"hold", "Show why a version is held, and what it takes away.",
		access.SeeVersions, s.getHold)
	v2(c, http.MethodPost, one+"confirm", "Release a version that is held.", access.Confirm, s.confirmVersion)
}

// hold is why a version is held, or was.
type hold struct {
	Held         bool                `json:"held"`
	Since        timestamp           `json:"since"`
	Reasons      []intent.HoldReason `json:"reasons"`
	Text         string              `json:"text"`
	Confirmable  bool                `json:"confirmable"`
	ComparedWith int                 `json:"compared_with"`
	Resources    int                 `json:"resources"`
	Removed      int                 `json:"removed"`
	Gone         int                 `json:"gone"`
	Purged       int                 `json:"purged"`
	Protected    int                 `json:"protected"`
	Confirmed    *decision           `json:"confirmed"`
}

// wholeHold also names what the version takes away: by type, and the first of it by id.
type wholeHold struct {
	hold
	Types          []intent.RemovedType `json:"types"`
	First          []removedResource    `json:"first"`
	FirstProtected []removedResource    `json:"first_protected"`
}

type removedResource struct {
	ResourceID string `json:"resource_id"`
	Purged     bool   `json:"purged"`
}

type confirmation struct {
	oneVersion
	byPerson
}

func (s *server) getHold(ctx context.Context, a oneVersion) (wholeHold, error) {
	v, err := s.store.Version(ctx, a.Env, a.Version)
	if err != nil {
		return wholeHold{}, err
	}
	if v.Hold == nil {
		return wholeHold{}, fault.New("api", fault.NotFound, "this version was not held")
	}
	removed := func(r intent.Removed) removedResource { return removedResource{r.ID.String(), r.Purged} }
	return wholeHold{
		hold: holdOf(v), Types: notNil(v.Hold.Types), First: listed(v.Hold.First, removed),
		FirstProtected: listed(v.Hold.Protected, removed),
	}, nil
}

func (s *server) confirmVersion(ctx context.Context, a confirmation) (version, error) {
	if err := s.control.Confirm(ctx, a.Env, a.Version, a.By, a.Reason); err != nil {
		return version{}, err
	}
	v, err := s.store.Version(ctx, a.Env, a.Version)
	return versionOf(v), err
}

// holdOf shows the hold of a version that has one.
func holdOf(v intent.Version) hold {
	h := v.Hold
	out := hold{
		Held: v.Held(), Since: stamp(h.Since), Reasons: h.Reasons, Text: h.Text, Confirmable: h.Confirmable(),
		ComparedWith: h.Before, Resources: h.Live, Removed: h.Count(), Gone: h.Gone, Purged: h.Purged,
		Protected: h.ProtectedCount,
	}
	if c := v.Confirmed; c != nil {
		out.Confirmed = &decision{By: c.By, Reason: c.Reason, At: stamp(c.At)}
	}
	return out
}
