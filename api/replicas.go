package api

import (
	"context"
	"net/http"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// replicaCalls are about the server processes that share the database. Inmanta has no such calls.
func (s *server) replicaCalls(c *calls) {
	v2(c, http.MethodGet, "/api/v2/replica", "List the server processes that run, with their roles.",
		access.SeeReplicas, s.listReplicas)
}

type shownReplica struct {
	Name    string    `json:"name"`
	Roles   []string  `json:"roles"`
	Version string    `json:"version"`
	Address string    `json:"address"`
	Started timestamp `json:"started"`
	Seen    timestamp `json:"seen"`
	Owned   int       `json:"environments"`
	Wanted  int       `json:"share"`
}

// replicaSeen is for how long a process is listed after its last sign.
const replicaSeen = 10 * time.Second

func (s *server) listReplicas(ctx context.Context, _ struct{}) ([]shownReplica, error) {
	live, err := s.store.Replicas(ctx, replicaSeen)
	return listed(live, func(r intent.Replica) shownReplica {
		return shownReplica{
			Name: r.Name, Roles: r.Roles, Version: r.Version, Address: r.Address,
			Started: stamp(r.Started), Seen: stamp(r.Seen), Owned: r.Owned, Wanted: r.Wanted,
		}
	}), err
}
