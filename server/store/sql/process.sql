-- name: ProcessLockResource :exec
-- Whoever schedules, takes or ends a process of a resource holds this lock until its transaction ends.
SELECT pg_advisory_xact_lock($1, hashtext($2));

-- name: ProcessState :one
-- The state of a resource without a table of its own.
INSERT INTO process_resource (type, id, state) VALUES ($1, $2, '')
ON CONFLICT (type, id) DO UPDATE SET state = process_resource.state RETURNING state;

-- name: ProcessSetState :exec
UPDATE process_resource SET state = $3 WHERE type = $1 AND id = $2;

-- name: ProcessAdd :one
-- Merged with a single one that waits: that takes the newer data, and starts anew when it had failed.
INSERT INTO process (name, resource_type, resource_id, environment, project, from_state, during_state, done_state,
    failed_state, cancelled_state, most, priority, queue, single, data, made_by, next, seconds, deadline)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, now() + make_interval(secs => $17),
    $18, now() + make_interval(secs => $18))
ON CONFLICT (name, resource_type, resource_id) WHERE state = 'waiting' AND single
DO UPDATE SET data = excluded.data, next = LEAST(process.next, excluded.next), attempts = 0, deadline = excluded.deadline
RETURNING id, next <= now() AND (queued IS NULL OR NOT EXISTS (
    SELECT FROM river_job j WHERE j.id = process.job AND j.state = 'available')) AS due;

-- name: ProcessQueued :exec
UPDATE process SET job = $2, queued = now() WHERE id = $1;

-- name: ProcessResourceOf :one
SELECT resource_type, resource_id FROM process WHERE id = $1;

-- name: ProcessLock :one
-- A process, with the earlier process of its resource that it waits for.
SELECT p.id, p.name, p.resource_type, p.resource_id, p.environment, '' AS environment_name, p.project, p.state, p.from_state, p.during_state,
    p.done_state, p.phase, p.attempts, p.most, p.priority, p.problem, p.reason, p.data, p.made_by, p.made, p.begun, p.next,
    p.deadline, p.ended, p.worker, p.lease, p.fence, p.cancel,
    coalesce((SELECT o.id FROM process o WHERE o.resource_type = p.resource_type AND o.resource_id = p.resource_id AND o.id <> p.id
        AND (o.state = 'running' OR o.state = 'waiting' AND o.id < p.id) ORDER BY o.state, o.id LIMIT 1), 0) AS waits_for,
    p.failed_state, p.cancelled_state, p.single, p.queue, p.next <= now() AS due, p.deadline <= now() IS TRUE AS late
FROM process p WHERE p.id = $1 FOR UPDATE;

-- name: ProcessOpenOf :many
-- The open processes of a resource, apart from one.
SELECT id, name, state, during_state FROM process
WHERE resource_type = $1 AND resource_id = $2 AND id <> $3 AND state IN ('waiting', 'running') ORDER BY id;

-- name: ProcessTake :one
UPDATE process SET state = 'running', fence = fence + 1, attempts = attempts + 1, worker = $2, begun = coalesce(begun, now()),
    lease = now() + make_interval(secs => $3), cancel = ''
WHERE id = $1 RETURNING fence, coalesce(extract(epoch FROM deadline - now()), 0)::float8;

-- name: ProcessBeat :many
-- Renews the leases of what a worker runs, and returns those that are still its own.
UPDATE process p SET lease = now() + make_interval(secs => $3)
FROM unnest($1::bigint[], $2::bigint[]) AS mine (id, fence)
WHERE p.id = mine.id AND p.fence = mine.fence AND p.state = 'running' RETURNING p.id, p.fence, p.cancel;

-- name: ProcessHeld :one
-- Whether an attempt still has its process. The lock keeps everybody from taking it before what is being written is there.
SELECT id FROM process WHERE id = $1 AND fence = $2 AND state = 'running' FOR SHARE;

-- name: ProcessPhase :exec
UPDATE process SET phase = $2, data = $3 WHERE id = $1;

-- name: ProcessEnd :exec
UPDATE process SET state = $2, reason = $3, problem = $4, data = coalesce($5, data), ended = now(), lease = NULL, fence = fence + 1
WHERE id = $1;

