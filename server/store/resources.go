package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"ordain.dev/ordain/internal/intent"
)

type stateRow struct {
	ID           string
	Compliance   string
	LastRun      string
	Blocked      string
	IsDeploying  bool
	LastRunAt    *time.Time
	LastSuccess  *time.Time
	LastDeployed int
	DeployedHash string
	IntentHash   string
	LastEvents   *time.Time
	Attempts     int
	Orphaned     int
	Parked       string
	ParkedAt     *time.Time
	RetryAt      *time.Time
	FailedCode   string
	Heals        json.RawMessage
	Drifted      bool
}

func (r stateRow) value() (intent.ResourceState, error) {
	id, err := intent.ParseResourceID(r.ID)
	var heals []intent.Heal
	if len(r.Heals) > len("[]") {
		var healErr error
		heals, healErr = fromJSON[[]intent.Heal](r.Heals)
		err = errors.Join(err, healErr)
	}
	return intent.ResourceState{
		ID: id, Compliance: intent.Compliance(r.Compliance), LastRun: intent.HandlerResult(r.LastRun),
		Blocked:     intent.Blocked(r.Blocked),
		IsDeploying: r.IsDeploying, LastRunAt: utc(r.LastRunAt), LastSuccess: utc(r.LastSuccess),
		LastDeployed: r.LastDeployed,
		DeployedHash: r.DeployedHash, IntentHash: r.IntentHash, LastEvents: utc(r.LastEvents), Attempts: r.Attempts,
		Orphaned: r.Orphaned,
		Parked:   intent.Parking(r.Parked), ParkedAt: utc(r.ParkedAt), RetryAt: utc(r.RetryAt),
		FailedCode: r.FailedCode, Heals: heals, Drifted: r.Drifted,
	}, err
}

// States returns the state of every resource that the environment knows, orphans included, in no particular order.
func (s *Store) States(ctx context.Context, env intent.EnvironmentID) (out []intent.ResourceState, err error) {
	err = s.read(ctx, "store.States", func(q querier) error {
		out, err = collect(ctx, q, stateRow.value, statements.StateList, env)
		return err
	})
	return out, err
}

type countRow struct {
	Status string
	Count  int
}

// ResourceCounts counts resources by state, without orphans.
func (s *Store) ResourceCounts(ctx context.Context, env intent.EnvironmentID) (out map[intent.Status]int, err error) {
	err = s.read(ctx, "store.ResourceCounts", func(q querier) error {
		rows, err := many[countRow](ctx, q, statements.StateCounts, env)
		out = make(map[intent.Status]int, len(rows))
		for _, r := range rows {
			out[intent.Status(r.Status)] = r.Count
		}
		return err
	})
	return out, err
}

type listedRow struct {
	stateRow
	Type     string
	Agent    string
	Value    string
	Status   string
	Version  int
	Requires []string
	Purged   bool // for filters alone
}

func (r listedRow) value() (intent.ResourceRow, error) {
	state, err1 := r.stateRow.value()
	requires, err2 := parseIDs(r.Requires)
	return intent.ResourceRow{State: state, Version: r.Version, Requires: requires}, errors.Join(err1, err2)
}

// Resources lists the resources of the active version with their states. Orphans are among them when the filter on
// the status mentions them.
func (s *Store) Resources(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.ResourceRow], error) {
	if len(q.Filters) == 0 && q.Total == 0 && q.After == nil && q.Before == nil {
		// Exactly the resources of the active version have a state and are no orphans, so nobody has to count them.
		err := s.read(ctx, "store.Resources", func(db querier) error {
			return db.QueryRow(ctx, statements.VersionActiveTotal, env).Scan(&q.Total)
		})
		if err != nil {
			return intent.Page[intent.ResourceRow]{}, err
		}
	}
	return pageWhere(ctx, s, "store.Resources", ResourceList, q, withoutOrphans(q), listedRow.value, env)
}

type detailRow struct {
	stateRow
	Version        int
	FirstSeen      time.Time
	Attributes     json.RawMessage
	AttributeHash  string
	Requires       []string
	ResourceSet    string
	Undefined      []string
	SendEvent      bool
	ReceiveEvents  bool
	Purged         bool
	RequiresKnown  []string // those of Requires that have a state
	RequiresStatus []string // in the same order
	Provides       []string
	ProvidesStatus []string // in the same order
}

func (r detailRow) value() (intent.ResourceDetail, error) {
	state, err1 := r.stateRow.value()
	resource, err2 := resourceRow{
		ID: r.ID, Attributes: r.Attributes, AttributeHash: r.AttributeHash, Requires: r.Requires,
		ResourceSet: r.ResourceSet,
		Undefined:   r.Undefined, SendEvent: r.SendEvent, ReceiveEvents: r.ReceiveEvents, Purged: r.Purged,
	}.value(r.Version)
	known, err3 := parseIDs(r.RequiresKnown)
	provides, err4 := parseIDs(r.Provides)
	d := intent.ResourceDetail{
		Resource: resource, State: state, FirstGenerated: r.FirstSeen.UTC(),
		RequiresStatus: make(map[intent.ResourceID]intent.Status, len(known)), Provides: provides,
		ProvidesStatus: make(map[intent.ResourceID]intent.Status, len(provides)),
	}
	for i, id := range known {
		d.RequiresStatus[id] = intent.Status(r.RequiresStatus[i])
	}
	for i, id := range provides {
		d.ProvidesStatus[id] = intent.Status(r.ProvidesStatus[i])
	}
	return d, errors.Join(err1, err2, err3, err4)
}

// Resource returns all that is known about one resource.
func (s *Store) Resource(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
) (out intent.ResourceDetail, err error) {
	err = s.read(ctx, "store.Resource", func(q querier) error {
		row, err := one[detailRow](ctx, q, statements.ResourceDetail, env, id.String())
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

type historyRow struct {
	Date          time.Time
	Version       int
	Attributes    json.RawMessage
	AttributeHash string
	Requires      []string
}

func (r historyRow) value() (intent.ResourceHistory, error) {
	requires, err := parseIDs(r.Requires)
	return intent.ResourceHistory{
		Date: r.Date.UTC(), Version: r.Version, Attributes: r.Attributes, AttributeHash: r.AttributeHash,
		Requires: requires,
	}, err
}

// ResourceHistory lists how the intent of a resource changed over the released versions.
func (s *Store) ResourceHistory(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
	q intent.ListQuery,
) (intent.Page[intent.ResourceHistory], error) {
	return page(ctx, s, "store.ResourceHistory", ResourceHistoryList, q, historyRow.value, env, id.String())
}
