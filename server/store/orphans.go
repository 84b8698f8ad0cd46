package store

import (
	"context"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Orphan is a resource that is not managed any more: it is left as it was.
type Orphan struct {
	ID intent.ResourceID
	// LastVersion is the last version that had it. Gone is the version that was released after that, and GoneAt when; 0
	// when the environment went back to a version from before the resource.
	LastVersion, Gone int
	GoneAt            *time.Time
	// LastDeployed is the version that was deployed to it last, 0 for none.
	LastDeployed           int
	LastRun                intent.HandlerResult
	LastRunAt, LastSuccess *time.Time
}

type orphanRow struct {
	ID           string
	Type         string
	Agent        string
	Value        string
	LastVersion  int
	GoneVersion  *int
	GoneAt       *time.Time
	LastRun      string
	LastRunAt    *time.Time
	LastSuccess  *time.Time
	LastDeployed int
}

func (r orphanRow) value() (Orphan, error) {
	id, err := intent.ParseResourceID(r.ID)
	o := Orphan{
		ID: id, LastVersion: r.LastVersion, GoneAt: utc(r.GoneAt), LastDeployed: r.LastDeployed,
		LastRun: intent.HandlerResult(r.LastRun), LastRunAt: utc(r.LastRunAt), LastSuccess: utc(r.LastSuccess),
	}
	if r.GoneVersion != nil {
		o.Gone = *r.GoneVersion
	}
	return o, err
}

// Orphans lists the resources of an environment that are not managed any more.
func (s *Store) Orphans(
	ctx context.Context, env intent.EnvironmentID, q intent.ListQuery,
) (intent.Page[Orphan], error) {
	return page(ctx, s, "store.Orphans", OrphanList, q, orphanRow.value, env)
}
