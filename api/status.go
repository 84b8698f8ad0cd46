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
	Features          []struct{}        `json:"features"`
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
	Name           string   `json:"name"`
	Status         struct{} `json:"status"`
	ReportedStatus string   `json:"reported_status"`
	Message        *string  `json:"message"`
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
	go func() { counting <- s.processSlice(ctx) }() // beside the ping, which may take its whole time
	database := serverSlice{Name: "core.database", ReportedStatus: "OK"}
	if err := s.ping(ctx); err != nil {
		database.ReportedStatus, database.Message = "Error", new("the database does not answer")
	}
	return serverStatus{
		Product: "Ordain", Edition: "Open Source Edition", Version: s.version, License: "open source",
		Extensions: []serverExtension{{Name: "core", Version: s.version, Package: "ordain"}},
		Slices: []serverSlice{
			{Name: "core.server", ReportedStatus: "OK"},
			database,
			s.isolation,
			<-counting,
		},
		Features: []struct{}{}, Status: database.ReportedStatus,
	}, nil
}

// processSlice says how many processes died. Somebody has to look at them; the server is well nevertheless.
func (s *server) processSlice(ctx context.Context) serverSlice {
	out := serverSlice{Name: "ordain.processes", ReportedStatus: "OK"}
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
	out := serverSlice{Name: "ordain.isolation", ReportedStatus: "OK"}
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
