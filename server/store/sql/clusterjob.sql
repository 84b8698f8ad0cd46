-- name: ClusterJobAdd :one
INSERT INTO cluster_job (id, cluster, number, action, state, goal, prior, at, made_by, total)
SELECT $1, $2, 1 + COALESCE((SELECT max(number) FROM cluster_job WHERE cluster = $2), 0), $3, 'running', $4, $5, $6, $7, $8
RETURNING number;

-- name: ClusterJobRows :many
SELECT j.id, j.cluster, j.number, j.action, j.state, j.goal, j.prior, j.at, j.made_by, j.made, j.ended, j.total, j.problem,
    t.done, t.failed
FROM cluster_job j CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'complete') AS done, count(*) FILTER (WHERE state = 'failed') AS failed
    FROM cluster_task WHERE job = j.id
) t
WHERE j.cluster = $1 AND ($2::uuid IS NULL OR j.id = $2) AND ($3::int IS NULL OR j.number = $3)
ORDER BY j.number DESC LIMIT $4;

-- name: ClusterJobGet :one
SELECT id, cluster, number, action, state, goal, prior, at, made_by, made, ended, total, problem, 0 AS done, 0 AS failed
FROM cluster_job WHERE id = $1;

-- name: ClusterJobEnd :exec
UPDATE cluster_job SET state = $2, ended = now(), problem = $3 WHERE id = $1 AND state = 'running';

-- name: ClusterJobLock :exec
SELECT FROM cluster_job WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE;

-- name: ClusterJobOpen :one
-- How many tasks of a job are not at their end, and how many failed.
SELECT count(*) FILTER (WHERE state IN ('waiting', 'ready')) AS waiting, count(*) FILTER (WHERE state = 'running') AS running,
    count(*) FILTER (WHERE state = 'failed') AS failed, count(*) FILTER (WHERE state = 'dropped') AS dropped,
    COALESCE((SELECT problem FROM cluster_task f WHERE f.job = $1 AND f.state = 'failed' ORDER BY ended LIMIT 1), '') AS problem
FROM cluster_task WHERE job = $1;

-- name: ClusterJobDrop :exec
UPDATE cluster_task SET state = 'dropped', ended = now() WHERE job = ANY ($1::uuid[]) AND state IN ('waiting', 'ready');

-- name: ClusterTaskGroupAdd :exec
INSERT INTO cluster_task_group (job, name, open) VALUES ($1, $2, $3);

-- name: ClusterTaskRows :many
SELECT id, job, number, cluster, project, node, service, action, provider, needs, after, state, attempts, config, replace,
    NULLIF(not_before, '-infinity') AS not_before, fence, lease_to, taken_by, started, ended,
    CASE WHEN $3 THEN output ELSE '' END AS output, problem
FROM cluster_task WHERE job = $1 AND ($2::int IS NULL OR number = $2) ORDER BY number;

-- name: ClusterJobLast :many
-- The newest job of a cluster, and whether tasks of it are not at their end.
SELECT j.id, j.cluster, j.number, j.action, j.state, j.goal, j.prior, j.at, j.made_by, j.made, j.ended, j.total, j.problem,
    0 AS done, 0 AS failed,
    EXISTS (SELECT FROM cluster_task t WHERE t.job = j.id AND t.state IN ('waiting', 'ready', 'running')) AS open
FROM cluster_job j WHERE j.cluster = $1 ORDER BY j.number DESC LIMIT 1;

-- name: ClusterTaskOf :many
-- Tasks that may be worked on, without their output.
SELECT id, job, number, cluster, project, node, service, action, provider, needs, after, state, attempts, config, replace,
    NULLIF(not_before, '-infinity') AS not_before, fence, lease_to, taken_by, started, ended, '' AS output, problem
FROM cluster_task WHERE id = ANY ($1::uuid[]);

