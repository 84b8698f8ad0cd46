package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/jsontext"
)

type actionRow struct {
	ID          uuid.UUID
	Environment uuid.UUID
	Kind        string
	Resource    string
	Version     int
	Started     time.Time
	Finished    *time.Time
	Status      string
	Change      string
	Changes     json.RawMessage
	Messages    json.RawMessage
}

// messageJSON is one element of the messages column. The statement of the list of log lines reads these names.
type messageJSON struct {
	Level     string          `json:"level"`
	Message   string          `json:"message"`
	Moment    time.Time       `json:"moment"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func (r actionRow) value() (intent.Action, error) {
	resource, err1 := intent.ParseResourceID(r.Resource)
	changes, err2 := fromJSON[map[string]intent.AttributeChange](r.Changes)
	messages, err3 := fromJSON[[]messageJSON](r.Messages)
	a := intent.Action{
		ID: r.ID, Environment: r.Environment, Kind: intent.ActionKind(r.Kind), Resource: resource, Version: r.Version,
		Started: r.Started.UTC(), Finished: utc(r.Finished), Status: intent.Status(r.Status),
		Change: intent.Change(r.Change), Changes: changes,
	}
	for _, m := range messages {
		a.Messages = append(a.Messages,
			intent.LogLine{Level: m.Level, Message: m.Message, Time: m.Moment, Arguments: m.Arguments})
	}
	return a, errors.Join(err1, err2, err3)
}

// messagesJSON returns the messages column: a list of messageJSON, appended piece by piece because every task has one.
func messagesJSON(lines []intent.LogLine) ([]byte, error) {
	size := 2
	for i := range lines {
		size += len(lines[i].Message) + len(lines[i].Arguments) + 96 // names, level and moment
	}
	out := append(make([]byte, 0, size), '[')
	for i, l := range lines {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsontext.AppendString(append(out, `{"level":`...), cleanText(l.Level))
		out = jsontext.AppendString(append(out, `,"message":`...), cleanText(l.Message))
		out = micro(l.Time).AppendFormat(append(out, `,"moment":"`...), time.RFC3339Nano)
		out = append(out, '"')
		if len(l.Arguments) > 0 {
			arguments, err := cleanJSON(l.Arguments)
			if err != nil {
				return nil, fault.Wrap("store.messages", fault.Invalid, err).
					Say("the arguments of a log line are not JSON")
			}
			out = append(append(out, `,"arguments":`...), arguments...)
		}
		out = append(out, '}')
	}
	return append(out, ']'), nil
}

func changesJSON(changes map[string]intent.AttributeChange) (string, error) {
	if changes == nil {
		return "{}", nil
	}
	b, err := json.Marshal(changes)
	if err != nil {
		return "", fault.Wrap("store.changes", fault.Invalid, err)
	}
	return string(b), nil
}

// actionColumns holds actions column by column, for unnest.
type actionColumns struct {
	ids       []uuid.UUID
	kinds     []string
	resources []string
	versions  []int
	started   []time.Time
	finished  []*time.Time
	statuses  []string
	kindsOf   []string
	changes   []string
	messages  [][]byte
}

func (c *actionColumns) add(a intent.Action) error {
	changes, err1 := changesJSON(a.Changes)
	messages, err2 := messagesJSON(a.Messages)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	change := a.Change
	if change == "" {
		change = intent.NoChange
	}
	c.ids = append(c.ids, a.ID)
	c.kinds = append(c.kinds, string(a.Kind))
	c.resources = append(c.resources, a.Resource.String())
	c.versions = append(c.versions, a.Version)
	c.started = append(c.started, a.Started)
	c.finished = append(c.finished, a.Finished)
	c.statuses = append(c.statuses, string(a.Status))
	c.kindsOf = append(c.kindsOf, string(change))
	c.changes = append(c.changes, changes)
	c.messages = append(c.messages, messages)
	return nil
}

func (c *actionColumns) args(env uuid.UUID) []any {
	return []any{
		env,
		c.ids,
		c.kinds,
		c.resources,
		c.versions,
		c.started,
		c.finished,
		c.statuses,
		c.kindsOf,
		c.changes,
		c.messages,
	}
}

// StartActions records that these actions begin, and marks the resources that they deploy as deploying. Starting an
// action again changes nothing.
func (s *Store) StartActions(ctx context.Context, env intent.EnvironmentID, actions []intent.Action) error {
	if len(actions) == 0 {
		return nil
	}
	var columns actionColumns
	var deploying []string
	for _, a := range actions {
		a.Finished, a.Status = nil, ""
		if a.Kind == intent.ActionDeploy {
			a.Status = intent.StatusDeploying
		}
		if err := columns.add(a); err != nil {
			return err
		}
		if a.Kind == intent.ActionDeploy {
			deploying = append(deploying, a.Resource.String())
		}
	}
	return s.writeOwned(ctx, env, "store.StartActions", func(b *pgx.Batch) {
		b.Queue(statements.ActionStart, columns.args(env)...)
		b.Queue(statements.StateDeploying, env, deploying)
	}, nil)
}

