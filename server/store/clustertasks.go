package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type clusterTaskRow struct {
	ID        uuid.UUID
	Job       uuid.UUID
	Number    int
	Cluster   uuid.UUID
	Project   uuid.UUID
	Node      int
	Service   string
	Action    string
	Provider  string
	Needs     []int32
	After     []string
	State     string
	Attempts  int
	Config    string
	Replace   bool
	NotBefore *time.Time
	Fence     int64
	LeaseTo   *time.Time
	TakenBy   string
	Started   *time.Time
	Ended     *time.Time
	Output    string
	Problem   string
}

func (r clusterTaskRow) value() (intent.ClusterTask, error) {
	return intent.ClusterTask{
		ID: r.ID, Job: r.Job, Number: r.Number, Cluster: r.Cluster, Project: r.Project, Node: r.Node,
		Service: r.Service,
		Action:  r.Action, Provider: r.Provider, Needs: r.Needs, After: r.After,
		State:    intent.ClusterTaskState(r.State),
		Attempts: r.Attempts, Config: r.Config, Replace: r.Replace, NotBefore: utc(r.NotBefore), Fence: r.Fence,
		LeaseTo: utc(r.LeaseTo), TakenBy: r.TakenBy, Started: utc(r.Started), Ended: utc(r.Ended), Output: r.Output,
		Problem: r.Problem,
	}, nil
}

// ClusterTasks lists the tasks of a job, without their output.
func (s *Store) ClusterTasks(ctx context.Context, job uuid.UUID) ([]intent.ClusterTask, error) {
	return listed(ctx, s, "store.ClusterTasks", clusterTaskRow.value, statements.ClusterTaskRows, job, nil, false)
}

// ClusterTask returns a task of a job with its output.
func (s *Store) ClusterTask(ctx context.Context, job uuid.UUID, number int) (out intent.ClusterTask, err error) {
	err = s.read(ctx, "store.ClusterTask", func(q querier) error {
		row, err := one[clusterTaskRow](ctx, q, statements.ClusterTaskRows, job, number, true)
		if err == nil {
			out, err = row.value()
		}
		return err
	})
	return out, err
}

// ClusterTasksByID returns tasks without their output, those that exist.
func (s *Store) ClusterTasksByID(ctx context.Context, ids ...uuid.UUID) ([]intent.ClusterTask, error) {
	return listed(ctx, s, "store.ClusterTask", clusterTaskRow.value, statements.ClusterTaskOf, ids)
}

// TakeClusterTasks gives ready tasks of a project to a provisioner, with leases: at most room of them, at most one
// for a machine, and no more that make or delete machines at a provider than perProvider. From then on there may be a
// machine for each task that makes one.
func (s *Store) TakeClusterTasks(
	ctx context.Context, project uuid.UUID, by string, room int, lease time.Duration, perProvider int,
) (out []intent.ClusterTask, err error) {
	const op = "store.TakeClusterTasks"
	for range attempts {
		err = s.write(ctx, op, func(tx pgx.Tx) error {
			if out, err = collect(ctx, tx, clusterTaskRow.value, statements.ClusterTaskTake, project, room, by,
				lease.Seconds(), perProvider); err != nil {
				return err
			}
			var clusters []uuid.UUID
			var nodes []int32
			for _, t := range out {
				if t.Action == "create" {
					clusters, nodes = append(clusters, t.Cluster), append(nodes, int32(t.Node))
				}
			}
			if len(clusters) == 0 {
				return nil
			}
			_, err := tx.Exec(ctx, statements.ClusterNodeBegun, clusters, nodes)
			return err
		})
		if !fault.Is(err, fault.Conflict) { // somebody took a task of the same machine in the same moment
			break
		}
	}
	return out, err
}

// GiveClusterTasksBack makes tasks ready again that were taken and handed to nobody.
func (s *Store) GiveClusterTasksBack(ctx context.Context, tasks []intent.ClusterTask) error {
	ids, fences := make([]uuid.UUID, len(tasks)), make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i], fences[i] = t.ID, t.Fence
	}
	return s.exec(ctx, "store.GiveClusterTasksBack", statements.ClusterTaskGiveBack, ids, fences)
}

// ClusterFacts are facts of a node.
type ClusterFacts struct {
	Cluster uuid.UUID
	Node    int
	Facts   json.RawMessage
}

// AddClusterNodeFacts adds facts to those of nodes, each of them named once.
func (s *Store) AddClusterNodeFacts(ctx context.Context, all []ClusterFacts) error {
	clusters, nodes, facts := make([]uuid.UUID, len(all)), make([]int32, len(all)), make([]string, len(all))
	for i, f := range all {
		clusters[i], nodes[i], facts[i] = f.Cluster, int32(f.Node), string(f.Facts)
	}
	return s.exec(ctx, "store.AddClusterNodeFacts", statements.ClusterNodeFacts, clusters, nodes, facts)
}