-- name: ClusterTaskTake :many
-- Takes ready tasks of a project, at most one for each machine, and no more for each provider than it may have. Clusters
-- take turns: the first tasks of each come before the second ones. Locked machines are skipped.
-- What is materialized is read once: as a part of the whole it would be read for each task that is ready.
WITH busy AS MATERIALIZED (
    SELECT provider, count(*) AS n FROM cluster_task WHERE project = $1 AND state = 'running' AND action IN ('create', 'delete') GROUP BY provider
), own AS MATERIALIZED (
    SELECT id, job, cluster, node, number, provider, action FROM cluster_task
    WHERE project = $1 AND state = 'ready' AND not_before <= now()
), ready AS (
    SELECT t.id, t.cluster, t.node, t.number, t.provider, t.action
    FROM own t JOIN cluster c ON c.id = t.cluster AND NOT c.paused
    JOIN cluster_job j ON j.id = t.job AND j.cluster = t.cluster AND j.state = 'running'
    WHERE NOT EXISTS (SELECT FROM cluster_task r WHERE r.cluster = t.cluster AND r.node = t.node AND r.state = 'running')
), first AS (
    SELECT DISTINCT ON (cluster, node) id, cluster, node, number, provider, action FROM ready ORDER BY cluster, node, number
), turns AS (
    SELECT id, cluster, node, row_number() OVER (PARTITION BY cluster ORDER BY number) AS turn, action,
        row_number() OVER (PARTITION BY first.provider, action IN ('create', 'delete') ORDER BY number) + COALESCE(busy.n, 0) AS nth
    FROM first LEFT JOIN busy ON busy.provider = first.provider
), chosen AS (
    SELECT turns.id FROM turns JOIN cluster_node n ON n.cluster = turns.cluster AND n.number = turns.node
    WHERE turns.action NOT IN ('create', 'delete') OR turns.nth <= $5
    ORDER BY turns.turn, turns.id LIMIT $2
    FOR UPDATE OF n SKIP LOCKED
)
UPDATE cluster_task t SET state = 'running', fence = fence + 1, attempts = attempts + 1, taken_by = $3, started = now(),
    lease_to = now() + make_interval(secs => $4), problem = ''
FROM chosen WHERE t.id = chosen.id AND t.state = 'ready'
RETURNING t.id, t.job, t.number, t.cluster, t.project, t.node, t.service, t.action, t.provider, t.needs, t.after, t.state,
    t.attempts, t.config, t.replace, NULLIF(t.not_before, '-infinity') AS not_before, t.fence, t.lease_to, t.taken_by,
    t.started, t.ended, '' AS output, t.problem;

-- name: ClusterNodeBegun :exec
-- From now on there may be a machine.
UPDATE cluster_node n SET state = 'made', made = COALESCE(made, now())
FROM unnest($1::uuid[], $2::int[]) AS x(cluster, number) WHERE n.cluster = x.cluster AND n.number = x.number AND n.state = 'planned';

-- name: ClusterTaskRenew :many
UPDATE cluster_task t SET lease_to = now() + make_interval(secs => $4)
FROM unnest($1::uuid[], $2::bigint[]) AS x(id, fence)
WHERE t.id = x.id AND t.fence = x.fence AND t.state = 'running' AND t.taken_by = $3 AND t.project = $5
  AND EXISTS (SELECT FROM cluster_job j WHERE j.id = t.job AND j.state = 'running')
RETURNING t.id;

-- name: ClusterTaskOutput :exec
UPDATE cluster_task t SET output = x.output FROM unnest($1::uuid[], $2::bigint[], $3::text[]) AS x(id, fence, output)
WHERE t.id = x.id AND t.fence = x.fence AND t.state = 'running';

-- name: ClusterTaskJobLock :exec
-- The jobs of tasks are locked in order, so that two of these transactions cannot wait for each other.
SELECT FROM cluster_job WHERE id IN (SELECT job FROM cluster_task WHERE id = ANY ($1::uuid[])) ORDER BY id FOR UPDATE;

