package server

import (
	"context"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

// explain tells who decided values, for the comments on pull requests. The service that
// writes those is made before the controls are.
func (s *Server) explain(
	ctx context.Context, env intent.EnvironmentID, version int, id intent.ResourceID,
) (provenance.Explanation, error) {
	if s.control == nil {
		return provenance.Explanation{}, fault.New("server.explain", fault.Unavailable, "the server is starting")
	}
	return s.control.Explain(ctx, env, version, id)
}
