package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// agentPatience is how long after its deadline a command is not given up although its agent is not connected: it may
// come back with the answer.
const agentPatience = 30 * time.Second

// AddAgentCommands records commands to remote agents, as the owner of the environment. A command that is recorded
// already stays as it is. NotFound: an agent has not joined.
func (s *Store) AddAgentCommands(
	ctx context.Context, env intent.EnvironmentID, commands []intent.NewAgentCommand,
) error {
	const op = "store.AddAgentCommands"
	return s.writeOwned(ctx, env, op, nil, func(tx pgx.Tx) error {
		var b pgx.Batch
		for _, c := range commands {
			b.Queue(statements.CommandAdd, c.ID, env, c.Agent, c.Action, notNil(c.Needs), c.Sealed, c.Within.Seconds(),
				c.Subject)
		}
		results := tx.SendBatch(ctx, &b)
		var doubtful []intent.NewAgentCommand
		for _, c := range commands {
			var seq int64
			err := results.QueryRow().Scan(&seq)
			if isNoRows(err) {
				doubtful = append(doubtful, c)
			} else if err != nil {
				_ = results.Close() // its error would only be a consequence
				return err
			}
		}
		if err := results.Close(); err != nil {
			return err
		}
		for _, c := range doubtful {
			known, err := many[CommandState](ctx, tx, statements.CommandState, []uuid.UUID{c.ID})
			if err != nil {
				return err
			}
			if len(known) == 0 {
				return fault.New(op, fault.NotFound, "the agent "+c.Agent+" has not joined, or was revoked or removed").
					Hint("make a join token for it, with ordain agent token create")
			}
		}
		return nil
	})
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// CommandState is whose a command is, and how far it is.
type CommandState struct {
	ID          uuid.UUID
	Environment uuid.UUID
	Agent       string
	Sent        bool
	Answered    bool
}

// AgentCommandStates returns the states of those of the commands that exist.
func (s *Store) AgentCommandStates(ctx context.Context, ids []uuid.UUID) (out []CommandState, err error) {
	err = s.read(ctx, "store.AgentCommandStates", func(q querier) error {
		out, err = many[CommandState](ctx, q, statements.CommandState, ids)
		return err
	})
	return out, err
}

// AgentAnswer is the sealed answer of a command.
type AgentAnswer struct {
	ID     uuid.UUID
	Agent  string
	Status string
	Answer []byte // nil when the agent did not send one: the server ended the command
}

// AgentAnswers returns the answers of those of the commands that have one.
func (s *Store) AgentAnswers(
	ctx context.Context, env intent.EnvironmentID, ids []uuid.UUID,
) (out []AgentAnswer, err error) {
	err = s.read(ctx, "store.AgentAnswers", func(q querier) error {
		out, err = many[AgentAnswer](ctx, q, statements.CommandAnswers, env, ids)
		return err
	})
	return out, err
}

// UnfinishedAgentCommands lists the commands of an environment that were not finished, for a new owner.
func (s *Store) UnfinishedAgentCommands(
	ctx context.Context, env intent.EnvironmentID,
) (out []intent.AgentCommand, err error) {
	err = s.read(ctx, "store.UnfinishedAgentCommands", func(q querier) error {
		out, err = many[intent.AgentCommand](ctx, q, statements.CommandUnfinished, env)
		return err
	})
	for i := range out {
		c := &out[i]
		c.Made, c.Deadline, c.Sent, c.Answered = c.Made.UTC(), c.Deadline.UTC(), utc(c.Sent), utc(c.Answered)
	}
	return out, err
}

// CancelAgentCommands asks for the end of commands, as the owner of the environment. It returns the names of the agents
// that have to be told; what was never sent ends at once.
func (s *Store) CancelAgentCommands(
	ctx context.Context, env intent.EnvironmentID, ids []uuid.UUID,
) (tell []string, err error) {
	err = s.writeOwned(ctx, env, "store.CancelAgentCommands", nil, func(tx pgx.Tx) error {
		tell = nil
		type cancelled struct {
			ID       uuid.UUID
			Agent    string
			Answered bool
		}
		rows, err := many[cancelled](ctx, tx, statements.CommandCancel, env, ids)
		for _, c := range rows {
			if !c.Answered {
				tell = append(tell, c.Agent)
			}
		}
		return err
	})
	return tell, err
}

// EndLateAgentCommands ends the commands of an environment whose answers cannot come in time any more, as its owner,
// and returns their ids.
func (s *Store) EndLateAgentCommands(ctx context.Context, env intent.EnvironmentID) (ended []uuid.UUID, err error) {
	err = s.writeOwned(ctx, env, "store.EndLateAgentCommands", nil, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, statements.CommandEndLate, env, agentPatience.Seconds())
		if err != nil {
			return err
		}
		ended, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return ended, err
}

// FinishAgentCommands deletes answered commands, as the owner of the environment, which has recorded elsewhere what
// came of them.
func (s *Store) FinishAgentCommands(ctx context.Context, env intent.EnvironmentID, ids []uuid.UUID) error {
	return s.writeOwned(ctx, env, "store.FinishAgentCommands", func(b *pgx.Batch) {
		b.Queue(statements.CommandFinish, env, ids)
	}, nil)
}

// AgentsWithCommands returns the connections of this replica for which there is something to send.
func (s *Store) AgentsWithCommands(ctx context.Context) (out []AgentConnection, err error) {
	err = s.read(ctx, "store.AgentsWithCommands", func(q querier) error {
		type waiting struct {
			Environment uuid.UUID
			Name        string
			Connection  int64
		}
		rows, err := many[waiting](ctx, q, statements.CommandWaiting, s.replica)
		out = nil
		for _, w := range rows {
			out = append(out, AgentConnection{Environment: w.Environment, Name: w.Name, Connection: w.Connection})
		}
		return err
	})
	return out, err
}

// ClaimedCommand is a command that is to be sent now.
type ClaimedCommand struct {
	ID          uuid.UUID
	Environment uuid.UUID
	Agent       string
	Seq         int64
	Action      string
	Needs       []string
	Payload     []byte // sealed
	LeftMS      int64  // until the deadline; 0: it has passed, or the command was cancelled
}

// ClaimAgentCommands marks commands as sent on these connections and returns them, in no order; room is how many each
// connection may take. Connections that are no longer the newest of their agents get nothing.
func (s *Store) ClaimAgentCommands(
	ctx context.Context, connections []AgentConnection, room []int,
) (out []ClaimedCommand, err error) {
	envs, names, numbers := columnsOf(connections)
	err = s.state(ctx, "store.ClaimAgentCommands", func(q querier) error {
		out, err = many[ClaimedCommand](ctx, q, statements.CommandClaim, s.replica, envs, names, numbers, room)
		return err
	})
	return out, err
}

// UnclaimAgentCommands makes what these connections have not got claimable again, after a claim whose outcome is not
// known. got are the commands that they have.
func (s *Store) UnclaimAgentCommands(ctx context.Context, connections []AgentConnection, got []uuid.UUID) error {
	envs, names, numbers := columnsOf(connections)
	if got == nil {
		got = []uuid.UUID{}
	}
	return s.state(ctx, "store.UnclaimAgentCommands", func(q querier) error {
		_, err := q.Exec(ctx, statements.CommandUnclaim, envs, names, numbers, got)
		return err
	})
}

// CancelledCommand is a command whose agent is to be told that it was cancelled.
type CancelledCommand struct {
	ID          uuid.UUID
	Environment uuid.UUID
	Agent       string
}

// ClaimCancelledCommands marks the cancellation of commands as sent on these connections, and returns them.
func (s *Store) ClaimCancelledCommands(
	ctx context.Context, connections []AgentConnection,
) (out []CancelledCommand, err error) {
	envs, names, numbers := columnsOf(connections)
	err = s.state(ctx, "store.ClaimCancelledCommands", func(q querier) error {
		out, err = many[CancelledCommand](ctx, q, statements.CommandClaimCancelled, envs, names, numbers)
		return err
	})
	return out, err
}

// NewAgentAnswer is an answer that an agent sent.
type NewAgentAnswer struct {
	ID          uuid.UUID
	Environment intent.EnvironmentID
	Agent       string
	Status      string
	Sealed      []byte
}

// RecordAgentAnswers records answers, each for a command that was sent to the agent that answers and has no answer yet.
// It returns the ids of those that it recorded.
func (s *Store) RecordAgentAnswers(ctx context.Context, answers []NewAgentAnswer) (recorded []uuid.UUID, err error) {
	var ids, envs []uuid.UUID
	var agents, statuses []string
	var sealed [][]byte
	for _, a := range answers {
		ids, envs, agents = append(ids, a.ID), append(envs, a.Environment), append(agents, a.Agent)
		statuses, sealed = append(statuses, a.Status), append(sealed, a.Sealed)
	}
	err = s.state(ctx, "store.RecordAgentAnswers", func(q querier) error {
		rows, err := q.Query(ctx, statements.CommandAnswer, ids, envs, agents, statuses, sealed)
		if err != nil {
			return err
		}
		recorded, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return recorded, err
}

// contentPart is how many bytes of a content are in a row.
const contentPart = 256 << 10

// LackingContents returns those of the hashes whose contents are not in the record. The others are kept for some days
// more.
func (s *Store) LackingContents(ctx context.Context, hashes []string) (out []string, err error) {
	err = s.state(ctx, "store.LackingContents", func(q querier) error {
		rows, err := q.Query(ctx, statements.ContentLacking, notNil(hashes))
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return out, err
}

// PutContent stores a content under its hash, which the caller has computed.
func (s *Store) PutContent(ctx context.Context, hash string, content []byte) error {
	if content == nil {
		content = []byte{} // not NULL
	}
	return s.write(ctx, "store.PutContent", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.ContentAdd, hash, len(content))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		for number := 0; number == 0 || number*contentPart < len(content); number++ {
			part := content[number*contentPart : min((number+1)*contentPart, len(content))]
			if _, err := tx.Exec(ctx, statements.ContentPartAdd, hash, number, part); err != nil {
				return err
			}
		}
		return nil
	})
}

// ContentSize returns the size of a content, and that of its parts.
func (s *Store) ContentSize(ctx context.Context, hash string) (size, part int64, err error) {
	err = s.read(ctx, "store.ContentSize", func(q querier) error {
		return q.QueryRow(ctx, statements.ContentSize, hash).Scan(&size)
	})
	return size, contentPart, err
}

// ContentPart returns a part of a content; they are numbered from 0.
func (s *Store) ContentPart(ctx context.Context, hash string, number int) (data []byte, err error) {
	err = s.read(ctx, "store.ContentPart", func(q querier) error {
		return q.QueryRow(ctx, statements.ContentPart, hash, number).Scan(&data)
	})
	return data, err
}