-- name: ClusterTaskEnd :many
-- What would be tried again is dropped if its job has ended.
UPDATE cluster_task t SET state = x.becomes, lease_to = NULL, output = x.output, problem = x.problem, replace = x.replace,
    not_before = now() + make_interval(secs => x.wait), ended = CASE WHEN x.becomes <> 'ready' THEN now() END
FROM (
    SELECT e.*, CASE WHEN e.state = 'ready' AND NOT EXISTS (
        SELECT FROM cluster_task k JOIN cluster_job j ON j.id = k.job WHERE k.id = e.id AND j.state = 'running'
    ) THEN 'dropped' ELSE e.state END AS becomes
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::float8[])
        AS e(id, fence, state, output, problem, replace, wait)
) AS x
WHERE t.id = x.id AND t.fence = x.fence AND t.state = 'running'
RETURNING t.id, t.job, t.number, t.cluster, t.node, t.service, t.action, t.config, t.state;

-- name: ClusterTaskUnlock :exec
-- Tasks of the same node that needed those that are complete.
UPDATE cluster_task t SET open_needs = open_needs - x.n, state = CASE WHEN open_needs = x.n THEN 'ready' ELSE t.state END
FROM (
    SELECT d.id, count(*)::int AS n FROM unnest($1::uuid[], $2::int[], $3::int[]) AS e(job, node, number)
    JOIN cluster_task d ON d.job = e.job AND d.node = e.node AND e.number = ANY (d.needs) AND d.state = 'waiting'
    GROUP BY d.id
) AS x WHERE t.id = x.id;

-- name: ClusterTaskGroupDone :exec
-- Tasks of these groups are complete. Where they were the last ones, what waited for the group needs one less.
WITH done AS (
    UPDATE cluster_task_group g SET open = open - x.n
    FROM (SELECT job, name, count(*)::int AS n FROM unnest($1::uuid[], $2::text[]) AS e(job, name) GROUP BY job, name) AS x
    WHERE g.job = x.job AND g.name = x.name RETURNING g.job, g.name, g.open
)
UPDATE cluster_task t SET open_needs = open_needs - x.n, state = CASE WHEN open_needs = x.n THEN 'ready' ELSE t.state END
FROM (
    SELECT d.id, count(*)::int AS n FROM done e
    JOIN cluster_task d ON d.job = e.job AND e.name = ANY (d.after) AND d.state = 'waiting'
    WHERE e.open = 0 GROUP BY d.id
) AS x WHERE t.id = x.id;

-- name: ClusterNodeEnd :exec
-- What a node is after tasks of it are complete. A service without a phase is gone.
UPDATE cluster_node n SET
    facts = CASE x.action WHEN 'delete' THEN '{}' WHEN 'create' THEN (n.facts - 'ssh_host_keys') || COALESCE(x.facts, '{}')
        ELSE n.facts || COALESCE(x.facts, '{}') END,
    sealed = CASE WHEN x.action = 'delete' THEN NULL ELSE COALESCE(x.sealed, n.sealed) END,
    services = CASE
        WHEN x.action = 'delete' THEN '{}'
        WHEN x.action = 'remove' THEN n.services - x.service
        WHEN x.service <> '' THEN jsonb_set(n.services, ARRAY[x.service], jsonb_build_object('phase', x.phase, 'config',
            CASE WHEN x.config <> '' THEN x.config ELSE COALESCE(n.services -> x.service ->> 'config', '') END))
        ELSE n.services END,
    ready = CASE x.action WHEN 'bootstrap' THEN true WHEN 'delete' THEN false ELSE n.ready END,
    automators = CASE x.action WHEN 'bootstrap' THEN (SELECT COALESCE(array_agg(a), '{}') FROM jsonb_array_elements_text(x.automators) AS a)
        WHEN 'delete' THEN '{}' ELSE n.automators END,
    state = CASE WHEN x.action = 'delete' THEN 'gone' ELSE n.state END,
    gone = CASE WHEN x.action = 'delete' THEN now() END
FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::jsonb[], $8::bytea[], $9::jsonb[])
    AS x(cluster, number, action, service, phase, config, facts, sealed, automators)