// ClusterLease is a task and the number of its lease.
type ClusterLease struct {
	ID    uuid.UUID
	Fence int64
}

// RenewClusterTasks renews leases of a project's provisioner, and returns the tasks that are still its own.
func (s *Store) RenewClusterTasks(
	ctx context.Context, project uuid.UUID, by string, leases []ClusterLease, lease time.Duration,
) (still []uuid.UUID, err error) {
	ids, fences := make([]uuid.UUID, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		ids[i], fences[i] = l.ID, l.Fence
	}
	err = s.state(ctx, "store.RenewClusterTasks", func(q querier) error {
		rows, err := q.Query(ctx, statements.ClusterTaskRenew, ids, fences, by, lease.Seconds(), project)
		if err != nil {
			return err
		}
		still, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return still, err
}

// ClusterOutput is what a task printed so far: the last of it.
type ClusterOutput struct {
	ClusterLease
	Text string
}

// SetClusterOutput records what tasks printed so far.
func (s *Store) SetClusterOutput(ctx context.Context, all []ClusterOutput) error {
	ids, fences, texts := make([]uuid.UUID, len(all)), make([]int64, len(all)), make([]string, len(all))
	for i, o := range all {
		ids[i], fences[i], texts[i] = o.ID, o.Fence, cleanText(o.Text)
	}
	return s.state(ctx, "store.SetClusterOutput", func(q querier) error {
		_, err := q.Exec(ctx, statements.ClusterTaskOutput, ids, fences, texts)
		return err
	})
}

// EndClusterTasks records how attempts ended, and makes ready what waited for the tasks that are complete; when a task
// failed for good, the tasks of its job that wait are dropped. It returns the tasks whose end was recorded; the
// leases of the others went elsewhere.
func (s *Store) EndClusterTasks(ctx context.Context, ends []intent.ClusterTaskEnd) (recorded []uuid.UUID, err error) {
	err = s.write(ctx, "store.EndClusterTasks", func(tx pgx.Tx) error {
		done, err := endTasks(ctx, tx, ends)
		recorded = recorded[:0]
		for _, d := range done {
			recorded = append(recorded, d.ID)
		}
		return err
	})
	return recorded, err
}

// endedTask is a task whose end was recorded.
type endedTask struct {
	ID      uuid.UUID
	Job     uuid.UUID
	Number  int32
	Cluster uuid.UUID
	Node    int32
	Service string
	Action  string
	Config  string
	State   string
}

// endTasks takes two round trips, since the jobs are locked from the first one to the end of the transaction.
func endTasks(ctx context.Context, tx pgx.Tx, ends []intent.ClusterTaskEnd) ([]endedTask, error) {
	done, err := endRows(ctx, tx, ends)
	if err != nil || len(done) == 0 {
		return done, err
	}
	byID := make(map[uuid.UUID]intent.ClusterTaskEnd, len(ends))
	for _, e := range ends {
		byID[e.ID] = e
	}
	if err := makeAgain(ctx, tx, done, byID); err != nil {
		return nil, err
	}
	var b pgx.Batch
	endNodes(&b, done, byID)
	unlock(&b, done)
	if b.Len() == 0 {
		return done, nil
	}
	return done, tx.SendBatch(ctx, &b).Close()
}

// makeAgain makes the machines again that could not be confirmed.
func makeAgain(ctx context.Context, tx pgx.Tx, done []endedTask, ends map[uuid.UUID]intent.ClusterTaskEnd) error {
	var jobs []uuid.UUID
	var nodes []int32
	for _, d := range done {
		if ends[d.ID].Again && d.State == string(intent.TaskReady) {
			jobs, nodes = append(jobs, d.Job), append(nodes, d.Node)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	type row struct {
		Job    uuid.UUID
		Action string
	}
	again, err := many[row](ctx, tx, statements.ClusterTaskAgain, jobs, nodes)
	if err != nil {
		return err
	}
	var created []uuid.UUID
	for _, r := range again {
		if r.Action == "create" {
			created = append(created, r.Job)
		}
	}
	_, err = tx.Exec(ctx, statements.ClusterTaskGroupAgain, created)
	return err
}

// endRows locks the jobs of the tasks, and updates the tasks themselves.
func endRows(ctx context.Context, tx pgx.Tx, ends []intent.ClusterTaskEnd) (done []endedTask, err error) {
	n := len(ends)
	ids, fences, states, outputs := make([]uuid.UUID, n), make([]int64, n), make([]string, n), make([]string, n)
	problems, replace, waits := make([]string, n), make([]bool, n), make([]float64, n)
	for i, e := range ends {
		ids[i], fences[i], states[i], outputs[i] = e.ID, e.Fence, string(e.State), cleanText(e.Output)
		problems[i], replace[i], waits[i] = cleanText(e.Problem), e.Replace, e.Wait.Seconds()
	}
	var b pgx.Batch
	b.Queue(statements.ClusterTaskJobLock, ids)
	b.Queue(statements.ClusterTaskEnd, ids, fences, states, outputs, problems, replace, waits).
		Query(func(rows pgx.Rows) (err error) {
			done, err = pgx.CollectRows(rows, pgx.RowToStructByName[endedTask])
			return err
		})
	err = tx.SendBatch(ctx, &b).Close()
	return done, err
}

// endNodes updates the nodes of the tasks.
func endNodes(b *pgx.Batch, done []endedTask, ends map[uuid.UUID]intent.ClusterTaskEnd) {
	var c struct {
		clusters                          []uuid.UUID
		nodes                             []int32
		actions, services, phases, config []string
		facts, automators                 []*string
		sealed                            [][]byte
	}
	var learned struct {
		clusters []uuid.UUID
		nodes    []int32
		facts    []string
	}
	var returned struct {
		clusters []uuid.UUID
		nodes    []int32
	}
	for _, d := range done {
		e := ends[d.ID]
		if d.State != string(intent.TaskComplete) {
			if e.Facts != nil {
				learned.clusters, learned.nodes = append(learned.clusters, d.Cluster), append(learned.nodes, d.Node)
				learned.facts = append(learned.facts, string(e.Facts))
			}
			continue
		}
		if d.Action == "delete" {
			returned.clusters, returned.nodes = append(returned.clusters, d.Cluster), append(returned.nodes, d.Node)
		}
		c.clusters, c.nodes = append(c.clusters, d.Cluster), append(c.nodes, d.Node)
		c.actions, c.services = append(c.actions, d.Action), append(c.services, d.Service)
		c.phases, c.config = append(c.phases, e.Phase), append(c.config, d.Config)
		c.facts, c.sealed = append(c.facts, textOrNil(e.Facts)), append(c.sealed, e.Sealed)
		c.automators = append(c.automators, textOrNil(json.RawMessage(toJSON(notNil(e.Automators)))))
	}
	if len(c.clusters) > 0 {
		b.Queue(
			statements.ClusterNodeEnd,
			c.clusters,
			c.nodes,
			c.actions,
			c.services,
			c.phases,
			c.config,
			c.facts,
			c.sealed,
			c.automators,
		)
	}
	if len(learned.clusters) > 0 {
		b.Queue(statements.ClusterNodeFacts, learned.clusters, learned.nodes, learned.facts)
	}
	if len(returned.clusters) > 0 {
		b.Queue(statements.PoolReturn, returned.clusters, returned.nodes)
	}
}

func textOrNil(r json.RawMessage) *string {
	if r == nil {
		return nil
	}
	text := string(r)
	return &text
}

// unlock makes ready what waited for tasks that are complete, and drops what waits in jobs with a task that failed.
func unlock(b *pgx.Batch, done []endedTask) {
	var jobs, failed []uuid.UUID
	var nodes, numbers []int32
	var groups []string
	for _, d := range done {
		switch intent.ClusterTaskState(d.State) {
		case intent.TaskComplete:
			jobs, nodes, numbers = append(jobs, d.Job), append(nodes, d.Node), append(numbers, d.Number)
			groups = append(groups, taskGroup(d.Action, d.Service))
		case intent.TaskFailed:
			if !slices.Contains(failed, d.Job) {
				failed = append(failed, d.Job)
			}
		}
	}
	if len(jobs) > 0 {
		b.Queue(statements.ClusterTaskUnlock, jobs, nodes, numbers)
		b.Queue(statements.ClusterTaskGroupDone, jobs, groups)
	}
	if len(failed) > 0 {
		b.Queue(statements.ClusterJobDrop, failed)
	}
}

// LateClusterTasks lists tasks whose lease is over.
func (s *Store) LateClusterTasks(ctx context.Context) ([]intent.ClusterTask, error) {
	return listed(ctx, s, "store.LateClusterTasks", clusterTaskRow.value, statements.ClusterTaskLate)
}

// ClusterWork is how much a project has to do.
type ClusterWork struct {
	Project uuid.UUID
	Workers int // tasks at a time in the server
	Ready   int
}

// ClusterWork lists the projects with tasks that are ready or run.
func (s *Store) ClusterWork(ctx context.Context) (out []ClusterWork, err error) {
	err = s.read(ctx, "store.ClusterWork", func(q querier) error {
		out, err = many[ClusterWork](ctx, q, statements.ClusterProjectsReady)
		return err
	})
	return out, err
}

// ClusterQueue is how many tasks of a project are in a state.
type ClusterQueue struct {
	Project uuid.UUID
	State   string
	Tasks   int
	Oldest  *time.Time // that waits for another attempt
}

// ClusterQueues lists how many tasks wait and run; project nil: of all projects.
func (s *Store) ClusterQueues(ctx context.Context, project *uuid.UUID) (out []ClusterQueue, err error) {
	err = s.read(ctx, "store.ClusterQueues", func(q querier) error {
		out, err = many[ClusterQueue](ctx, q, statements.ClusterQueues, project)
		return err
	})
	return out, err
}
