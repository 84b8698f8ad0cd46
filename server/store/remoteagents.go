package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// replicaSilent is how long a replica may be silent before the agents that are connected to it count as disconnected.
const replicaSilent = 30 * time.Second

// AgentAuthority returns the certificate and the sealed key of the authority of agents. If there is none yet, it is the
// one that is passed.
func (s *Store) AgentAuthority(
	ctx context.Context, freshCertificate, freshSealed []byte,
) (certificate, sealed []byte, err error) {
	err = s.write(ctx, "store.AgentAuthority", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.AuthorityAdd, freshCertificate, freshSealed); err != nil {
			return err
		}
		return tx.QueryRow(ctx, statements.AuthorityGet).Scan(&certificate, &sealed)
	})
	return certificate, sealed, err
}

type joinTokenRow struct {
	ID          uuid.UUID
	Environment uuid.UUID
	Agent       string
	Made        time.Time
	MadeBy      string
	Expires     time.Time
	Used        *time.Time
	UsedFrom    string
	Revoked     *time.Time
	Hash        string
}

func (r joinTokenRow) value() (intent.JoinToken, error) {
	return intent.JoinToken{
		ID: r.ID, Environment: r.Environment, Agent: r.Agent, Made: r.Made.UTC(), MadeBy: r.MadeBy,
		Expires: r.Expires.UTC(), Used: utc(r.Used), UsedFrom: r.UsedFrom, Revoked: utc(r.Revoked),
	}, nil
}

// AddJoinToken stores a join token with the hash of its secret.
func (s *Store) AddJoinToken(ctx context.Context, t intent.JoinToken, hash string) error {
	return s.write(ctx, "store.JoinToken", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.JoinTokenAdd, t.ID, t.Environment, cleanText(t.Agent), hash, t.Made,
			cleanText(t.MadeBy), t.Expires)
		return err
	})
}

// JoinTokens lists the join tokens of an environment, the newest first, also those that ended lately.
func (s *Store) JoinTokens(ctx context.Context, env intent.EnvironmentID) ([]intent.JoinToken, error) {
	return listed(ctx, s, "store.JoinTokens", joinTokenRow.value, statements.JoinTokenList, env, nil)
}

// JoinTokensWaiting counts the join tokens of an environment that can be used.
func (s *Store) JoinTokensWaiting(ctx context.Context, env intent.EnvironmentID, now time.Time) (n int, err error) {
	err = s.read(ctx, "store.JoinTokens", func(q querier) error {
		return q.QueryRow(ctx, statements.JoinTokenWaiting, env, now).Scan(&n)
	})
	return n, err
}

// JoinToken returns a join token, and the hash of its secret.
func (s *Store) JoinToken(ctx context.Context, id uuid.UUID) (out intent.JoinToken, hash string, err error) {
	err = s.read(ctx, "store.JoinToken", func(q querier) error {
		row, err := one[joinTokenRow](ctx, q, statements.JoinTokenList, nil, id)
		if err == nil {
			out, err = row.value()
			hash = row.Hash
		}
		return err
	})
	return out, hash, err
}

// RevokeJoinToken revokes a join token that can still be used; NotFound for others.
func (s *Store) RevokeJoinToken(ctx context.Context, env intent.EnvironmentID, id uuid.UUID, at time.Time) error {
	return s.write(ctx, "store.JoinToken", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.JoinTokenRevoke, env, id, at))
	})
}

// AgentCertificate is what the record knows of a certificate of an agent.
type AgentCertificate struct {
	Serial  string
	Made    time.Time
	Expires time.Time
}

// Joining is the use of a join token.
type Joining struct {
	Token   uuid.UUID
	Hash    string // of its secret
	From    string // address
	Program string
	At      time.Time
}

// JoinAgent uses a join token up, and records the agent that it makes with the certificate that issue returns. All
// certificates that the agent had end. NotFound: there is no such token that can be used.
func (s *Store) JoinAgent(
	ctx context.Context, j Joining,
	issue func(env intent.EnvironmentID, agent string) (AgentCertificate, error),
) (env intent.EnvironmentID, agent string, err error) {
	err = s.write(ctx, "store.JoinToken", func(tx pgx.Tx) error {
		row := tx.QueryRow(ctx, statements.JoinTokenUse, j.Token, j.Hash, j.At, cleanText(j.From))
		if err := row.Scan(&env, &agent); err != nil {
			return err
		}
		c, err := issue(env, agent)
		if err != nil {
			return err
		}
		var b pgx.Batch
		b.Queue(statements.RemoteAgentJoin, env, agent, j.At, cleanText(j.Program))
		b.Queue(statements.CertificateRevoke, env, agent, j.At)
		b.Queue(statements.CertificateAdd, c.Serial, env, agent, c.Made, c.Expires)
		return tx.SendBatch(ctx, &b).Close()
	})
	return env, agent, err
}

// AddAgentCertificate records another certificate of an agent that has joined.
func (s *Store) AddAgentCertificate(
	ctx context.Context, env intent.EnvironmentID, agent string, c AgentCertificate,
) error {
	return s.write(ctx, "store.AddAgentCertificate", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.CertificateAdd, c.Serial, env, agent, c.Made, c.Expires)
		return err
	})
}

// CertificateState is whether an agent may connect with a certificate.
type CertificateState struct {
	State   intent.RemoteState // of the agent
	Revoked bool
	Made    time.Time
	Expires time.Time
}

// AgentCertificate returns the state of a certificate of an agent.
func (s *Store) AgentCertificate(
	ctx context.Context, serial string, env intent.EnvironmentID, agent string,
) (out CertificateState, err error) {
	err = s.read(ctx, "store.AgentCertificate", func(q querier) error {
		out, err = one[CertificateState](ctx, q, statements.CertificateState, serial, env, agent)
		return err
	})
	return out, err
}