WHERE n.cluster = x.cluster AND n.number = x.number;

-- name: ClusterNodeFacts :exec
-- What an attempt that failed has learned all the same, as the id of a machine.
UPDATE cluster_node n SET facts = n.facts || x.facts
FROM unnest($1::uuid[], $2::int[], $3::jsonb[]) AS x(cluster, number, facts)
WHERE n.cluster = x.cluster AND n.number = x.number AND octet_length((n.facts || x.facts)::text) <= 1048576;

-- name: PoolReturn :exec
DELETE FROM cluster_loan l USING unnest($1::uuid[], $2::int[]) AS x(cluster, node) WHERE l.cluster = x.cluster AND l.node = x.node;

-- name: ClusterTaskLate :many
-- Tasks whose lease is over.
SELECT id, job, number, cluster, project, node, service, action, provider, needs, after, state, attempts, config, replace,
    NULLIF(not_before, '-infinity') AS not_before, fence, lease_to, taken_by, started, ended, output, problem
FROM cluster_task WHERE state = 'running' AND lease_to < now() ORDER BY lease_to LIMIT 1000;

-- name: ClusterProjectsReady :many
-- The projects that have tasks which are ready or will be, and how many may run at a time in the server.
SELECT t.project, COALESCE(w.workers, 4) AS workers, count(*) FILTER (WHERE t.state = 'ready') AS ready
FROM cluster_task t JOIN cluster_job j ON j.id = t.job AND j.state = 'running'
JOIN cluster c ON c.id = t.cluster LEFT JOIN cluster_tenant w ON w.project = t.project
WHERE t.state = 'running' OR t.state = 'ready' AND NOT c.paused GROUP BY t.project, w.workers;

-- name: ClusterQueues :many
SELECT project, state, count(*) AS tasks, min(not_before) FILTER (WHERE state = 'ready' AND not_before > '-infinity') AS oldest
FROM cluster_task WHERE state IN ('waiting', 'ready', 'running') AND ($1::uuid IS NULL OR project = $1)
GROUP BY project, state ORDER BY project, state;

-- name: ClusterTaskAgain :many
-- After a machine that cannot be confirmed: it is deleted and made again, and confirmed then.
UPDATE cluster_task t SET state = CASE t.action WHEN 'create' THEN 'ready' ELSE 'waiting' END, replace = t.action = 'create',
    open_needs = CASE t.action WHEN 'create' THEN 0 ELSE 1 END, ended = NULL, attempts = CASE t.action WHEN 'create' THEN 0 ELSE t.attempts END
FROM unnest($1::uuid[], $2::int[]) AS x(job, node)
WHERE t.job = x.job AND t.node = x.node AND (t.action = 'create' AND t.state = 'complete' OR t.action = 'confirm' AND t.state = 'ready')
RETURNING t.job, t.action;

-- name: ClusterTaskGroupAgain :exec
UPDATE cluster_task_group g SET open = open + x.n
FROM (SELECT job, count(*)::int AS n FROM unnest($1::uuid[]) AS e(job) GROUP BY job) AS x WHERE g.job = x.job AND g.name = 'create';

-- name: ClusterTaskGiveBack :exec
-- Tasks that were taken and handed to nobody: this was no attempt.
UPDATE cluster_task t SET state = 'ready', lease_to = NULL, attempts = GREATEST(attempts - 1, 0), started = NULL
FROM unnest($1::uuid[], $2::bigint[]) AS x(id, fence) WHERE t.id = x.id AND t.fence = x.fence AND t.state = 'running';

-- name: ClusterJobForget :exec
-- Jobs with their tasks beyond the newest ones of each cluster.
DELETE FROM cluster_job j USING (
    SELECT id, row_number() OVER (PARTITION BY cluster ORDER BY number DESC) AS nth FROM cluster_job
) AS x WHERE j.id = x.id AND x.nth > $1 AND j.state <> 'running';

-- name: ClusterForget :exec
-- Clusters that ended before a time.
DELETE FROM cluster WHERE ended < $1;
