package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/plan"
	"ordain.dev/ordain/server/cluster/task"
)

// How often tasks are tried. A machine that cannot be confirmed after an even number of attempts is made again.
const (
	maxAttempts = 4
	maxConfirms = 6
	maxLate     = 6
	maxBackoff  = 2 * time.Minute
)

// Finish records results, and returns those that were dropped since their lease went elsewhere.
func (d *Desk) Finish(ctx context.Context, who Who, results []task.Result) (dropped []uuid.UUID, err error) {
	if len(results) > task.MaxFinish {
		return nil, fault.New("desk.Finish", fault.Invalid, fmt.Sprintf("%d results at once, and %d are allowed",
			len(results), task.MaxFinish))
	}
	ids := make([]uuid.UUID, len(results))
	for i, r := range results {
		ids[i] = r.ID
	}
	known, err := d.c.Store.ClusterTasksByID(ctx, ids...)
	if err != nil {
		return nil, err
	}
	byID := make(map[uuid.UUID]intent.ClusterTask, len(known))
	for _, row := range known {
		byID[row.ID] = row
	}
	var rows []intent.ClusterTask
	var ours []task.Result
	for _, r := range results {
		row, ok := byID[r.ID]
		delete(byID, r.ID) // a second result for the same task is dropped
		if !ok || row.Project != who.Project || row.TakenBy != who.Name || row.Fence != r.Fence ||
			row.State != intent.TaskRunning {
			dropped = append(dropped, r.ID)
			continue
		}
		rows, ours = append(rows, row), append(ours, r)
	}
	if len(ours) == 0 {
		return dropped, nil
	}
	return dropped, d.record(ctx, rows, ours)
}

// record records how attempts ended.
func (d *Desk) record(ctx context.Context, rows []intent.ClusterTask, results []task.Result) error {
	byID := make(map[uuid.UUID]intent.ClusterTask, len(rows))
	for _, r := range rows {
		byID[r.ID] = r
	}
	ends := make([]intent.ClusterTaskEnd, 0, len(results))
	ids := make([]uuid.UUID, 0, len(results))
	for _, r := range results {
		end, err := d.judge(ctx, byID[r.ID], r)
		if err != nil {
			return err
		}
		ends, ids = append(ends, end), append(ids, r.ID)
	}
	if err := d.ends.add(ctx, rows[0].Project, ends); err != nil { // those of one report are all of one project
		return err
	}
	d.output.forget(ids)
	d.announce(ctx, rows)
	return nil
}

// judge says what follows from a result.
func (d *Desk) judge(ctx context.Context, row intent.ClusterTask, r task.Result) (intent.ClusterTaskEnd, error) {
	end := intent.ClusterTaskEnd{
		ID: row.ID, Fence: row.Fence, Output: tail(r.Output), Problem: cut(r.Problem, task.MaxProblem),
	}
	var err error
	if end.Facts, end.Sealed, err = d.facts(ctx, row, r); err != nil {
		r.Status, end.Problem = task.Refused, err.Error()
	}
	action := task.Action(row.Action)
	switch {
	case r.Status == task.Done:
		end.State = intent.TaskComplete
		if row.Service != "" {
			end.Phase = string(plan.After(action))
		}
		if action == task.Bootstrap {
			if end.Automators, err = d.automators(ctx, row); err != nil {
				return end, err
			}
		}
	case r.Status == task.Refused:
		end.State = intent.TaskFailed
	case action == task.Confirm && row.Attempts < maxConfirms:
		end.State, end.Wait = intent.TaskReady, d.backoff(row.Attempts)
		end.Again = row.Attempts%2 == 0
	case action != task.Confirm && row.Attempts < maxAttempts:
		end.State, end.Wait, end.Replace = intent.TaskReady, d.backoff(row.Attempts), row.Replace
	default:
		end.State = intent.TaskFailed
	}
	if end.State == intent.TaskFailed && end.Problem == "" {
		end.Problem = "the plug-in failed and did not say why"
	}
	if end.State == intent.TaskFailed {
		end.Problem = fmt.Sprintf("%s on node %d: %s", plan.GroupOf(action, row.Service), row.Node, end.Problem)
	}
	return end, nil
}

func cut(text string, most int) string {
	if len(text) > most {
		return text[:most] + " …"
	}
	return text
}

