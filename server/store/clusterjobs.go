package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

type clusterJobRow struct {
	ID      uuid.UUID
	Cluster uuid.UUID
	Number  int
	Action  string
	State   string
	Goal    *json.RawMessage
	Prior   *json.RawMessage
	At      string
	MadeBy  string
	Made    time.Time
	Ended   *time.Time
	Total   int
	Problem string
	Done    int
	Failed  int
}

func (r clusterJobRow) value() (intent.ClusterJob, error) {
	return intent.ClusterJob{
		ID: r.ID, Cluster: r.Cluster, Number: r.Number, Action: r.Action, State: intent.ClusterJobState(r.State),
		Goal: rawOrNil(r.Goal), Prior: rawOrNil(r.Prior), At: r.At, MadeBy: r.MadeBy, Made: r.Made.UTC(),
		Ended: utc(r.Ended), Total: r.Total, Done: r.Done, Failed: r.Failed, Problem: r.Problem,
	}, nil
}

// ClusterJobs lists the jobs of a cluster, the newest first, at most limit.
func (s *Store) ClusterJobs(ctx context.Context, cluster uuid.UUID, limit int) ([]intent.ClusterJob, error) {
	return listed(
		ctx,
		s,
		"store.ClusterJobs",
		clusterJobRow.value,
		statements.ClusterJobRows,
		cluster,
		nil,
		nil,
		limit,
	)
}

// LastClusterJob returns the newest job of a cluster, without counts of its tasks, and whether tasks of it are not at
// their end; nil: it never had one.
func (s *Store) LastClusterJob(ctx context.Context, cluster uuid.UUID) (job *intent.ClusterJob, open bool, err error) {
	type row struct {
		clusterJobRow
		Open bool
	}
	err = s.read(ctx, "store.LastClusterJob", func(q querier) error {
		rows, err := many[row](ctx, q, statements.ClusterJobLast, cluster)
		if err != nil || len(rows) == 0 {
			return err
		}
		j, err := rows[0].value()
		job, open = &j, rows[0].Open
		return err
	})
	return job, open, err
}