// SetAhead records the tasks that are about to run without a record of their own, replacing the list before. States
// reports as deploying those whose action has no entry in the log.
func (s *Store) SetAhead(ctx context.Context, env intent.EnvironmentID, tasks []intent.Ahead) error {
	resources, actions := make([]string, len(tasks)), make([]uuid.UUID, len(tasks))
	for i, t := range tasks {
		resources[i], actions[i] = t.Resource.String(), t.Action
	}
	return s.writeOwned(ctx, env, "store.SetAhead", func(b *pgx.Batch) {
		b.Queue(statements.AheadSet, env, resources, actions)
	}, nil)
}

// stateColumns holds states column by column, for unnest.
type stateColumns struct {
	ids          []string
	compliance   []string
	lastRun      []string
	blocked      []string
	isDeploying  []bool
	lastRunAt    []*time.Time
	lastSuccess  []*time.Time
	lastDeployed []int
	deployedHash []string
	intentHash   []string
	lastEvents   []*time.Time
	attempts     []int
	parked       []string
	parkedAt     []*time.Time
	retryAt      []*time.Time
	failedCode   []string
	heals        []string
	drifted      []bool
}

func (c *stateColumns) add(s intent.ResourceState) {
	c.ids = append(c.ids, s.ID.String())
	c.compliance = append(c.compliance, string(s.Compliance))
	c.lastRun = append(c.lastRun, string(s.LastRun))
	c.blocked = append(c.blocked, string(s.Blocked))
	c.isDeploying = append(c.isDeploying, s.IsDeploying)
	c.lastRunAt = append(c.lastRunAt, s.LastRunAt)
	c.lastSuccess = append(c.lastSuccess, s.LastSuccess)
	c.lastDeployed = append(c.lastDeployed, s.LastDeployed)
	c.deployedHash = append(c.deployedHash, s.DeployedHash)
	c.intentHash = append(c.intentHash, s.IntentHash)
	c.lastEvents = append(c.lastEvents, s.LastEvents)
	c.attempts = append(c.attempts, s.Attempts)
	c.parked = append(c.parked, string(s.Parked))
	c.parkedAt = append(c.parkedAt, s.ParkedAt)
	c.retryAt = append(c.retryAt, s.RetryAt)
	c.failedCode = append(c.failedCode, cleanText(s.FailedCode))
	heals := "[]"
	if len(s.Heals) > 0 {
		heals = toJSON(s.Heals)
	}
	c.heals = append(c.heals, heals)
	c.drifted = append(c.drifted, s.Drifted)
}

func (c *stateColumns) args(env uuid.UUID) []any {
	return []any{
		env,
		c.ids,
		c.compliance,
		c.lastRun,
		c.blocked,
		c.isDeploying,
		c.lastRunAt,
		c.lastSuccess,
		c.lastDeployed,
		c.deployedHash,
		c.intentHash,
		c.lastEvents,
		c.attempts,
		c.parked,
		c.parkedAt,
		c.retryAt,
		c.failedCode,
		c.heals,
		c.drifted,
	}
}

