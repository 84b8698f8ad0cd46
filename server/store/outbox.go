package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type outboxRow struct {
	ID          int64
	Environment uuid.UUID
	Kind        string
	Topic       string
	Round       int
	Payload     json.RawMessage
	Created     time.Time
	Attempts    int
	Next        time.Time
	State       string
	Problem     string
	Done        *time.Time
}

func (r outboxRow) value() (intent.Outbox, error) {
	payload, err := fromJSON[intent.OutboxPayload](r.Payload)
	return intent.Outbox{
		ID: r.ID, Environment: r.Environment, Kind: intent.OutboxKind(r.Kind), Topic: r.Topic, Round: r.Round,
		Payload: payload,
		Created: r.Created.UTC(), Attempts: r.Attempts, Next: r.Next.UTC(), State: intent.OutboxState(r.State),
		Problem: r.Problem, Done: utc(r.Done),
	}, err
}

// ForgeSend is the process that sends what waits for the forge of an environment, and ForgeResource the type of its
// resources: an environment's forge is a resource whose id is that of the environment. The table forge_outbox holds
// the messages; the process is scheduled in the transaction that adds one.
const (
	ForgeSend     = "forge.send"
	ForgeResource = "forge"
	ForgeQueue    = "forge"
	// ForgeAttempts is how often sending may fail before anything was sent, as when the database refuses something.
	ForgeAttempts = 1000
)

// scheduleForge schedules the process that sends what waits for the forge of an environment.
func (s *Store) scheduleForge(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID) error {
	_, err := s.schedule(ctx, tx, intent.NewProcess{
		Name: ForgeSend, Resource: intent.ProcessResource{Type: ForgeResource, ID: env.String()}, Environment: env,
		Single: true, Most: ForgeAttempts, Queue: ForgeQueue, MadeBy: "outbox",
	})
	return err
}

// ScheduleForges schedules the processes for what older servers left in the outbox.
func (s *Store) ScheduleForges(ctx context.Context) error {
	return s.write(ctx, "store.ScheduleForges", func(tx pgx.Tx) error {
		return s.queueForForge(ctx, tx, statements.ProcessForges)
	})
}

// queueForForge runs a statement that adds messages and returns their environments.
func (s *Store) queueForForge(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	environments, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	for _, env := range environments {
		if err == nil {
			err = s.scheduleForge(ctx, tx, env)
		}
	}
	return err
}

// addOutbox queues work for a forge; it replaces waiting work on the same topic.
func (s *Store) addOutbox(
	ctx context.Context,
	tx pgx.Tx,
	env intent.EnvironmentID,
	kind intent.OutboxKind,
	topic string,
	p intent.OutboxPayload,
	at time.Time,
) error {
	if _, err := tx.Exec(ctx, statements.OutboxAdd, env, string(kind), topic, toJSON(p), at); err != nil {
		return err
	}
	return s.scheduleForge(ctx, tx, env)
}

// addComment queues an update of the comment on a pull request.
func (s *Store) addComment(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, number int, at time.Time) error {
	return s.addOutbox(ctx, tx, env, intent.OutboxComment, fmt.Sprintf("comment/%d", number),
		intent.OutboxPayload{Number: number}, at)
}

// AskForge queues a look at a pull request at the forge; number 0 means all open ones.
func (s *Store) AskForge(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) error {
	return s.write(ctx, "store.AskForge", func(tx pgx.Tx) error {
		if number == 0 {
			return s.addOutbox(ctx, tx, env, intent.OutboxPulls, "pulls", intent.OutboxPayload{}, at)
		}
		return s.addOutbox(ctx, tx, env, intent.OutboxPull, fmt.Sprintf("pull/%d", number),
			intent.OutboxPayload{Number: number}, at)
	})
}

// TakeOutbox takes the next piece of work for the forge of an environment that is due; only the process of the
// environment may do that, and servers of older versions do not touch it before until. out is nil when none is due;
// next is then when the next one will be, zero when none is waiting.
func (s *Store) TakeOutbox(
	ctx context.Context, env intent.EnvironmentID, now, until time.Time,
) (out *intent.Outbox, next time.Time, err error) {
	err = s.write(ctx, "store.TakeOutbox", func(tx pgx.Tx) error {
		out, next = nil, time.Time{}
		row, err := one[outboxRow](ctx, tx, statements.OutboxTake, env, now, until)
		if isNoRows(err) {
			var due *time.Time
			err = tx.QueryRow(ctx, statements.OutboxNext, env).Scan(&due)
			if due != nil {
				next = due.UTC()
			}
			return err
		}
		if err != nil {
			return err
		}
		work, err := row.value()
		out = &work
		return err
	})
	return out, next, err
}

// OutboxSent records that a piece of work is done. Newer work that replaced it in the meantime stays.
func (s *Store) OutboxSent(ctx context.Context, w intent.Outbox, at time.Time) error {
	return s.write(ctx, "store.OutboxSent", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.OutboxSent, w.ID, w.Round, at)
		return err
	})
}

// OutboxFailed records why a piece of work failed and when to try it again. A dead one is not tried again; people are
// notified instead. Newer work that replaced it in the meantime stays.
func (s *Store) OutboxFailed(
	ctx context.Context,
	w intent.Outbox,
	problem string,
	next time.Time,
	dead bool,
	at time.Time,
) error {
	return s.write(ctx, "store.OutboxFailed", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.OutboxFailed, w.ID, w.Round, cleanText(problem), next, dead,
			at); err != nil ||
			!dead {
			return err
		}
		return addNotice(ctx, tx, w.Environment, intent.Notice{
			Severity: intent.SeverityWarning, Title: "The forge was not informed", Message: w.Topic + ": " +
				problem, URI: "/api/v2/forge/outbox",
		}, at)
	})
}