-- name: ProcessAgain :exec
-- Back to those that wait. $5: begin with the first handler. $6: count attempts anew (0), as they are (1), or without
-- the last (2). $7: the time for the whole begins anew.
UPDATE process SET state = 'waiting', reason = '', problem = $2, data = coalesce($3, data), next = now() + make_interval(secs => $4),
    phase = CASE WHEN $5 THEN '' ELSE phase END,
    attempts = CASE $6::integer WHEN 0 THEN 0 WHEN 1 THEN attempts ELSE GREATEST(attempts - 1, 0) END,
    deadline = CASE WHEN $7 THEN now() + make_interval(secs => seconds) ELSE deadline END,
    lease = NULL, ended = NULL, cancel = '', fence = fence + 1, queued = NULL
WHERE id = $1;

-- name: ProcessAskCancel :exec
UPDATE process SET cancel = $2 WHERE id = $1 AND state = 'running' AND cancel = '';

-- name: ProcessLost :many
-- Processes whose worker did not renew its lease, and those whose time is over.
SELECT id FROM process WHERE state = 'running' AND lease < now()
UNION SELECT id FROM process WHERE state = 'waiting' AND deadline < now() LIMIT 100;

-- name: ProcessIsLost :one
SELECT state = 'running' AND lease < now() OR state = 'waiting' AND deadline < now() IS TRUE FROM process WHERE id = $1;

-- name: ProcessDue :many
-- Processes that could run, and that no job stands for: their time has come, or a job was lost.
SELECT p.id, p.name, p.priority, p.queue FROM process p
WHERE p.state = 'waiting' AND p.next <= now()
  AND NOT EXISTS (SELECT FROM process o WHERE o.resource_type = p.resource_type AND o.resource_id = p.resource_id AND o.id <> p.id
        AND (o.state = 'running' OR o.state = 'waiting' AND o.id < p.id))
  AND (p.queued IS NULL OR p.queued < now() - interval '5 seconds'
       AND NOT EXISTS (SELECT FROM river_job j WHERE j.id = p.job AND j.state = 'available'))
ORDER BY p.priority, p.next, p.id LIMIT 200 FOR UPDATE OF p SKIP LOCKED;

-- name: ProcessNextOf :many
-- The process of a resource that can run now.
SELECT id, name, priority, queue FROM process
WHERE resource_type = $1 AND resource_id = $2 AND state = 'waiting' AND next <= now() ORDER BY id LIMIT 1;

-- name: ProcessRows :list
-- $1: an environment; NULL: all.
SELECT p.id, p.name, p.resource_type, p.resource_id, p.environment, coalesce(e.name, '') AS environment_name, p.project, p.state,
    p.from_state, p.during_state, p.done_state, p.phase, p.attempts, p.most, p.priority, p.problem, p.reason, p.data, p.made_by,
    p.made, p.begun, p.next, p.deadline, p.ended, p.worker, p.lease, p.fence, p.cancel,
    coalesce((SELECT o.id FROM process o WHERE p.state = 'waiting' AND o.resource_type = p.resource_type AND o.resource_id = p.resource_id
        AND o.id <> p.id AND (o.state = 'running' OR o.state = 'waiting' AND o.id < p.id) ORDER BY o.state, o.id LIMIT 1), 0) AS waits_for,
    p.next <= now() AS due
FROM process p LEFT JOIN environment e ON e.id = p.environment
WHERE ($1::uuid IS NULL OR p.environment = $1);

-- name: ProcessCounts :one
SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'running') AS running,
    count(*) FILTER (WHERE state = 'dead') AS dead
FROM process WHERE state IN ('waiting', 'running', 'dead') AND ($1::uuid IS NULL OR environment = $1);

-- name: ProcessClean :exec
-- Dead ones stay until a person has looked at them, or for $2 seconds.
DELETE FROM process WHERE state IN ('done', 'cancelled') AND ended < now() - make_interval(secs => $1)
    OR state = 'dead' AND ended < now() - make_interval(secs => $2);

-- name: ProcessForges :many
-- The environments with messages for their forge for which no process is open: older servers wrote them.
SELECT DISTINCT o.environment FROM forge_outbox o
WHERE o.state = 'waiting' AND o.next <= now() AND NOT EXISTS (
    SELECT FROM process p WHERE p.resource_type = 'forge' AND p.resource_id = o.environment::text AND p.state IN ('waiting', 'running'));
