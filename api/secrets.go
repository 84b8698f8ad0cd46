package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

// secrets is Ordain's own: what an environment's repository and webhooks ask
// to see. They are written and never read back.
func (s *server) secrets(g *gin.Engine) {
	call(s, g, http.MethodPut, "/api/v2/environment/:id/secret/:name", func(ctx context.Context, a struct {
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
}
