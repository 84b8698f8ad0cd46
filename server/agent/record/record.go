// Package record is how the owner of an environment talks to its remote agents:
// through rows. The owner records commands, the agent server sends them and
// records the answers, and the owner reads these.
//
//	owner ─ Put ──▶ agent_command ──claim──▶ gateway ══▶ agent
//	owner ◀─ Answers ── agent_command ◀──── gateway ◀══ answer
//	      └─ Finish: deletes the row once the outcome is recorded elsewhere
//
// Events only say that there is something to read: bus.Command to the gateways, and
// bus.Answered to the owner. Payloads and answers are sealed with the server's key,
// bound to their environment and command.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/store"
)

// Config has what a Record needs; all of it is required.
type Config struct {
	Store *store.Store
	Key   *secret.Key
	Bus   *bus.Bus
}

// Record reads and writes commands. It is safe for concurrent use.
type Record struct{ c Config }

// New makes a Record.
func New(c Config) (*Record, error) {
	if c.Store == nil || c.Key == nil || c.Bus == nil {
		return nil, errors.New("record.New: a part of the configuration is missing")
	}
	return &Record{c}, nil
}

// maxPayload leaves room in a message for what is around the payload, and for variables.
const maxPayload = protocol.MaxMessage - 512<<10

// Command is a command before it is recorded, and by what a new owner of the environment knows it.
type Command struct {
	Subject string
	protocol.CommandMessage
}

// Put records a command, as PutAll does.
func (r *Record) Put(
	ctx context.Context, env intent.EnvironmentID, agent, subject string, m protocol.CommandMessage,
) error {
	return r.PutAll(ctx, env, agent, Command{subject, m})
}

// PutAll records commands to an agent, as the owner of its environment. Type and Seq are set by the record, and a
// command with an id that is recorded already stays as it is. NotFound: the agent has not joined, or was revoked.
func (r *Record) PutAll(ctx context.Context, env intent.EnvironmentID, agent string, all ...Command) error {
	const op = "record.Put"
	commands := make([]intent.NewAgentCommand, 0, len(all))
	for _, m := range all {
		id, err := uuid.Parse(m.ID)
		if err != nil {
			return fault.New(op, fault.Internal, fmt.Sprintf("%.50q is not the id of a command", m.ID))
		}
		payload, err := json.Marshal(m.Payload)
		if err != nil {
			return fault.Wrap(op, fault.Internal, err)
		}
		if len(payload) > maxPayload {
			return fault.New(op, fault.Invalid, fmt.Sprintf(
				"the command is too large for an agent: it has %d bytes, and may have %d", len(payload), maxPayload)).
				Hint("make the attributes of the resource smaller; large files belong into std::File")
		}
		sealed, err := r.c.Key.Seal(payload, sealedFor(env, m.ID))
		if err != nil {
			return err
		}
		commands = append(commands, intent.NewAgentCommand{
			ID: id, Agent: agent, Action: string(m.Action), Subject: m.Subject, Needs: m.Needs, Sealed: sealed,
			Within: time.Duration(m.DeadlineMS) * time.Millisecond,
		})
	}
	if err := r.c.Store.AddAgentCommands(ctx, env, commands); err != nil {
		return err
	}
	r.c.Bus.Publish(bus.Event{Environment: env, Topic: bus.Command, ID: agent})
	return nil
}

// sealedFor is what the payload and the answer of a command are sealed for.
func sealedFor(env intent.EnvironmentID, id string) string {
	return "agent command " + env.String() + "/" + id
}

// Open opens the payload of a command.
func (r *Record) Open(env intent.EnvironmentID, id uuid.UUID, sealed []byte) (p protocol.Payload, err error) {
	plain, err := r.c.Key.Open(sealed, sealedFor(env, id.String()))
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(plain, &p)
}

// Seal seals the JSON of an answer.
func (r *Record) Seal(env intent.EnvironmentID, id uuid.UUID, answer []byte) ([]byte, error) {
	return r.c.Key.Seal(answer, sealedFor(env, id.String())+" answer")
}

