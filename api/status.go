package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

func (s *server) statusCalls(c *calls) {
	v2(c, http.MethodGet, "/api/v1/serverstatus", "Show the status of the server.", access.SeeStatus, s.getStatus)
	done[nullData](c, http.MethodGet, "/api/v2/health", "Tell whether the server can work.",
		access.SeeHealth, s.checkHealth)
}

type serverStatus struct {
	Product           string            `json:"product"`
	Edition           string            `json:"edition"`
	Version           string            `json:"version"`
	License           string            `json:"license"`
	Extensions        []serverExtension `json:"extensions"`
	Slices            []serverSlice     `json:"slices"`
	Features          []serverFeature   `json:"features"`
	Status            string            `json:"status"`
	PythonVersion     *string           `json:"python_version"`
	PostgreSQLVersion *string           `json:"postgresql_version"`
}

type serverExtension struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Package string `json:"package"`
}

type serverSlice struct {
	Name           string         `json:"name"`
	Status         map[string]any `json:"status"`
	ReportedStatus string         `json:"reported_status"`
	Message        *string        `json:"message"`
}

// pingTimeout is how long a status waits for the database.
const pingTimeout = 800 * time.Millisecond

// ping reports whether the database answers soon.
func (s *server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return s.store.Ping(ctx)
}

func (s *server) getStatus(ctx context.Context, _ struct{}) (serverStatus, error) {
	counting := make(chan serverSlice, 1)
	go func() { counting <- s.processSlice(ctx) }() // beside the database, which may take its whole time
	detailed := access.Of(ctx).Decide(access.SeeReplicas, access.Target{}).Allowed
	database, version := s.databaseSlice(ctx, detailed)
	out := serverStatus{
		Product: "Ordain", Edition: "Open Source Edition", Version: s.version, License: "open source",
		Extensions: []serverExtension{{Name: "core", Version: s.version, Package: "ordain"}},
		Slices:     []serverSlice{s.transportSlice(detailed), well("core.server"), database},
		Features:   serverFeatures(), Status: database.ReportedStatus, PostgreSQLVersion: orNull(version),
		PythonVersion: orNull(s.python),
	}
	for _, part := range parts {
		out.Slices = append(out.Slices, well(part))
	}
	out.Slices = append(out.Slices, s.isolation, <-counting)
	return out, nil
}

// parts are the parts of the server that clients of the reference look for. Each is a part of this process, too, so it
// is well when the process answers.
var parts = []string{
	"core.scheduler_manager", "core.autostarted_agent_manager", "core.compiler", "core.project", "core.environment",
	"core.file", "core.code", "core.metrics", "core.parameters", "core.resource", "core.orchestration", "core.dryrun",
	"core.notification", "core.user", "core.environment-metrics", "core.graphql", "core.feature",
}

func well(name string) serverSlice {
	return serverSlice{Name: name, Status: map[string]any{}, ReportedStatus: "OK"}
}

// Numbers and addresses are for those who may see the server's processes.
func (s *server) transportSlice(detailed bool) serverSlice {
	out := well("core.transport")
	if !detailed {
		return out
	}
	out.Status = map[string]any{"inflight": s.inflight.Load(), "running": true, "sockets": notNil(s.sockets)}
	return out
}

// databaseSlice describes the database, and returns its version.
func (s *server) databaseSlice(ctx context.Context, detailed bool) (out serverSlice, version string) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	info, err := s.store.ServerInfo(ctx)
	out = well("core.database")
	if err != nil {
		out.ReportedStatus, out.Message = "Error", new("the database does not answer")
	}
	if !detailed {
		return out, info.Version
	}
	out.Status = map[string]any{
		"connected": err == nil, "database": info.Database, "host": info.Host, "max_pool": info.MaxConnections,
		"free_pool":        info.MaxConnections - info.OpenConnections + info.IdleConnections,
		"open_connections": info.OpenConnections, "free_connections": info.IdleConnections,
		"pool_exhaustion_time": info.Waited.Seconds(),
	}
	return out, info.Version
}

// processSlice says how many processes died. Somebody has to look at them; the server is well nevertheless.
func (s *server) processSlice(ctx context.Context) serverSlice {
	out := well("ordain.processes")
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	n, err := s.store.CountProcesses(ctx, uuid.Nil)
	switch {
	case err != nil:
		out.ReportedStatus, out.Message = "Error", new("the database does not answer")
	case n.Dead > 0:
		out.ReportedStatus = "Warning"
		out.Message = new(fmt.Sprintf("%d dead, %d waiting, %d running", n.Dead, n.Waiting, n.Running))
	}
	return out
}

// isolationSlice says how well environments are separated. What is missing is no reason to call the
// server unwell.
func isolationSlice(c Config) serverSlice {
	out := well("ordain.isolation")
	if !c.Separated {
		out.ReportedStatus = "Warning"
	}
	if c.Isolation != "" {
		out.Message = new(c.Isolation)
	}
	return out
}

func (s *server) checkHealth(ctx context.Context, _ struct{}) error {
	if err := s.ping(ctx); err != nil {
		return fault.Wrap("api.health", fault.Internal, err).Say("the database does not answer")
	}
	return nil
}
