-- What pages show of a job with many tasks. A step is all tasks with one action and one service.

-- name: ClusterSteps :many
-- The steps in the order of their first tasks, with their tasks counted.
SELECT action, service, count(*) AS total,
    count(*) FILTER (WHERE state = 'ready') AS ready, count(*) FILTER (WHERE state = 'running') AS running,
    count(*) FILTER (WHERE state = 'complete') AS complete, count(*) FILTER (WHERE state = 'failed') AS failed,
    count(*) FILTER (WHERE state = 'dropped') AS dropped, bool_or(state = 'ready' AND attempts > 0) AS retried
FROM cluster_task WHERE job = $1 GROUP BY action, service ORDER BY min(number);

-- name: ClusterStepEdges :many
-- Which step waits for which, by their names. The tasks that one needs are on its node.
SELECT DISTINCT t.action, t.service, n.action AS on_action, n.service AS on_service
FROM cluster_task t CROSS JOIN unnest(t.needs) AS need(number) JOIN cluster_task n ON n.job = $1 AND n.number = need.number
WHERE t.job = $1;

-- name: ClusterStepGroups :many
-- Which step waits for all tasks of which other ones.
SELECT DISTINCT action, service, unnest(after) AS after FROM cluster_task WHERE job = $1 AND after <> '{}';

-- name: ClusterTaskNodes :many
SELECT DISTINCT node FROM cluster_task WHERE job = $1 ORDER BY node;

-- name: ClusterTaskCells :many
-- How far the nodes $2 are with what they have to do: a row for each node and each action on its machine, and for each
-- service, or for all services together if $3 is set. It names the task that says most: that which failed, runs, or
-- comes next; else the last one.
SELECT DISTINCT ON (node, service, machine) node, service, machine AS action, number, action AS shown, state, attempts,
    count(*) FILTER (WHERE state = 'complete') OVER cell AS done, count(*) OVER cell AS total
FROM (
    SELECT node, number, state, attempts, action, CASE WHEN service = '' THEN action ELSE '' END AS machine,
        CASE WHEN $3 AND service <> '' THEN '*' ELSE service END AS service,
        CASE state WHEN 'failed' THEN 5 WHEN 'running' THEN 4 WHEN 'ready' THEN 3 WHEN 'waiting' THEN 2 WHEN 'dropped' THEN 1
            ELSE 0 END AS urgency
    FROM cluster_task WHERE job = $1 AND node = ANY ($2::int[])
) AS t
WINDOW cell AS (PARTITION BY node, service, machine)
ORDER BY node, service, machine, urgency DESC, CASE urgency WHEN 0 THEN -number ELSE number END;

-- name: ClusterTaskCount :one
-- Tasks of the steps $2, in the state $3, on the node $4; NULL: of any.
SELECT count(*) AS count FROM cluster_task
WHERE job = $1 AND ($2::text[] IS NULL OR CASE service WHEN '' THEN action ELSE action || ' ' || service END = ANY ($2))
  AND ($3::text IS NULL OR state = $3) AND ($4::int IS NULL OR node = $4);

-- name: ClusterTaskPage :many
-- Of the same, without what provisioners need of them, from $5 on at most $6.
SELECT number, node, service, action, state, attempts, NULLIF(not_before, '-infinity') AS not_before, taken_by, started,
    ended, problem
FROM cluster_task
WHERE job = $1 AND ($2::text[] IS NULL OR CASE service WHEN '' THEN action ELSE action || ' ' || service END = ANY ($2))
  AND ($3::text IS NULL OR state = $3) AND ($4::int IS NULL OR node = $4)
ORDER BY number OFFSET $5 LIMIT $6;

-- name: ClusterTaskNeeds :many
-- The tasks with the numbers $2 that are not complete.
SELECT number, node, service, action, state, attempts, NULLIF(not_before, '-infinity') AS not_before, taken_by, started,
    ended, problem
FROM cluster_task WHERE job = $1 AND number = ANY ($2::int[]) AND state <> 'complete' ORDER BY number;