// Answers returns the answers of those of the commands that have one, by id.
func (r *Record) Answers(
	ctx context.Context, env intent.EnvironmentID, ids []uuid.UUID,
) (map[uuid.UUID]protocol.AnswerBody, error) {
	rows, err := r.c.Store.AgentAnswers(ctx, env, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[uuid.UUID]protocol.AnswerBody, len(rows))
	for _, row := range rows {
		if row.Answer == nil {
			out[row.ID] = protocol.AnswerBody{
				Status: row.Status, Change: string(intent.NoChange), Lines: []json.RawMessage{own(row)},
			}
			continue
		}
		plain, err := r.c.Key.Open(row.Answer, sealedFor(env, row.ID.String())+" answer")
		if err != nil {
			return nil, err
		}
		body, err := protocol.DecodeAnswer(plain)
		if err != nil {
			return nil, fault.Wrap("record.Answers", fault.Internal, err)
		}
		out[row.ID] = *body
	}
	return out, nil
}

// own is the line of a command that the server ended without an answer of its agent.
func own(row store.AgentAnswer) json.RawMessage {
	why := map[string]string{
		protocol.Late: "The agent " + row.Agent + " did not answer before the deadline: it is not connected, " +
			"too busy, or it lost the command. If it has begun, it may still have changed its target",
		protocol.Lost: "The agent " + row.Agent + " was revoked, removed, or joined again before it answered. If it " +
			"has begun, it may have changed its target",
		protocol.Cancelled: "The command was cancelled before it was sent to the agent " + row.Agent,
	}[row.Status]
	return Line("WARNING", why)
}

// Line returns a line of the server in the log of a command.
func Line(level, text string) json.RawMessage {
	line, err := json.Marshal(intent.LogLine{Level: level, Message: text, Time: time.Now().UTC()})
	if err != nil {
		panic("a log line cannot be encoded: " + err.Error()) // it has only texts and a time
	}
	return line
}

// Unfinished lists the commands of an environment that were not finished, for a new owner.
func (r *Record) Unfinished(ctx context.Context, env intent.EnvironmentID) ([]intent.AgentCommand, error) {
	return r.c.Store.UnfinishedAgentCommands(ctx, env)
}

// Cancel asks for the end of commands, as the owner of their environment. What was never sent is answered at once with
// cancelled.
func (r *Record) Cancel(ctx context.Context, env intent.EnvironmentID, ids ...uuid.UUID) error {
	tell, err := r.c.Store.CancelAgentCommands(ctx, env, ids)
	if err != nil {
		return err
	}
	for _, agent := range tell {
		r.c.Bus.Publish(bus.Event{Environment: env, Topic: bus.Command, ID: agent})
	}
	if len(tell) < len(ids) {
		r.answered(env, ids)
	}
	return nil
}

// EndLate answers, as the owner of the environment, what cannot be answered in time any more: with late. The owner
// calls it every few seconds.
func (r *Record) EndLate(ctx context.Context, env intent.EnvironmentID) error {
	ended, err := r.c.Store.EndLateAgentCommands(ctx, env)
	r.answered(env, ended)
	return err
}

func (r *Record) answered(env intent.EnvironmentID, ids []uuid.UUID) {
	for _, id := range ids {
		r.c.Bus.Publish(bus.Event{Environment: env, Topic: bus.Answered, ID: id.String()})
	}
}

// Finish deletes answered commands whose outcome is recorded elsewhere, as the owner of their environment.
func (r *Record) Finish(ctx context.Context, env intent.EnvironmentID, ids ...uuid.UUID) error {
	return r.c.Store.FinishAgentCommands(ctx, env, ids)
}

// Agents lists the remote agents of an environment, without those that were removed.
func (r *Record) Agents(ctx context.Context, env intent.EnvironmentID) ([]intent.RemoteAgent, error) {
	return r.c.Store.RemoteAgents(ctx, env)
}

// Lacking returns those of the hashes whose contents have to be put into the record before a command can need them.
func (r *Record) Lacking(ctx context.Context, hashes []string) ([]string, error) {
	return r.c.Store.LackingContents(ctx, hashes)
}

// PutContent stores a content, under its hash, which it returns.
func (r *Record) PutContent(ctx context.Context, content []byte) (hash string, err error) {
	hash = protocol.Hash(content)
	return hash, r.c.Store.PutContent(ctx, hash, content)
}
