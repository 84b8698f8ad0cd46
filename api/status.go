package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/fault"
)

func (s *server) status(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v1/serverstatus", func(ctx context.Context, _ struct{}) (reply, error) {
		database, message := "OK", any(nil)
		if err := s.store.Ping(ctx); err != nil {
			database, message = "Error", "the database does not answer"
		}
		slice := func(name, status string, message any) map[string]any {
			return map[string]any{
				"name":            name,
				"status":          map[string]any{},
				"reported_status": status,
				"message":         message,
			}
		}
		return v2(map[string]any{
			"product": "Ordain", "edition": "Open Source Edition", "version": s.version, "license": "open source",
			"extensions": []any{
				map[string]any{"name": "core", "version": s.version, "package": "ordain"},
			},
			"slices":   []any{slice("core.server", "OK", nil), slice("core.database", database, message)},
			"features": []any{}, "status": database, "python_version": nil, "postgresql_version": nil,
		})
	})
	call(s, g, http.MethodGet, "/api/v2/health", func(ctx context.Context, _ struct{}) (reply, error) {
		if err := s.store.Ping(ctx); err != nil {
			return reply{}, fault.Wrap("api.health", fault.Internal, err).Say("the database does not answer")
		}
		return v2(nil)
	})
	// There are no users to log in as.
	call(s, g, http.MethodGet, "/api/v2/current_user", func(context.Context, struct{}) (reply, error) {
		return reply{}, fault.New(
			"api",
			fault.NotFound,
			"no current user found, probably an API token is used or authentication is off",
		)
	})
}
