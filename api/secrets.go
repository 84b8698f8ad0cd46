package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// secrets is Ordain's own: what an environment's repository and webhooks ask
// to see, and variables of handlers (variable:NAME). They are written and never
// read back; the list says which there are.
func (s *server) secrets(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/environment/{id}/secret", func(ctx context.Context, a struct {
		ID uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		if _, err := s.environment(ctx, a.ID); err != nil {
			return reply{}, err
		}
		names, err := s.control.SecretNames(ctx, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(masked(names))
	})
	call(s, g, http.MethodPut, "/api/v2/environment/{id}/secret/{name}", func(ctx context.Context, a struct {
		ID    uuid.UUID `arg:"id,required"`
		Name  string    `arg:"name,required"`
		Value string    `arg:"value"`
	}) (reply, error) {
		if _, err := s.environment(ctx, a.ID); err != nil {
			return reply{}, err
		}
		if err := s.control.SetSecret(ctx, a.ID, a.Name, a.Value); err != nil {
			return reply{}, err
		}
		return v2(nil)
	})
	s.projectSecrets(g)
}

// projectSecrets is what all environments of a project share: credentials, and
// the keys of SSH servers, which are no secret and can be read.
func (s *server) projectSecrets(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/project/{id}/secret", func(ctx context.Context, a struct {
		ID uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		names, err := s.control.ProjectSecretNames(ctx, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(masked(names))
	})
	call(s, g, http.MethodPut, "/api/v2/project/{id}/secret/{name}", func(ctx context.Context, a struct {
		ID    uuid.UUID `arg:"id,required"`
		Name  string    `arg:"name,required"`
		Value string    `arg:"value"`
	}) (reply, error) {
		if err := s.control.SetProjectSecret(ctx, a.ID, a.Name, a.Value); err != nil {
			return reply{}, err
		}
		return v2(nil)
	})
	call(s, g, http.MethodGet, "/api/v2/project/{id}/known_hosts", func(ctx context.Context, a struct {
		ID uuid.UUID `arg:"id,required"`
	}) (reply, error) {
		lines, err := s.store.KnownHosts(ctx, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v2(lines)
	})
	call(s, g, http.MethodPut, "/api/v2/project/{id}/known_hosts", func(ctx context.Context, a struct {
		ID    uuid.UUID `arg:"id,required"`
		Lines string    `arg:"lines"`
	}) (reply, error) {
		if err := s.control.SetKnownHosts(ctx, a.ID, a.Lines); err != nil {
			return reply{}, err
		}
		return v2(nil)
	})
}

// masked lists secrets by name; their values are never given.
func masked(names []string) []any {
	out := []any{}
	for _, name := range names {
		out = append(out, map[string]any{"name": name, "value": intent.Secret})
	}
	return out
}