// EndRemoteAgent revokes or removes an agent, with its certificates and the commands that it has not answered. It
// returns the ids of these commands.
func (s *Store) EndRemoteAgent(
	ctx context.Context, env intent.EnvironmentID, agent string, state intent.RemoteState, by string, at time.Time,
) (ended []uuid.UUID, err error) {
	err = s.write(ctx, "store.RemoteAgent", func(tx pgx.Tx) error {
		var now string
		row := tx.QueryRow(ctx, statements.RemoteAgentEnd, env, agent, string(state), at, cleanText(by))
		if err := row.Scan(&now); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statements.CertificateRevoke, env, agent, at); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, statements.CommandsEnd, env, agent)
		if err != nil {
			return err
		}
		ended, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return ended, err
}

type remoteAgentRow struct {
	Environment uuid.UUID
	Name        string
	State       string
	Joined      time.Time
	Ended       *time.Time
	EndedBy     string
	Program     string
	Machine     json.RawMessage
	Since       *time.Time
	Connected   bool
	Replica     string
	Expires     *time.Time
	Waiting     int
	Problem     string
	ProblemAt   *time.Time
}

func (r remoteAgentRow) value() (intent.RemoteAgent, error) {
	a := intent.RemoteAgent{
		Environment: r.Environment, Name: r.Name, State: intent.RemoteState(r.State), Joined: r.Joined.UTC(),
		Ended: utc(r.Ended), EndedBy: r.EndedBy, Program: r.Program, Connected: r.Connected, Since: utc(r.Since),
		Expires: utc(r.Expires), Waiting: r.Waiting, Problem: r.Problem,
		ProblemAt: utc(r.ProblemAt),
	}
	if r.Connected {
		a.Replica = r.Replica
	}
	return a, json.Unmarshal(r.Machine, &a.Machine)
}

// RemoteAgents lists the remote agents of an environment by name, without those that were removed.
func (s *Store) RemoteAgents(ctx context.Context, env intent.EnvironmentID) ([]intent.RemoteAgent, error) {
	return listed(ctx, s, "store.RemoteAgents", remoteAgentRow.value, statements.RemoteAgentList, env,
		replicaSilent.Seconds())
}

// AgentConnection is a connection of an agent: a newer one has a greater number.
type AgentConnection struct {
	Environment intent.EnvironmentID
	Name        string
	Connection  int64
	State       string // of the agent
}

// ConnectAgent records that an agent has connected to this replica with a certificate, and returns the number of the
// connection. NotFound: the agent may not connect with it any more.
func (s *Store) ConnectAgent(
	ctx context.Context, env intent.EnvironmentID, agent, serial, program string, machine intent.RemoteMachine,
) (connection int64, err error) {
	coded, err := json.Marshal(machine)
	if err == nil {
		coded, err = cleanJSON(coded)
	}
	if err != nil {
		return 0, translate("store.ConnectAgent", err)
	}
	err = s.state(ctx, "store.ConnectAgent", func(q querier) error {
		row := q.QueryRow(ctx, statements.RemoteAgentConnect, env, agent, s.replica, cleanText(program), coded, serial)
		return row.Scan(&connection)
	})
	return connection, err
}

// DisconnectAgents records that connections have ended. Newer connections of the same agents stay.
func (s *Store) DisconnectAgents(ctx context.Context, ended []AgentConnection) error {
	envs, names, connections := columnsOf(ended)
	return s.state(ctx, "store.DisconnectAgents", func(q querier) error {
		_, err := q.Exec(ctx, statements.RemoteAgentDisconnect, envs, names, connections)
		return err
	})
}

// NoteAgentProblem records what went wrong with an agent last, for people.
func (s *Store) NoteAgentProblem(ctx context.Context, env intent.EnvironmentID, agent, problem string) error {
	return s.state(ctx, "store.NoteAgentProblem", func(q querier) error {
		_, err := q.Exec(ctx, statements.RemoteAgentProblem, env, agent, cleanText(problem))
		return err
	})
}

// ConnectedAgents lists the connections that the record says this replica has.
func (s *Store) ConnectedAgents(ctx context.Context) (out []AgentConnection, err error) {
	err = s.read(ctx, "store.ConnectedAgents", func(q querier) error {
		out, err = many[AgentConnection](ctx, q, statements.RemoteAgentOf, s.replica)
		return err
	})
	return out, err
}

// LookAtAgents returns the newest connections of some agents, and their states. Only the environment and the name of
// those that are passed count.
func (s *Store) LookAtAgents(ctx context.Context, which []AgentConnection) (out []AgentConnection, err error) {
	envs, names, _ := columnsOf(which)
	err = s.read(ctx, "store.LookAtAgents", func(q querier) error {
		out, err = many[AgentConnection](ctx, q, statements.RemoteAgentLook, envs, names)
		return err
	})
	return out, err
}

func columnsOf(all []AgentConnection) (envs []uuid.UUID, names []string, connections []int64) {
	for _, c := range all {
		envs, names, connections = append(envs, c.Environment), append(names, c.Name), append(connections, c.Connection)
	}
	return envs, names, connections
}

// ForgetAgents removes join tokens that ended before a time, certificates that expired before it, removed agents that
// have no certificate any more, and contents that were not used since.
func (s *Store) ForgetAgents(ctx context.Context, endedBefore, unusedSince time.Time) error {
	return s.write(ctx, "store.ForgetAgents", func(tx pgx.Tx) error {
		for _, sql := range []string{statements.JoinTokenForget, statements.CertificateForget} {
			if _, err := tx.Exec(ctx, sql, endedBefore); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, statements.RemoteAgentForget); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statements.ContentForget, unusedSince)
		return err
	})
}
