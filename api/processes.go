package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// processCalls are about recorded work. Inmanta has no such calls.
func (s *server) processCalls(c *calls) {
	const all, own = "/api/v2/process", "/api/v2/environment/{id}/process"
	const list = "List processes, newest first: what runs, what waits and for what, and what ended and why."
	const show = "Show a process."
	const retry = "Run a dead process again, or a waiting one at once."
	const cancel = "End a process."
	whole(c, http.MethodGet, all, list, access.SeeAllProcesses, s.listAllProcesses, pagesOf(store.ProcessList))
	v2(c, http.MethodGet, all+"/{process}", show, access.SeeAllProcesses, s.getAnyProcess)
	done[nullData](c, http.MethodPost, all+"/{process}/retry", retry, access.ManageAllProcesses, s.retryAnyProcess)
	done[nullData](c, http.MethodPost, all+"/{process}/cancel", cancel, access.ManageAllProcesses, s.cancelAnyProcess)
	whole(c, http.MethodGet, own, list, access.SeeProcesses, s.listProcesses, pagesOf(store.ProcessList))
	v2(c, http.MethodGet, own+"/{process}", show, access.SeeProcesses, s.getProcess)
	done[nullData](c, http.MethodPost, own+"/{process}/retry", retry, access.ManageProcesses, s.retryProcess)
	done[nullData](c, http.MethodPost, own+"/{process}/cancel", cancel, access.ManageProcesses, s.cancelProcess)
}

// processView is a process without its data, which are for its handlers.
type processView struct {
	ID              int64               `json:"id"`
	Name            string              `json:"name"`
	ResourceType    string              `json:"resource_type"`
	ResourceID      string              `json:"resource_id"`
	Environment     *uuid.UUID          `json:"environment"`
	EnvironmentName string              `json:"environment_name"`
	State           intent.ProcessState `json:"state"`
	Waits           string              `json:"waits"`
	WaitsFor        *int64              `json:"waits_for"`
	Phase           string              `json:"phase"`
	Attempts        int                 `json:"attempts"`
	MaxAttempts     int                 `json:"max_attempts"`
	Priority        int                 `json:"priority"`
	Problem         string              `json:"problem"`
	Reason          string              `json:"reason"`
	MadeBy          string              `json:"made_by"`
	Made            timestamp           `json:"made"`
	Begun           *timestamp          `json:"begun"`
	Next            timestamp           `json:"next"`
	Deadline        *timestamp          `json:"deadline"`
	Ended           *timestamp          `json:"ended"`
	Worker          string              `json:"worker"`
}

type processPage struct {
	oneEnvironment
	paging
}

type anyProcess struct {
	Process int64 `arg:"process,required"`
}

type oneProcess struct {
	oneEnvironment
	anyProcess
}

func (s *server) listAllProcesses(ctx context.Context, a paging) (page[processView], error) {
	return s.processPage(ctx, "/api/v2/process", uuid.Nil, a)
}

func (s *server) listProcesses(ctx context.Context, a processPage) (page[processView], error) {
	return s.processPage(ctx, "/api/v2/environment/"+a.ID.String()+"/process", a.ID, a.paging)
}

func (s *server) processPage(
	ctx context.Context, path string, env uuid.UUID, p paging,
) (page[processView], error) {
	q, err := p.query(store.ProcessList)
	if err != nil {
		return page[processView]{}, err
	}
	found, err := s.store.Processes(ctx, env, q)
	return pageOf(
		address{path: path, list: store.ProcessList}, q, found, processOf,
		func(p intent.Process) place {
			id := strconv.FormatInt(p.ID, 10)
			if q.Sort == "id" {
				return at(id, id)
			}
			return atTime(p.Made, id)
		},
	), err
}

func (s *server) getAnyProcess(ctx context.Context, a anyProcess) (processView, error) {
	p, err := s.store.Process(ctx, uuid.Nil, a.Process)
	return processOf(p), err
}

func (s *server) getProcess(ctx context.Context, a oneProcess) (processView, error) {
	p, err := s.store.Process(ctx, a.ID, a.Process)
	return processOf(p), err
}

func (s *server) retryAnyProcess(ctx context.Context, a anyProcess) error {
	return s.control.RetryProcess(ctx, uuid.Nil, a.Process)
}

func (s *server) retryProcess(ctx context.Context, a oneProcess) error {
	return s.control.RetryProcess(ctx, a.ID, a.Process)
}

func (s *server) cancelAnyProcess(ctx context.Context, a anyProcess) error {
	return s.control.CancelProcess(ctx, uuid.Nil, a.Process)
}

func (s *server) cancelProcess(ctx context.Context, a oneProcess) error {
	return s.control.CancelProcess(ctx, a.ID, a.Process)
}

func processOf(p intent.Process) processView {
	out := processView{
		ID: p.ID, Name: p.Name, ResourceType: p.Resource.Type, ResourceID: p.Resource.ID,
		EnvironmentName: p.EnvironmentName, State: p.State, Waits: p.Waits(), Phase: p.Phase,
		Attempts: p.Attempts, MaxAttempts: p.Most, Priority: p.Priority, Problem: p.Problem, Reason: p.Reason,
		MadeBy: p.MadeBy, Made: stamp(p.Made), Begun: maybe(p.Begun), Next: stamp(p.Next), Deadline: maybe(p.Deadline),
		Ended: maybe(p.Ended), Worker: p.Worker,
	}
	if p.Environment != uuid.Nil {
		out.Environment = &p.Environment
	}
	if p.WaitsFor != 0 {
		out.WaitsFor = &p.WaitsFor
	}
	return out
}