// DelayOutbox postpones all work for the forge of an environment until a time.
func (s *Store) DelayOutbox(ctx context.Context, env intent.EnvironmentID, until time.Time) error {
	return s.write(ctx, "store.DelayOutbox", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.OutboxDelay, env, until)
		return err
	})
}

// Outbox lists the work that is waiting for the forge of an environment, and the last that was done.
func (s *Store) Outbox(ctx context.Context, env intent.EnvironmentID, limit int) (out []intent.Outbox, err error) {
	return listed(ctx, s, "store.Outbox", outboxRow.value, statements.OutboxList, env, limit)
}

// RetryOutbox makes a dead piece of work due again. Conflict when it is not dead, or newer work has replaced it.
func (s *Store) RetryOutbox(ctx context.Context, env intent.EnvironmentID, id int64, at time.Time) error {
	const op = "store.RetryOutbox"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		err := affected(tx.Exec(ctx, statements.OutboxRetry, env, id, at))
		if isNoRows(err) {
			return fault.New(op, fault.Conflict,
				"this piece of work is not dead, or newer work on the same topic is waiting")
		}
		if err != nil {
			return err
		}
		return s.scheduleForge(ctx, tx, env)
	})
}

// DeleteOutboxBefore deletes work that was done before a time.
func (s *Store) DeleteOutboxBefore(ctx context.Context, t time.Time) error {
	return s.write(ctx, "store.DeleteOutboxBefore", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.OutboxDelete, t)
		return err
	})
}

// deployStatus is the last status of a deployment that was sent to a forge.
type deployStatus struct {
	Version     int
	Commit      string
	State       string
	Description string
}

// queueDeployStatus queues the status of a version's deployment for the forge, unless the forge has it already.
func (s *Store) queueDeployStatus(
	ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, now deployStatus, at time.Time,
) error {
	var reports bool
	var name string
	if err := tx.QueryRow(ctx, statements.ForgeReports, env).Scan(&reports, &name); err != nil || !reports ||
		now.Commit == "" {
		return err
	}
	before, err := one[deployStatus](ctx, tx, statements.DeployStatusGet, env)
	if err != nil && !isNoRows(err) {
		return err
	}
	if err == nil && before == now {
		return nil
	}
	status := intent.OutboxPayload{
		Commit:      now.Commit,
		Context:     "ordain/" + name + "/deploy",
		State:       intent.CommitState(now.State),
		Description: now.Description,
		Path:        fmt.Sprintf("/e/%s/versions/%d", env, now.Version),
	}
	topic := func(commit string) string { return "status/" + status.Context + "/" + commit }
	if before.State == string(intent.CommitPending) && before.Commit != now.Commit {
		old := intent.OutboxPayload{Commit: before.Commit, Context: status.Context, State: intent.CommitCancelled,
			Description: fmt.Sprintf("Version %d took its place before all was deployed",
				now.Version), Path: fmt.Sprintf("/e/%s/versions/%d", env, before.Version)}
		if err := s.addOutbox(ctx, tx, env, intent.OutboxStatus, topic(before.Commit), old, at); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, statements.DeployStatusSet, env, now.Version, now.Commit, now.State,
		now.Description); err != nil {
		return err
	}
	return s.addOutbox(ctx, tx, env, intent.OutboxStatus, topic(now.Commit), status, at)
}

// TellDeployment looks at the progress of the active version and queues a status for its forge when that changed.
// Once a version has been reported as deployed, it stays so, unless a resource is parked.
func (s *Store) TellDeployment(ctx context.Context, env intent.EnvironmentID, at time.Time) error {
	return s.write(ctx, "store.TellDeployment", func(tx pgx.Tx) error {
		row, err := one[versionRow](ctx, tx, statements.VersionActive, env)
		if isNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		v, err := row.value()
		if err != nil {
			return err
		}
		before, err := one[deployStatus](ctx, tx, statements.DeployStatusGet, env)
		if isNoRows(err) || err == nil && before.Version != v.Number {
			return nil // no status was sent for it
		}
		if err != nil {
			return err
		}
		if before.State == string(intent.CommitSuccess) {
			var parked bool
			if err := tx.QueryRow(ctx, statements.StateAnyParked, env).Scan(&parked); err != nil || !parked {
				return err
			}
		}
		rows, err := many[countRow](ctx, tx, statements.StateCounts, env)
		if err != nil {
			return err
		}
		state, words := deployment(rows)
		return s.queueDeployStatus(ctx, tx, env, deployStatus{v.Number, v.Provenance.Commit, string(state), words}, at)
	})
}

// deployment returns the state of a deployment and a sentence for it.
func deployment(rows []countRow) (intent.CommitState, string) {
	total, done, busy := 0, 0, 0
	var rest []string
	for _, r := range rows {
		total += r.Count
		switch intent.Status(r.Status) {
		case intent.StatusDeployed:
			done += r.Count
		case intent.StatusDeploying, intent.StatusAvailable:
			busy += r.Count
		default:
			rest = append(rest, fmt.Sprintf("%d %s", r.Count, strings.ReplaceAll(r.Status, "_", " ")))
		}
	}
	switch {
	case busy > 0:
		return intent.CommitPending, "Deploying"
	case len(rest) == 0:
		return intent.CommitSuccess, fmt.Sprintf("All %d resources are deployed", total)
	}
	return intent.CommitFailure, fmt.Sprintf("%d of %d resources are deployed: %s", done, total,
		strings.Join(rest, ", "))
}
