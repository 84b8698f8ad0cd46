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
		ID: r.ID, Environment: r.Environment, Kind: intent.OutboxKind(r.Kind), Topic: r.Topic, Round: r.Round, Payload: payload,
		Created: r.Created.UTC(), Attempts: r.Attempts, Next: r.Next.UTC(), State: intent.OutboxState(r.State), Problem: r.Problem, Done: utc(r.Done),
	}, err
}

// addOutbox writes work for a forge; what waits about the same topic is replaced by it.
func addOutbox(
	ctx context.Context,
	tx pgx.Tx,
	env intent.EnvironmentID,
	kind intent.OutboxKind,
	topic string,
	p intent.OutboxPayload,
	at time.Time,
) error {
	_, err := tx.Exec(ctx, statements.OutboxAdd, env, string(kind), topic, toJSON(p), at)
	return err
}

// addComment writes that the comment of a pull request is to be brought up to date.
func addComment(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, number int, at time.Time) error {
	return addOutbox(
		ctx,
		tx,
		env,
		intent.OutboxComment,
		fmt.Sprintf("comment/%d", number),
		intent.OutboxPayload{Number: number},
		at,
	)
}

// AskForge writes that a pull request is to be looked up; 0: all that are open.
func (s *Store) AskForge(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) error {
	return s.write(ctx, "store.AskForge", func(tx pgx.Tx) error {
		if number == 0 {
			return addOutbox(ctx, tx, env, intent.OutboxPulls, "pulls", intent.OutboxPayload{}, at)
		}
		return addOutbox(
			ctx,
			tx,
			env,
			intent.OutboxPull,
			fmt.Sprintf("pull/%d", number),
			intent.OutboxPayload{Number: number},
			at,
		)
	})
}

// TakeOutbox gives the next piece of work that is due, and nobody else until
// then; nil when none is. next is when the following one is due, zero when none waits.
func (s *Store) TakeOutbox(ctx context.Context, now, until time.Time) (out *intent.Outbox, next time.Time, err error) {
	err = s.write(ctx, "store.TakeOutbox", func(tx pgx.Tx) error {
		out, next = nil, time.Time{}
		row, err := one[outboxRow](ctx, tx, statements.OutboxTake, now, until)
		if isNoRows(err) {
			var due *time.Time
			err = tx.QueryRow(ctx, statements.OutboxNext).Scan(&due)
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

// OutboxSent says that a piece of work is done.
func (s *Store) OutboxSent(ctx context.Context, w intent.Outbox, at time.Time) error {
	return s.write(ctx, "store.OutboxSent", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.OutboxSent, w.ID, w.Round, at)
		return err
	})
}

// OutboxFailed says why one failed, and when it is tried again; dead: it is
// not, and people hear of it.
func (s *Store) OutboxFailed(
	ctx context.Context,
	w intent.Outbox,
	problem string,
	next time.Time,
	dead bool,
	at time.Time,
) error {
	return s.write(ctx, "store.OutboxFailed", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.OutboxFailed, w.ID, w.Round, cleanText(problem), next, dead, at); err != nil ||
			!dead {
			return err
		}
		return addNotice(ctx, tx, w.Environment, intent.Notice{
			Severity: intent.SeverityWarning, Title: "The forge was not told", Message: w.Topic + ": " + problem, URI: "/api/v2/forge/outbox",
		}, at)
	})
}

// DelayOutbox leaves the forge of an environment alone until a time.
func (s *Store) DelayOutbox(ctx context.Context, env intent.EnvironmentID, until time.Time) error {
	return s.write(ctx, "store.DelayOutbox", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.OutboxDelay, env, until)
		return err
	})
}

// Outbox lists what waits for the forge of an environment, and what was done last.
func (s *Store) Outbox(ctx context.Context, env intent.EnvironmentID, limit int) (out []intent.Outbox, err error) {
	return listed(ctx, s, "store.Outbox", outboxRow.value, statements.OutboxList, env, limit)
}

// RetryOutbox gives a dead piece of work another chance; Conflict when it is not dead.
func (s *Store) RetryOutbox(ctx context.Context, env intent.EnvironmentID, id int64, at time.Time) error {
	const op = "store.RetryOutbox"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		err := affected(tx.Exec(ctx, statements.OutboxRetry, env, id, at))
		if isNoRows(err) {
			return fault.New(op, fault.Conflict, "it is not dead, or something newer about the same waits")
		}
		return err
	})
}

// DeleteOutboxBefore forgets what was done before a time.
func (s *Store) DeleteOutboxBefore(ctx context.Context, t time.Time) error {
	return s.write(ctx, "store.DeleteOutboxBefore", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.OutboxDelete, t)
		return err
	})
}

// deployTold is what a forge was told last of a deployment.
type deployTold struct {
	Version     int
	Commit      string
	State       string
	Description string
}

// tellDeploy writes what a forge is to be told of the deployment of a version, unless it was told.
func tellDeploy(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, now deployTold, at time.Time) error {
	var told bool
	var name string
	if err := tx.QueryRow(ctx, statements.ForgeTold, env).Scan(&told, &name); err != nil || !told || now.Commit == "" {
		return err
	}
	before, err := one[deployTold](ctx, tx, statements.DeployToldGet, env)
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
			Description: fmt.Sprintf(
				"Version %d took its place before all was deployed",
				now.Version,
			), Path: fmt.Sprintf("/e/%s/versions/%d", env, before.Version)}
		if err := addOutbox(ctx, tx, env, intent.OutboxStatus, topic(before.Commit), old, at); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, statements.DeployToldSet, env, now.Version, now.Commit, now.State, now.Description); err != nil {
		return err
	}
	return addOutbox(ctx, tx, env, intent.OutboxStatus, topic(now.Commit), status, at)
}

// TellDeployment looks how far the active version is, and writes what its forge
// is to be told when that changed. What was told to be deployed stays so.
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
		before, err := one[deployTold](ctx, tx, statements.DeployToldGet, env)
		if isNoRows(err) || err == nil && (before.Version != v.Number || before.State == string(intent.CommitSuccess)) {
			return nil // nobody is told, or all is
		}
		if err != nil {
			return err
		}
		rows, err := many[countRow](ctx, tx, statements.StateCounts, env)
		if err != nil {
			return err
		}
		state, words := deployment(rows)
		return tellDeploy(ctx, tx, env, deployTold{v.Number, v.Provenance.Commit, string(state), words}, at)
	})
}

// deployment says in a word and a line how far a version is.
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
	return intent.CommitFailure, fmt.Sprintf(
		"%d of %d resources are deployed: %s",
		done,
		total,
		strings.Join(rest, ", "),
	)
}
