package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/intent"
)

// executors is the call about what runs the handlers, which the reference does not have.
func (s *server) executors(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/executors", func(ctx context.Context, a struct {
		inEnvironment
	}) (reply, error) {
		x, err := s.control.Executors(ctx, a.Env)
		if err != nil {
			return reply{}, err
		}
		return v2(executorsOf(x))
	})
}

func executorsOf(x intent.Executors) any {
	processes, folders := []any{}, []any{}
	for _, p := range x.Processes {
		one := map[string]any{
			"blueprint": p.Blueprint, "venv": p.Venv, "modules": append([]string{}, p.Modules...), "pid": p.PID, "memory_bytes": p.RSS,
			"running": p.Running, "agents": p.Agents, "started": stamp(p.Started), "idle_since": nil, "ending": p.Ending,
		}
		if !p.IdleSince.IsZero() {
			one["idle_since"] = stamp(p.IdleSince)
		}
		processes = append(processes, one)
	}
	for _, f := range x.Folders {
		folders = append(folders, map[string]any{
			"kind": f.Kind, "hash": f.Hash, "bytes": f.Size, "bytes_alone": f.Alone, "last_used": stamp(f.LastUsed), "in_use": f.InUse,
		})
	}
	return map[string]any{
		"here":           x.Here,
		"processes":      processes,
		"folders":        folders,
		"disk_bytes":     x.Disk,
		"disk_max_bytes": x.DiskMax,
	}
}