// FinishActions records outcomes and what follows from them: states, drift, breakers, facts and notices. When a newer
// intent was released in the meantime, a state keeps what follows from that intent and only learns how the run ended.
// Finishing an action again does not change the action.
func (s *Store) FinishActions(ctx context.Context, env intent.EnvironmentID, done []intent.FinishedAction) error {
	const op = "store.FinishActions"
	if len(done) == 0 {
		return nil
	}
	var columns actionColumns
	seen := make(map[intent.ActionID]bool, len(done))
	latest := make(map[intent.ResourceID]int, len(done)) // of several states of one resource the last one counts
	for i := range done {
		d := &done[i]
		if d.Action.Finished == nil {
			return fault.New(op, fault.Invalid, "the action on "+d.Action.Resource.String()+" has no end")
		}
		if !seen[d.Action.ID] {
			seen[d.Action.ID] = true
			if err := columns.add(d.Action); err != nil {
				return err
			}
		}
		if !d.State.ID.IsZero() {
			latest[d.State.ID] = i
		}
	}
	var states stateColumns
	var facts []intent.Parameter
	for i := range done {
		d := &done[i]
		if at, ok := latest[d.State.ID]; ok && at == i {
			states.add(d.State)
		}
		for _, f := range d.Facts {
			if f.Resource.IsZero() {
				f.Resource = d.Action.Resource
			}
			facts = append(facts, f)
		}
	}
	return s.writeOwned(ctx, env, op, func(b *pgx.Batch) {
		b.Queue(statements.ActionFinish, columns.args(env)...)
		if len(states.ids) > 0 {
			b.Queue(statements.StateFinish, states.args(env)...)
		}
	}, func(tx pgx.Tx) error {
		for _, d := range done {
			if err := recordAround(ctx, tx, env, d); err != nil {
				return err
			}
		}
		var found []intent.Discovered
		for _, d := range done {
			found = append(found, d.Discovered...)
		}
		if err := setDiscovered(ctx, tx, env, found); err != nil {
			return err
		}
		for _, f := range facts {
			if err := setParameter(ctx, tx, env, f); err != nil {
				return err
			}
		}
		for _, d := range done {
			for _, n := range d.Notices {
				if err := addNotice(ctx, tx, env, n, *d.Action.Finished); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// recordAround records what an action says beside the state of its resource.
func recordAround(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, d intent.FinishedAction) error {
	if d.Drift != nil {
		if err := recordDrift(ctx, tx, env, d); err != nil {
			return err
		}
	}
	if b := d.Breaker; b != nil {
		_, err := tx.Exec(ctx, statements.AgentBreaker, env, d.Action.Resource.Agent, b.Since, b.ProbeAt,
			int(b.Pause/time.Second), b.Failures)
		return err
	}
	return nil
}

// ResetDeploying ends the actions that a killed server left open, as cancelled, and forgets the list of SetAhead.
// What was being deployed counts as cut off from then on, unless forget is set. It returns the number of actions.
func (s *Store) ResetDeploying(
	ctx context.Context,
	env intent.EnvironmentID,
	at time.Time,
	forget bool,
) (n int, err error) {
	states := statements.StateCutOff
	if forget {
		states = statements.StateNotDeploying
	}
	err = s.writeOwned(ctx, env, "store.ResetDeploying", nil, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.ActionCancelOpen, env, at)
		if err != nil {
			return err
		}
		n = int(tag.RowsAffected())
		if _, err = tx.Exec(ctx, states, env); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statements.AheadForget, env)
		return err
	})
	return n, err
}

// DeleteActionsBefore deletes finished actions that began before a time, and returns how many.
func (s *Store) DeleteActionsBefore(ctx context.Context, env intent.EnvironmentID, t time.Time) (n int, err error) {
	err = s.write(ctx, "store.DeleteActionsBefore", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.ActionDelete, env, t)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}

// mostActions bounds one answer of Actions.
const mostActions = 1000

// Actions lists the newest actions on a resource, or on all when id is zero; kind may be empty. At most 1,000.
func (s *Store) Actions(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
	kind intent.ActionKind,
	limit int,
) (out []intent.Action, err error) {
	if limit <= 0 || limit > mostActions {
		limit = mostActions
	}
	var resource *string
	if !id.IsZero() {
		text := id.String()
		resource = &text
	}
	return listed(ctx, s, "store.Actions", actionRow.value, statements.ActionList, env, resource, string(kind), limit)
}

type logRow struct {
	Action    uuid.UUID
	Kind      string
	Level     string
	Message   string
	Moment    time.Time
	Arguments json.RawMessage
	Severity  int
	Line      string
}

func (r logRow) value() (intent.ResourceLog, error) {
	return intent.ResourceLog{
		Action: r.Action, Kind: intent.ActionKind(r.Kind),
		LogLine: intent.LogLine{Level: r.Level, Message: r.Message, Time: r.Moment.UTC(), Arguments: r.Arguments},
	}, nil
}

// ResourceLogs lists the log lines of a resource.
func (s *Store) ResourceLogs(
	ctx context.Context,
	env intent.EnvironmentID,
	id intent.ResourceID,
	q intent.ListQuery,
) (intent.Page[intent.ResourceLog], error) {
	return page(ctx, s, "store.ResourceLogs", ResourceLogList, q, logRow.value, env, id.String())
}

// RecordedActions returns those of these actions whose ends are recorded. What a killed owner left open does not count.
func (s *Store) RecordedActions(
	ctx context.Context,
	env intent.EnvironmentID,
	ids []intent.ActionID,
) (out []intent.ActionID, err error) {
	err = s.read(ctx, "store.RecordedActions", func(q querier) error {
		rows, err := q.Query(ctx, statements.ActionRecorded, env, ids)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return out, err
}
