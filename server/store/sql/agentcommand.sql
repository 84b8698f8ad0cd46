-- name: CommandAdd :one
WITH numbered AS (
    UPDATE remote_agent SET last_seq = last_seq + 1
    WHERE environment = $2 AND name = $3 AND state = 'joined' AND NOT EXISTS (SELECT FROM agent_command WHERE id = $1)
    RETURNING last_seq
)
INSERT INTO agent_command (id, environment, agent, seq, action, needs, payload, deadline, subject)
SELECT $1, $2, $3, last_seq, $4, $5, $6, now() + make_interval(secs => $7), $8 FROM numbered
RETURNING seq;

-- name: CommandState :many
SELECT id, environment, agent, sent IS NOT NULL AS sent, answered IS NOT NULL AS answered
FROM agent_command WHERE id = ANY ($1::uuid[]);

-- name: CommandWaiting :many
-- The agents of a replica for which there is something to send.
SELECT DISTINCT c.environment, c.agent AS name, a.connection
FROM agent_command c JOIN remote_agent a ON a.environment = c.environment AND a.name = c.agent
WHERE a.replica = $1 AND a.state = 'joined' AND c.answered IS NULL
  AND (c.sent_on < a.connection AND (c.sent IS NOT NULL OR c.deadline > now())
       OR c.cancelled IS NOT NULL AND c.cancel_on < a.connection);

-- name: CommandClaim :many
-- Marks commands as sent on the newest connections of their agents, in the order in which they were made, at most room
-- for each agent. A command that was never sent is not sent when it is too late.
WITH ready AS (
    SELECT c.id, x.connection
    FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::int[]) AS x(environment, name, connection, room)
    JOIN remote_agent a ON a.environment = x.environment AND a.name = x.name AND a.connection = x.connection
         AND a.replica = $1 AND a.state = 'joined'
    CROSS JOIN LATERAL (
        SELECT c.id FROM agent_command c
        WHERE c.environment = x.environment AND c.agent = x.name AND c.answered IS NULL AND c.sent_on < x.connection
          AND (c.sent IS NOT NULL OR c.deadline > now())
        ORDER BY c.seq LIMIT x.room
    ) AS c
)
UPDATE agent_command c SET sent = COALESCE(c.sent, now()), sent_on = ready.connection
FROM ready WHERE c.id = ready.id AND c.answered IS NULL
RETURNING c.id, c.environment, c.agent, c.seq, c.action, c.needs, c.payload,
    CASE WHEN c.cancelled IS NULL
         THEN GREATEST(0, EXTRACT(epoch FROM c.deadline - clock_timestamp()) * 1000)::bigint ELSE 0 END AS left_ms;

-- name: CommandClaimCancelled :many
UPDATE agent_command c SET cancel_on = x.connection
FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS x(environment, name, connection)
WHERE c.environment = x.environment AND c.agent = x.name AND c.answered IS NULL AND c.cancelled IS NOT NULL
  AND c.sent IS NOT NULL AND c.cancel_on < x.connection
RETURNING c.id, c.environment, c.agent;

-- name: CommandUnclaim :exec
-- After a claim whose outcome is not known: what the connections have not got is claimed again.
UPDATE agent_command c SET sent_on = 0, cancel_on = 0
FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS x(environment, name, connection)
WHERE c.environment = x.environment AND c.agent = x.name AND c.answered IS NULL AND c.sent_on = x.connection
  AND c.id <> ALL ($4::uuid[]);

-- name: CommandAnswer :many
-- Only a command that was sent to this agent has its answer recorded, and only the first one.
UPDATE agent_command c SET answered = now(), status = x.status, answer = x.answer, payload = NULL
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bytea[]) AS x(id, environment, agent, status, answer)
WHERE c.id = x.id AND c.environment = x.environment AND c.agent = x.agent AND c.sent IS NOT NULL AND c.answered IS NULL
RETURNING c.id;

-- name: CommandAnswers :many
SELECT id, agent, status, answer FROM agent_command
WHERE environment = $1 AND id = ANY ($2::uuid[]) AND answered IS NOT NULL;

-- name: CommandUnfinished :many
-- All commands of an environment that its owner has not finished.
SELECT id, agent, seq, action, subject, made, deadline, sent, answered, status FROM agent_command
WHERE environment = $1 ORDER BY agent, seq;

-- name: CommandCancel :many
-- What was never sent ends at once, and the others are marked.
UPDATE agent_command SET cancelled = COALESCE(cancelled, now()),
    answered = CASE WHEN sent IS NULL THEN now() END,
    status = CASE WHEN sent IS NULL THEN 'cancelled' ELSE '' END,
    payload = CASE WHEN sent IS NULL THEN NULL ELSE payload END
WHERE environment = $1 AND id = ANY ($2::uuid[]) AND answered IS NULL
RETURNING id, agent, answered IS NOT NULL AS answered;

-- name: CommandEndLate :many
-- Ends what cannot be answered in time any more: what was not sent; after some patience, what was sent to an agent that
-- is gone; and after very much, what an agent never answered.
UPDATE agent_command c SET answered = now(), status = 'late', payload = NULL
WHERE c.environment = $1 AND c.answered IS NULL AND c.deadline < now()
  AND (c.sent IS NULL OR c.deadline < now() - make_interval(secs => 20 * $2)
       OR c.deadline < now() - make_interval(secs => $2) AND NOT EXISTS (
       SELECT FROM remote_agent a JOIN replica r ON r.id = a.replica
       WHERE a.environment = c.environment AND a.name = c.agent AND r.seen > now() - make_interval(secs => $2)))
RETURNING c.id;

-- name: CommandFinish :exec
DELETE FROM agent_command WHERE environment = $1 AND id = ANY ($2::uuid[]) AND answered IS NOT NULL;

-- name: ClearCommands :exec
DELETE FROM agent_command WHERE environment = $1;

-- name: ContentLacking :many
-- Those of the contents that are not here; the others count as used now.
WITH used AS (
    UPDATE agent_content SET used = now() WHERE hash = ANY ($1::text[]) AND used < now() - interval '1 hour'
)
SELECT h AS hash FROM unnest($1::text[]) AS h WHERE NOT EXISTS (SELECT FROM agent_content c WHERE c.hash = h);

-- name: ContentAdd :exec
INSERT INTO agent_content (hash, size) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING;

-- name: ContentPartAdd :exec
INSERT INTO agent_content_part (hash, number, data) VALUES ($1, $2, $3);

-- name: ContentSize :one
SELECT size FROM agent_content WHERE hash = $1;

-- name: ContentPart :one
SELECT data FROM agent_content_part WHERE hash = $1 AND number = $2;

-- name: ContentForget :exec
-- Contents that were not used for a while, and that no command needs.
DELETE FROM agent_content c WHERE used < $1
AND NOT EXISTS (SELECT FROM agent_command m WHERE m.answered IS NULL AND c.hash = ANY (m.needs));
