package api

import (
	"context"
	"net/http"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// quotaCalls are about how much a project may use. Inmanta has no such calls.
func (s *server) quotaCalls(c *calls) {
	const path = "/api/v2/project/{id}/quota"
	v2(c, http.MethodGet, path, "Show how much a project may use, and how much it uses.",
		access.SeeMembers, s.getQuota)
	v2(c, http.MethodPut, path, "Set how much a project may use; what is left out or null has no limit.",
		access.SetQuota, s.setQuota)
}

// quota is one kind of thing that a project uses. Disk is in bytes.
type quota struct {
	Name  string `json:"name"`
	Use   int64  `json:"use"`
	Limit *int64 `json:"limit"`
}

type newQuota struct {
	oneProject
	Environments *int64 `arg:"environments"`
	Resources    *int64 `arg:"resources"`
	Executors    *int64 `arg:"executors"`
	Compiles     *int64 `arg:"compiles"`
	Disk         *int64 `arg:"disk"`
}

func (s *server) getQuota(ctx context.Context, a oneProject) ([]quota, error) {
	limits, use, err := s.control.ProjectQuota(ctx, a.ID)
	return listed(intent.QuotaKinds, func(kind intent.QuotaKind) quota {
		q := quota{Name: string(kind), Use: use[kind]}
		if most, limited := limits[kind]; limited {
			q.Limit = &most
		}
		return q
	}), err
}

func (s *server) setQuota(ctx context.Context, a newQuota) ([]quota, error) {
	limits := intent.Quota{}
	for kind, most := range map[intent.QuotaKind]*int64{
		intent.QuotaEnvironments: a.Environments, intent.QuotaResources: a.Resources,
		intent.QuotaExecutors: a.Executors, intent.QuotaCompiles: a.Compiles, intent.QuotaDisk: a.Disk,
	} {
		if most != nil {
			limits[kind] = *most
		}
	}
	if err := s.control.SetQuota(ctx, a.ID, limits); err != nil {
		return nil, err
	}
	return s.getQuota(ctx, a.oneProject)
}
