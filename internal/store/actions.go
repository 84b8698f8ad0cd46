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

// messageJSON is one element of the messages column. The list of log lines
// reads these names.
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
		Started: r.Started.UTC(), Finished: utc(r.Finished), Status: intent.Status(r.Status), Change: intent.Change(r.Change), Changes: changes,
	}
	for _, m := range messages {
		a.Messages = append(a.Messages, intent.LogLine{Level: m.Level, Message: m.Message, Time: m.Moment, Arguments: m.Arguments})
	}
	return a, errors.Join(err1, err2, err3)
}

// messagesJSON writes the messages column.
func messagesJSON(lines []intent.LogLine) (string, error) {
	out := make([]messageJSON, 0, len(lines))
	for _, l := range lines {
		m := messageJSON{Level: cleanText(l.Level), Message: cleanText(l.Message), Moment: micro(l.Time)}
		if len(l.Arguments) > 0 {
			arguments, err := cleanJSON(l.Arguments)
			if err != nil {
				return "", fault.Wrap("store.messages", fault.Invalid, err).Say("the arguments of a log line")
			}
			m.Arguments = arguments
		}
		out = append(out, m)
	}
	return toJSON(out), nil
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

// actionColumns are actions, column by column, for unnest.
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
	messages  []string
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
	return []any{env, c.ids, c.kinds, c.resources, c.versions, c.started, c.finished, c.statuses, c.kindsOf, c.changes, c.messages}
}

// StartActions records that these actions begin; resources that are to be
// deployed are marked so. Starting an action again changes nothing.
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
	return s.write(ctx, "store.StartActions", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.ActionStart, columns.args(env)...); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statements.StateDeploying, env, deploying)
		return err
	})
}

// stateColumns are states, column by column, for unnest.
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
}

// FinishActions records outcomes, the states that follow, and facts. When a
// newer intent was released in the meantime, the state keeps what follows from
// that intent and only learns how the run ended. Finishing an action again
// changes nothing of the action.
func (s *Store) FinishActions(ctx context.Context, env intent.EnvironmentID, done []intent.FinishedAction) error {
	const op = "store.FinishActions"
	if len(done) == 0 {
		return nil
	}
	var columns actionColumns
	latest := make(map[intent.ResourceID]int) // of several states of a resource the last counts
	for i, d := range done {
		if d.Action.Finished == nil {
			return fault.New(op, fault.Invalid, "the action on "+d.Action.Resource.String()+" has no end")
		}
		if err := columns.add(d.Action); err != nil {
			return err
		}
		if !d.State.ID.IsZero() {
			latest[d.State.ID] = i
		}
	}
	var states stateColumns
	var facts []intent.Parameter
	for i, d := range done {
		if at, ok := latest[d.State.ID]; ok && at == i && !d.State.ID.IsZero() {
			states.add(d.State)
		}
		for _, f := range d.Facts {
			if f.Resource.IsZero() {
				f.Resource = d.Action.Resource
			}
			facts = append(facts, f)
		}
	}
	return s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.ActionFinish, columns.args(env)...); err != nil {
			return err
		}
		if len(states.ids) > 0 {
			if _, err := tx.Exec(ctx, statements.StateFinish, env, states.ids, states.compliance, states.lastRun, states.blocked,
				states.isDeploying, states.lastRunAt, states.lastSuccess, states.lastDeployed, states.deployedHash, states.intentHash,
				states.lastEvents, states.attempts); err != nil {
				return err
			}
		}
		for _, f := range facts {
			if err := setParameter(ctx, tx, env, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// ResetDeploying ends actions that a killed server left open.
func (s *Store) ResetDeploying(ctx context.Context, env intent.EnvironmentID, at time.Time) (n int, err error) {
	err = s.write(ctx, "store.ResetDeploying", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.ActionCancelOpen, env, at)
		if err != nil {
			return err
		}
		n = int(tag.RowsAffected())
		_, err = tx.Exec(ctx, statements.StateNotDeploying, env)
		return err
	})
	return n, err
}

// DeleteActionsBefore drops finished actions that began before a time.
func (s *Store) DeleteActionsBefore(ctx context.Context, env intent.EnvironmentID, t time.Time) (n int, err error) {
	err = s.write(ctx, "store.DeleteActionsBefore", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.ActionDelete, env, t)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}

// mostActions bounds one answer.
const mostActions = 1000

// Actions gives the newest actions of a resource, or of all when id is zero;
// kind may be empty. No limit means 1000.
func (s *Store) Actions(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, kind intent.ActionKind, limit int) (out []intent.Action, err error) {
	if limit <= 0 || limit > mostActions {
		limit = mostActions
	}
	var resource *string
	if !id.IsZero() {
		text := id.String()
		resource = &text
	}
	err = s.read(ctx, "store.Actions", func(q querier) error {
		rows, err := many[actionRow](ctx, q, statements.ActionList, env, resource, string(kind), limit)
		if err == nil {
			out, err = convert(rows, actionRow.value)
		}
		return err
	})
	return out, err
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
func (s *Store) ResourceLogs(ctx context.Context, env intent.EnvironmentID, id intent.ResourceID, q intent.ListQuery) (intent.Page[intent.ResourceLog], error) {
	return page(ctx, s, "store.ResourceLogs", lists.logs, q, logRow.value, env, id.String())
}