// ClusterJob returns a job by its number. NotFound: the cluster has no such job.
func (s *Store) ClusterJob(ctx context.Context, cluster uuid.UUID, number int) (out intent.ClusterJob, err error) {
	err = s.read(ctx, "store.ClusterJob", func(q querier) error {
		row, err := one[clusterJobRow](ctx, q, statements.ClusterJobRows, cluster, nil, number, 1)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// ClusterJobByID returns a job, without counts of its tasks.
func (s *Store) ClusterJobByID(ctx context.Context, id uuid.UUID) (out intent.ClusterJob, err error) {
	err = s.read(ctx, "store.ClusterJob", func(q querier) error {
		row, err := one[clusterJobRow](ctx, q, statements.ClusterJobGet, id)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// StartClusterJob records a job with its tasks, and the nodes it makes, as the owner of the environment. wanted are the
// numbers of all nodes of its goal. Conflict: a job of the cluster runs.
func (s *Store) StartClusterJob(
	ctx context.Context, env intent.EnvironmentID, j intent.ClusterJob, nodes []intent.ClusterNode,
	tasks []intent.ClusterTask,
) (number int, err error) {
	err = s.writeOwned(ctx, env, "store.StartClusterJob", nil, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, statements.ClusterJobAdd, j.ID, j.Cluster, j.Action, jsonOrNull(j.Goal),
			jsonOrNull(j.Prior), j.At, cleanText(j.MadeBy), len(tasks)).Scan(&number); err != nil {
			return err
		}
		if err := planNodes(ctx, tx, j.Cluster, nodes); err != nil {
			return err
		}
		return addTasks(ctx, tx, j, tasks)
	})
	return number, err
}

func planNodes(ctx context.Context, tx pgx.Tx, cluster uuid.UUID, nodes []intent.ClusterNode) error {
	var b pgx.Batch
	numbers := make([]int32, 0, len(nodes))
	for _, n := range nodes {
		numbers = append(numbers, int32(n.Number))
		b.Queue(statements.ClusterNodePlan, cluster, n.Number, n.Hostname, n.Hardware, n.Image, n.Provider)
	}
	b.Queue(statements.ClusterNodeForget, cluster, numbers)
	return tx.SendBatch(ctx, &b).Close()
}

// addTasks writes the tasks of a job and their groups.
func addTasks(ctx context.Context, tx pgx.Tx, j intent.ClusterJob, tasks []intent.ClusterTask) error {
	groups := map[string]int{}
	for _, t := range tasks {
		groups[taskGroup(t.Action, t.Service)]++
	}
	rows := make([][]any, 0, len(tasks))
	for _, t := range tasks {
		open := len(t.Needs) + len(t.After)
		state := intent.TaskWaiting
		if open == 0 {
			state = intent.TaskReady
		}
		needs, after := t.Needs, notNil(t.After)
		if needs == nil {
			needs = []int32{}
		}
		rows = append(rows, []any{
			t.ID, j.ID, t.Number, j.Cluster, t.Project, t.Node, t.Service, t.Action, t.Provider, needs, after, open,
			string(state), t.Config,
		})
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"cluster_task"}, []string{
		"id", "job", "number", "cluster", "project", "node", "service", "action", "provider", "needs", "after",
		"open_needs",
		"state", "config",
	}, pgx.CopyFromRows(rows)); err != nil {
		return err
	}
	var b pgx.Batch
	for name, open := range groups {
		b.Queue(statements.ClusterTaskGroupAdd, j.ID, name, open)
	}
	return tx.SendBatch(ctx, &b).Close()
}

// taskGroup is the group that a task is in: plan.GroupOf.
func taskGroup(action, service string) string {
	if service == "" {
		return action
	}
	return action + " " + service
}

// ClusterJobOpen is how far the tasks of a job are.
type ClusterJobOpen struct {
	Waiting, Running, Failed, Dropped int
	Problem                           string // of the first task that failed
}

// ClusterJobOpen returns how far the tasks of a job are.
func (s *Store) ClusterJobOpen(ctx context.Context, job uuid.UUID) (out ClusterJobOpen, err error) {
	err = s.read(ctx, "store.ClusterJobOpen", func(q querier) error {
		out, err = one[ClusterJobOpen](ctx, q, statements.ClusterJobOpen, job)
		return err
	})
	return out, err
}

// EndClusterJob records how a job ended, and how its cluster is then, as the owner of the environment. Tasks that wait
// are dropped; those that run lose their leases.
func (s *Store) EndClusterJob(ctx context.Context, j intent.ClusterJob, c intent.Cluster, reached bool) error {
	return s.writeOwned(ctx, c.Environment, "store.EndClusterJob", nil, func(tx pgx.Tx) error {
		return endJob(ctx, tx, j, c, reached)
	})
}

func endJob(ctx context.Context, tx pgx.Tx, j intent.ClusterJob, c intent.Cluster, reached bool) error {
	if _, err := tx.Exec(ctx, statements.ClusterJobLock, []uuid.UUID{j.ID}); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, statements.ClusterJobDrop, []uuid.UUID{j.ID}); err != nil {
		return err
	}
	if err := affected(tx.Exec(ctx, statements.ClusterJobEnd, j.ID, string(j.State),
		cleanText(j.Problem))); err != nil {
		return err
	}
	return settle(ctx, tx, c, reached)
}

// AbortClusterJob ends a job as EndClusterJob does, for anybody: it takes away work, and gives none.
func (s *Store) AbortClusterJob(ctx context.Context, j intent.ClusterJob, c intent.Cluster) error {
	return s.write(ctx, "store.ClusterJob", func(tx pgx.Tx) error { return endJob(ctx, tx, j, c, false) })
}
