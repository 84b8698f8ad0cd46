-- name: AuthorityAdd :exec
INSERT INTO agent_authority (certificate, sealed) VALUES ($1, $2) ON CONFLICT (one) DO NOTHING;

-- name: AuthorityGet :one
SELECT certificate, sealed FROM agent_authority;

-- name: JoinTokenAdd :exec
INSERT INTO agent_join_token (id, environment, agent, hash, made, made_by, expires) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: JoinTokenList :many
-- Of an environment, or the one with an id.
SELECT id, environment, agent, made, made_by, expires, used, used_from, revoked, hash FROM agent_join_token
WHERE environment = COALESCE($1::uuid, environment) AND id = COALESCE($2::uuid, id) ORDER BY made DESC, id;

-- name: JoinTokenWaiting :one
SELECT count(*)::int FROM agent_join_token WHERE environment = $1 AND used IS NULL AND revoked IS NULL AND expires > $2;

-- name: JoinTokenRevoke :exec
UPDATE agent_join_token SET revoked = $3 WHERE environment = $1 AND id = $2 AND used IS NULL AND revoked IS NULL;

-- name: JoinTokenUse :one
UPDATE agent_join_token SET used = $3, used_from = $4
WHERE id = $1 AND hash = $2 AND used IS NULL AND revoked IS NULL AND expires > $3
RETURNING environment, agent;

-- name: JoinTokenForget :exec
DELETE FROM agent_join_token WHERE COALESCE(used, revoked, expires) < $1;

-- name: RemoteAgentJoin :exec
INSERT INTO remote_agent (environment, name, state, joined, program) VALUES ($1, $2, 'joined', $3, $4)
ON CONFLICT (environment, name) DO UPDATE
SET state = 'joined', joined = excluded.joined, program = excluded.program, ended = NULL, ended_by = '',
    connection = remote_agent.connection + 1, replica = NULL, -- ends the connection that the agent had
    problem = '', problem_at = NULL;

-- name: CertificateAdd :exec
INSERT INTO agent_certificate (serial, environment, agent, made, expires) VALUES ($1, $2, $3, $4, $5);

-- name: CertificateRevoke :exec
UPDATE agent_certificate SET revoked = $3 WHERE environment = $1 AND agent = $2 AND revoked IS NULL;

-- name: CertificateState :one
SELECT a.state, c.revoked IS NOT NULL AS revoked, c.made, c.expires
FROM agent_certificate c JOIN remote_agent a ON a.environment = c.environment AND a.name = c.agent
WHERE c.serial = $1 AND c.environment = $2 AND c.agent = $3;

-- name: CertificateForget :exec
DELETE FROM agent_certificate WHERE expires < $1;

-- name: RemoteAgentForget :exec
DELETE FROM remote_agent a WHERE state = 'removed'
AND NOT EXISTS (SELECT FROM agent_certificate c WHERE c.environment = a.environment AND c.agent = a.name);

-- name: RemoteAgentEnd :one
UPDATE remote_agent SET state = $3, ended = $4, ended_by = $5 WHERE environment = $1 AND name = $2 AND state <> 'removed'
RETURNING state;

-- name: CommandsEnd :many
-- Ends the commands of an agent that is revoked or removed.
UPDATE agent_command SET answered = now(), status = 'lost', payload = NULL
WHERE environment = $1 AND agent = $2 AND answered IS NULL RETURNING id;

-- name: RemoteAgentList :many
SELECT a.environment, a.name, a.state, a.joined, a.ended, a.ended_by, a.program, a.machine, a.since, a.problem, a.problem_at,
       a.replica IS NOT NULL AND EXISTS (
           SELECT FROM replica r WHERE r.id = a.replica AND r.seen > now() - make_interval(secs => $2)) AS connected,
       COALESCE((SELECT r.name FROM replica r WHERE r.id = a.replica), '') AS replica,
       (SELECT max(c.expires) FROM agent_certificate c
        WHERE c.environment = a.environment AND c.agent = a.name AND c.revoked IS NULL) AS expires,
       (SELECT count(*) FROM agent_command c
        WHERE c.environment = a.environment AND c.agent = a.name AND c.answered IS NULL)::int AS waiting
FROM remote_agent a WHERE a.environment = $1 AND a.state <> 'removed' ORDER BY a.name;

-- name: RemoteAgentConnect :one
-- The newest connection counts: what another replica still does for an older one is refused by its number.
UPDATE remote_agent SET connection = connection + 1, replica = $3, since = now(), program = $4, machine = $5
WHERE environment = $1 AND name = $2 AND state = 'joined'
  AND EXISTS (SELECT FROM agent_certificate WHERE serial = $6 AND revoked IS NULL)
RETURNING connection;

-- name: RemoteAgentDisconnect :exec
UPDATE remote_agent a SET replica = NULL, since = now()
FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS x(environment, name, connection)
WHERE a.environment = x.environment AND a.name = x.name AND a.connection = x.connection AND a.replica IS NOT NULL;

-- name: RemoteAgentProblem :exec
UPDATE remote_agent SET problem = $3, problem_at = now() WHERE environment = $1 AND name = $2;

-- name: RemoteAgentOf :many
-- The agents that are connected to a replica, or were.
SELECT environment, name, connection, state FROM remote_agent WHERE replica = $1;

-- name: RemoteAgentLook :many
SELECT a.environment, a.name, a.connection, a.state
FROM unnest($1::uuid[], $2::text[]) AS x(environment, name) JOIN remote_agent a USING (environment, name);
