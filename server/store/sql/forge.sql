-- name: OutboxAdd :exec
INSERT INTO forge_outbox (environment, kind, topic, payload, created, next) VALUES ($1, $2, $3, $4, $5, $5)
ON CONFLICT (environment, topic) WHERE state = 'waiting'
DO UPDATE SET payload = excluded.payload, round = forge_outbox.round + 1, created = excluded.created, attempts = 0,
              next = LEAST(forge_outbox.next, excluded.next);

-- name: OutboxCompile :many
-- The status of a compile that makes a version. Previews are reported in comments instead.
INSERT INTO forge_outbox (environment, kind, topic, payload, created, next)
SELECT c.environment, 'status', 'status/ordain/' || e.name || '/compile/' || (c.revision->>'commit'),
       jsonb_build_object('commit', c.revision->>'commit', 'context', 'ordain/' || e.name || '/compile', 'path', '/e/' || c.environment || '/runs/' || c.id,
           'state', CASE WHEN c.completed IS NULL THEN 'pending' WHEN c.success THEN 'success' ELSE 'failure' END,
           'description', CASE WHEN c.completed IS NULL THEN 'Compiling' WHEN c.superseded_by IS NOT NULL THEN 'A newer commit took its place'
               WHEN c.cancelled_by <> '' THEN 'Cancelled by ' || left(c.cancelled_by, 60) WHEN NOT c.success THEN 'It does not compile'
               WHEN c.version IS NULL THEN 'It is compiled already' ELSE 'Compiled to version ' || c.version END),
       $2, $2
FROM compile c JOIN environment e ON e.id = c.environment
WHERE c.id = $1 AND c.export AND NOT c.preview AND c.revision IS NOT NULL
  AND (forge_told(c.environment) OR e.settings->>'forge_statuses' IS DISTINCT FROM 'false' AND e.settings->>'forge' IS DISTINCT FROM 'none'
    AND EXISTS (SELECT FROM project_secret s WHERE s.project = e.project AND s.name = 'forge-token'))
ON CONFLICT (environment, topic) WHERE state = 'waiting'
DO UPDATE SET payload = excluded.payload, round = forge_outbox.round + 1, created = excluded.created, attempts = 0,
              next = LEAST(forge_outbox.next, excluded.next)
RETURNING environment;

-- name: DeployStatusGet :one
SELECT version, commit, state, description FROM forge_deploy WHERE environment = $1 FOR UPDATE;

-- name: DeployStatusSet :exec
INSERT INTO forge_deploy (environment, version, commit, state, description) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (environment) DO UPDATE SET version = excluded.version, commit = excluded.commit, state = excluded.state, description = excluded.description;

-- name: ForgeReports :one
-- The token is the environment's own or that of its project.
SELECT (forge_told(e.id) OR e.settings->>'forge_statuses' IS DISTINCT FROM 'false' AND e.settings->>'forge' IS DISTINCT FROM 'none'
    AND EXISTS (SELECT FROM project_secret s WHERE s.project = e.project AND s.name = 'forge-token')) AS told, e.name FROM environment e WHERE e.id = $1;

-- name: OutboxTake :one
-- The oldest work of an environment that is due, unless an older server is doing some of it now. What another process
-- took is left over from a worker that vanished: an environment has one process at a time.
UPDATE forge_outbox SET taken = $3, by_process = true WHERE id = (
    SELECT o.id FROM forge_outbox o
    WHERE o.environment = $1 AND o.state = 'waiting' AND o.next <= $2
      AND NOT EXISTS (SELECT FROM forge_outbox b WHERE b.environment = $1 AND b.state = 'waiting' AND b.taken > $2 AND NOT b.by_process)
    ORDER BY o.next, o.id LIMIT 1 FOR UPDATE)
RETURNING id, environment, kind, topic, round, payload, created, attempts, next, state, problem, done;

-- name: OutboxNext :one
SELECT min(GREATEST(next, CASE WHEN by_process THEN next ELSE coalesce(taken, next) END)) AS next
FROM forge_outbox WHERE environment = $1 AND state = 'waiting';

-- name: OutboxSent :exec
-- Changes nothing when newer work has replaced it in the meantime.
UPDATE forge_outbox SET state = CASE WHEN round = $2 THEN 'sent' ELSE state END, done = CASE WHEN round = $2 THEN $3::timestamptz END,
    problem = CASE WHEN round = $2 THEN '' ELSE problem END, attempts = CASE WHEN round = $2 THEN attempts + 1 ELSE attempts END, taken = NULL, by_process = false
WHERE id = $1 AND state = 'waiting';

-- name: OutboxFailed :exec
UPDATE forge_outbox SET attempts = CASE WHEN round = $2 THEN attempts + 1 ELSE attempts END, taken = NULL, by_process = false, problem = $3,
    next = CASE WHEN round = $2 THEN $4 ELSE next END,
    state = CASE WHEN $5 AND round = $2 THEN 'dead' ELSE state END, done = CASE WHEN $5 AND round = $2 THEN $6::timestamptz END
WHERE id = $1 AND state = 'waiting';