// backoff is the wait before the next attempt, with some chance in it so that many do not come at once.
func (d *Desk) backoff(attempts int) time.Duration {
	wait := min(d.c.Backoff<<min(attempts-1, 10), maxBackoff)
	return wait/2 + rand.N(wait/2+1)
}

// facts returns what is to be remembered of a node.
func (d *Desk) facts(
	ctx context.Context, row intent.ClusterTask, r task.Result,
) (facts json.RawMessage, sealed []byte, err error) {
	learned := task.Fields{}
	maps.Copy(learned, r.Facts)
	delete(learned, "addresses")
	if len(r.Addresses) > 0 {
		if learned["addresses"], err = json.Marshal(r.Addresses); err != nil {
			return nil, nil, err
		}
	}
	if r.Hostname != "" {
		if learned["hostname"], err = json.Marshal(r.Hostname); err != nil {
			return nil, nil, err
		}
	}
	if len(learned) > 0 {
		if facts, err = json.Marshal(learned); err != nil {
			return nil, nil, fmt.Errorf("the facts that the plug-in returned are no JSON: %w", err)
		}
	}
	if len(facts) > task.MaxFacts {
		return nil, nil, fmt.Errorf(
			"the plug-in returned %d bytes of facts, and may return %d",
			len(facts),
			task.MaxFacts,
		)
	}
	if len(r.Secret) == 0 {
		return facts, nil, nil
	}
	sealed, err = d.sealFacts(ctx, row, r.Secret)
	return facts, sealed, err
}

// sealFacts adds secrets to those that are kept for a node.
func (d *Desk) sealFacts(ctx context.Context, row intent.ClusterTask, more task.Fields) ([]byte, error) {
	nodes, err := d.c.Store.ClusterNodes(ctx, false, row.Cluster)
	if err != nil {
		return nil, err
	}
	all := task.Fields{}
	for _, n := range nodes {
		if n.Number != row.Node || n.Sealed == nil {
			continue
		}
		plain, err := d.c.Key.Open(n.Sealed, sealedFor(row.Cluster, row.Node))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(plain, &all); err != nil {
			return nil, err
		}
	}
	maps.Copy(all, more)
	plain, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if len(plain) > task.MaxFacts {
		return nil, fmt.Errorf(
			"the plug-in returned %d bytes of secret facts, and may return %d",
			len(plain),
			task.MaxFacts,
		)
	}
	return d.c.Key.Seal(plain, sealedFor(row.Cluster, row.Node))
}

// automators are the types that a node was bootstrapped for.
func (d *Desk) automators(ctx context.Context, row intent.ClusterTask) ([]string, error) {
	j, err := d.cache.of(ctx, d.c.Store, row.Job)
	if err != nil {
		return nil, err
	}
	def, n := j.definition(row.Node)
	if def == nil || n == nil {
		return nil, nil
	}
	return plan.Automators(n.Services, def.Catalogue.Services), nil
}

// takeBack ends attempts whose lease is over: their provisioner is gone, or cannot reach a desk.
func (d *Desk) takeBack(ctx context.Context) error {
	late, err := d.c.Store.LateClusterTasks(ctx)
	if err != nil || len(late) == 0 {
		return err
	}
	ends := make([]intent.ClusterTaskEnd, 0, len(late))
	ids := make([]uuid.UUID, 0, len(late))
	for _, row := range late {
		j, err := d.c.Store.ClusterJobByID(ctx, row.Job)
		if err != nil {
			return err
		}
		end := intent.ClusterTaskEnd{
			ID: row.ID, Fence: row.Fence, State: intent.TaskReady, Output: row.Output, Replace: row.Replace,
			Problem: fmt.Sprintf("the provisioner %s was not heard of for %s", row.TakenBy, d.c.Lease),
		}
		switch {
		case j.State != intent.JobRunning:
			end.State = intent.TaskDropped
		case row.Attempts >= maxLate:
			end.State = intent.TaskFailed
		}
		ends, ids = append(ends, end), append(ids, row.ID)
	}
	if _, err := d.c.Store.EndClusterTasks(ctx, ends); err != nil {
		return err
	}
	d.c.Logger.Warn("tasks of provisioners that are gone are tried again", "tasks", len(ends))
	d.output.forget(ids)
	d.announce(ctx, late)
	return nil
}
