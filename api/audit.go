package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

func (s *server) auditCalls(c *calls) {
	const server, project, environment = "/api/v2/audit", "/api/v2/project/{id}/audit", "/api/v2/environment/{id}/audit"
	const page = "Show who changed what, newest first."
	whole(c, http.MethodGet, server, page, access.SeeServerAudit, s.serverAudit, pagesOf(store.AuditList))
	whole(c, http.MethodGet, project, page, access.SeeProjectAudit, s.projectAudit, pagesOf(store.AuditList))
	whole(c, http.MethodGet, environment, page, access.SeeAudit, s.environmentAudit, pagesOf(store.AuditList))
	const export = "Return the entries after one, in the order in which they were written."
	v2(c, http.MethodGet, server+"/export", export, access.SeeServerAudit, s.exportServerAudit)
	v2(c, http.MethodGet, project+"/export", export, access.SeeProjectAudit, s.exportProjectAudit)
	v2(c, http.MethodGet, environment+"/export", export, access.SeeAudit, s.exportEnvironmentAudit)
}

type auditEntry struct {
	ID              int64               `json:"id"`
	At              timestamp           `json:"at"`
	Actor           string              `json:"actor"`
	Kind            string              `json:"kind"`
	Credential      string              `json:"credential"`
	Address         string              `json:"address"`
	Door            string              `json:"door"`
	Verb            string              `json:"verb"`
	Project         *uuid.UUID          `json:"project"`
	ProjectName     string              `json:"project_name"`
	Environment     *uuid.UUID          `json:"environment"`
	EnvironmentName string              `json:"environment_name"`
	Subject         string              `json:"subject"`
	Before          any                 `json:"before"`
	After           any                 `json:"after"`
	Reason          string              `json:"reason"`
	Outcome         intent.AuditOutcome `json:"outcome"`
	Problem         string              `json:"problem"`
}

type projectAudit struct {
	oneProject
	paging
}

type environmentAudit struct {
	oneEnvironment
	paging
}

// auditAfter are the arguments of an export: the entries after one, 1000 at most.
type auditAfter struct {
	After int64 `arg:"after"`
}

type projectAuditAfter struct {
	oneProject
	auditAfter
}

type environmentAuditAfter struct {
	oneEnvironment
	auditAfter
}

func (s *server) serverAudit(ctx context.Context, a paging) (page[auditEntry], error) {
	return s.auditPage(ctx, "/api/v2/audit", uuid.Nil, uuid.Nil, a)
}

func (s *server) projectAudit(ctx context.Context, a projectAudit) (page[auditEntry], error) {
	return s.auditPage(ctx, "/api/v2/project/"+a.ID.String()+"/audit", a.ID, uuid.Nil, a.paging)
}

func (s *server) environmentAudit(ctx context.Context, a environmentAudit) (page[auditEntry], error) {
	return s.auditPage(ctx, "/api/v2/environment/"+a.ID.String()+"/audit", uuid.Nil, a.ID, a.paging)
}

func (s *server) auditPage(
	ctx context.Context,
	path string,
	project, env uuid.UUID,
	p paging,
) (page[auditEntry], error) {
	q, err := p.query(store.AuditList)
	if err != nil {
		return page[auditEntry]{}, err
	}
	found, err := s.store.Audit(ctx, project, env, q)
	return pageOf(
		address{path: path, list: store.AuditList},
		q,
		found,
		auditEntryOf,
		func(e intent.AuditEntry) place {
			id := strconv.FormatInt(e.ID, 10)
			switch q.Sort {
			case "actor":
				return at(e.Actor, id)
			case "verb":
				return at(e.Verb, id)
			}
			return atTime(e.At, id)
		},
	), err
}

func (s *server) exportServerAudit(ctx context.Context, a auditAfter) ([]auditEntry, error) {
	return s.auditExport(ctx, uuid.Nil, uuid.Nil, a)
}

func (s *server) exportProjectAudit(ctx context.Context, a projectAuditAfter) ([]auditEntry, error) {
	return s.auditExport(ctx, a.ID, uuid.Nil, a.auditAfter)
}

func (s *server) exportEnvironmentAudit(ctx context.Context, a environmentAuditAfter) ([]auditEntry, error) {
	return s.auditExport(ctx, uuid.Nil, a.ID, a.auditAfter)
}

func (s *server) auditExport(ctx context.Context, project, env uuid.UUID, a auditAfter) ([]auditEntry, error) {
	found, err := s.store.AuditAfter(ctx, project, env, a.After, store.MaxPage)
	return listed(found, auditEntryOf), err
}

func auditEntryOf(e intent.AuditEntry) auditEntry {
	out := auditEntry{
		ID: e.ID, At: stamp(e.At), Actor: e.Actor, Kind: e.Kind, Credential: e.Credential, Address: e.Address,
		Door: e.Door, Verb: e.Verb, ProjectName: e.ProjectName, EnvironmentName: e.EnvironmentName,
		Subject: e.Subject, Reason: e.Reason, Outcome: e.Outcome, Problem: e.Problem,
	}
	if e.Project != uuid.Nil {
		out.Project = &e.Project
	}
	if e.Environment != uuid.Nil {
		out.Environment = &e.Environment
	}
	_ = json.Unmarshal(e.Before, &out.Before) // the store keeps JSON, or nothing
	_ = json.Unmarshal(e.After, &out.After)
	return out
}