-- name: OutboxDelay :exec
-- The forge asked not to be called for a while.
UPDATE forge_outbox SET next = $2 WHERE environment = $1 AND state = 'waiting' AND next < $2;

-- name: OutboxList :many
SELECT id, environment, kind, topic, round, payload, created, attempts, next, state, problem, done
FROM forge_outbox WHERE environment = $1 ORDER BY state = 'waiting' DESC, coalesce(done, next) DESC, id DESC LIMIT $2;

-- name: OutboxRetry :exec
-- Newer work that is waiting says the same, so the dead one is not needed.
UPDATE forge_outbox o SET state = 'waiting', done = NULL, attempts = 0, next = $3, problem = ''
WHERE o.environment = $1 AND o.id = $2 AND o.state = 'dead'
  AND NOT EXISTS (SELECT FROM forge_outbox b WHERE b.environment = o.environment AND b.topic = o.topic AND b.state = 'waiting');

-- name: OutboxDelete :exec
DELETE FROM forge_outbox WHERE state <> 'waiting' AND done < $1;

-- name: PullList :many
SELECT environment, number, state, title, url, author, fork, trusted, base, head, updated, approved, approved_by, approved_at,
       dryrun, preview_of, problem, comment
FROM pull WHERE environment = $1 ORDER BY state = 'open' DESC, number DESC LIMIT 500;

-- name: PullGet :one
SELECT environment, number, state, title, url, author, fork, trusted, base, head, updated, approved, approved_by, approved_at,
       dryrun, preview_of, problem, comment
FROM pull WHERE environment = $1 AND number = $2;

-- name: PullLock :one
SELECT environment, number, state, title, url, author, fork, trusted, base, head, updated, approved, approved_by, approved_at,
       dryrun, preview_of, problem, comment
FROM pull WHERE environment = $1 AND number = $2 FOR UPDATE;

-- name: PullOfDryRun :one
SELECT environment, number, state, title, url, author, fork, trusted, base, head, updated, approved, approved_by, approved_at,
       dryrun, preview_of, problem, comment
FROM pull WHERE environment = $1 AND dryrun = $2;

-- name: PullSave :exec
INSERT INTO pull (environment, number, state, title, url, author, fork, trusted, base, head, updated, problem)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (environment, number) DO UPDATE SET state = excluded.state, title = excluded.title, url = excluded.url, author = excluded.author,
    fork = excluded.fork, trusted = excluded.trusted, base = excluded.base, head = excluded.head, updated = excluded.updated, problem = excluded.problem;

-- name: PullApprove :exec
UPDATE pull SET approved = $3, approved_by = $4, approved_at = $5 WHERE environment = $1 AND number = $2;

-- name: PullPreview :exec
UPDATE pull SET dryrun = $3, preview_of = $4, problem = '' WHERE environment = $1 AND number = $2;

-- name: PullStale :one
-- The pull request whose preview was compared with another commit than the one that is deployed, or that had no
-- preview for a reason that may have passed; of several, the one that was looked at longest ago. None while a preview
-- is open, so that a push never waits for more than one of these, nor while a release younger than $2 is being
-- deployed.
SELECT p.number
FROM pull p
JOIN version active ON active.environment = p.environment AND active.status = 'active'
LEFT JOIN dryrun d ON d.id = p.dryrun
LEFT JOIN version was ON was.environment = p.environment AND was.number = d.base
WHERE p.environment = $1 AND p.state = 'open' AND (p.trusted OR p.approved = p.head)
  AND CASE WHEN p.preview_of = p.head THEN d.ending IN ('done', 'failed') AND was.provenance->>'commit' IS DISTINCT FROM active.provenance->>'commit'
           ELSE p.problem <> '' END
  AND NOT EXISTS (SELECT FROM pull o JOIN dryrun od ON od.id = o.dryrun WHERE o.environment = $1 AND od.ended IS NULL)
  AND (active.released < $2 OR NOT EXISTS (SELECT FROM resource_state s WHERE s.environment = $1 AND s.orphaned = 0 AND s.status IN ('available', 'deploying')))
ORDER BY d.date NULLS FIRST, p.number LIMIT 1;

-- name: PullComment :exec
UPDATE pull SET comment = $3 WHERE environment = $1 AND number = $2;

-- name: OutboxPullOf :many
-- Queues the comment of the pull request whose preview this dry run is.
INSERT INTO forge_outbox (environment, kind, topic, payload, created, next)
SELECT p.environment, 'comment', 'comment/' || p.number, jsonb_build_object('number', p.number), $2, $2 FROM pull p WHERE p.dryrun = $1
ON CONFLICT (environment, topic) WHERE state = 'waiting'
DO UPDATE SET round = forge_outbox.round + 1, created = excluded.created, attempts = 0, next = LEAST(forge_outbox.next, excluded.next)
RETURNING environment;

-- name: ClearPulls :exec
DELETE FROM pull WHERE environment = $1;

-- name: ClearOutbox :exec
DELETE FROM forge_outbox WHERE environment = $1;

-- name: ClearDeployStatus :exec
DELETE FROM forge_deploy WHERE environment = $1;
