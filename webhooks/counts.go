package webhooks

import (
	"net/http"
	"sync/atomic"
)

// Counts says how many webhooks were answered in which way since the server started.
type Counts struct {
	Accepted  int64 `json:"accepted"`     // 202
	Repeated  int64 `json:"repeated"`     // 200
	Malformed int64 `json:"malformed"`    // 400
	Refused   int64 `json:"refused"`      // 401
	TooBig    int64 `json:"too_big"`      // 413
	Limited   int64 `json:"rate_limited"` // 429
	Failed    int64 `json:"failed"`       // 503
}

type counts struct {
	accepted, repeated, malformed, refused, tooBig, limited, failed atomic.Int64
}

// add counts an answer with this status.
func (c *counts) add(status int) {
	switch status {
	case http.StatusAccepted:
		c.accepted.Add(1)
	case http.StatusOK:
		c.repeated.Add(1)
	case http.StatusBadRequest:
		c.malformed.Add(1)
	case http.StatusUnauthorized:
		c.refused.Add(1)
	case http.StatusRequestEntityTooLarge:
		c.tooBig.Add(1)
	case http.StatusTooManyRequests:
		c.limited.Add(1)
	case http.StatusServiceUnavailable:
		c.failed.Add(1)
	}
}

// Counts returns how many webhooks were answered in which way.
func (h *Handler) Counts() Counts {
	c := &h.counts
	return Counts{
		Accepted: c.accepted.Load(), Repeated: c.repeated.Load(), Malformed: c.malformed.Load(),
		Refused: c.refused.Load(), TooBig: c.tooBig.Load(), Limited: c.limited.Load(), Failed: c.failed.Load(),
	}
}
