-- name: MetricSample :exec
-- One sample of every environment, at $1. It is taken by the first process that asks when $2 seconds have passed since
-- the last one; others wait for its lock and then find that it is not their turn.
WITH last AS (
    SELECT until FROM metric_clock WHERE until <= $1::timestamptz - make_interval(secs => $2) FOR UPDATE
), turn AS (
    UPDATE metric_clock SET until = $1 FROM last RETURNING last.until AS since
), states AS (
    SELECT environment,
           count(*) FILTER (WHERE status = 'deploying') AS deploying,
           count(*) FILTER (WHERE status = 'undefined') AS undefined,
           count(*) FILTER (WHERE status = 'skipped_for_undefined') AS skipped_for_undefined,
           count(*) FILTER (WHERE status = 'available') AS available,
           count(*) FILTER (WHERE status = 'skipped') AS skipped,
           count(*) FILTER (WHERE status = 'failed') AS failed,
           count(*) FILTER (WHERE status = 'non_compliant') AS non_compliant,
           count(*) FILTER (WHERE status = 'deployed') AS deployed
    FROM resource_state WHERE orphaned = 0 AND EXISTS (SELECT FROM turn)
    GROUP BY environment
), agents AS (
    SELECT a.environment,
           count(*) FILTER (WHERE a.paused) AS paused,
           count(*) FILTER (WHERE NOT a.paused AND (e.halted OR a.breaker_since IS NOT NULL)) AS down,
           count(*) FILTER (WHERE NOT a.paused AND NOT e.halted AND a.breaker_since IS NULL) AS up
    FROM agent a JOIN environment e ON e.id = a.environment WHERE EXISTS (SELECT FROM turn)
    GROUP BY a.environment
), queued AS (
    SELECT environment, count(*) AS n FROM compile WHERE completed IS NULL AND started IS NULL AND EXISTS (SELECT FROM turn)
    GROUP BY environment
), compiled AS (
    SELECT c.environment, count(*) AS n, sum(extract(epoch FROM c.completed - c.started)) AS seconds
    FROM turn, compile c
    WHERE c.completed >= turn.since AND c.completed < $1 AND NOT c.preview AND c.substitute IS NULL
    GROUP BY c.environment
), waited AS (
    SELECT c.environment, count(*) AS n, sum(extract(epoch FROM c.started - c.requested)) AS seconds
    FROM turn, compile c
    WHERE c.started >= turn.since AND c.started < $1 AND NOT c.preview
    GROUP BY c.environment
), deployments AS (
    SELECT a.environment, count(*) AS n, count(*) FILTER (WHERE a.status IN ('failed', 'unavailable')) AS failed,
           sum(extract(epoch FROM a.finished - a.started)) AS seconds
    FROM turn, action a
    WHERE a.finished >= turn.since AND a.finished < $1 AND a.kind = 'deploy'
      AND a.status IN ('deployed', 'failed', 'unavailable', 'non_compliant')
    GROUP BY a.environment
)
INSERT INTO metric (environment, at, deploying, undefined, skipped_for_undefined, available, skipped, failed, non_compliant,
                    deployed, agents_up, agents_down, agents_paused, compiles_waiting, compiles, compile_seconds, waits,
                    wait_seconds, deploys, deploys_failed, deploy_seconds)
SELECT e.id, $1, COALESCE(s.deploying, 0), COALESCE(s.undefined, 0), COALESCE(s.skipped_for_undefined, 0),
       COALESCE(s.available, 0), COALESCE(s.skipped, 0), COALESCE(s.failed, 0), COALESCE(s.non_compliant, 0),
       COALESCE(s.deployed, 0), COALESCE(a.up, 0), COALESCE(a.down, 0), COALESCE(a.paused, 0), COALESCE(q.n, 0),
       COALESCE(c.n, 0), COALESCE(c.seconds, 0), COALESCE(w.n, 0), COALESCE(w.seconds, 0),
       COALESCE(d.n, 0), COALESCE(d.failed, 0), COALESCE(d.seconds, 0)
FROM turn CROSS JOIN environment e
LEFT JOIN states s ON s.environment = e.id
LEFT JOIN agents a ON a.environment = e.id
LEFT JOIN queued q ON q.environment = e.id
LEFT JOIN compiled c ON c.environment = e.id
LEFT JOIN waited w ON w.environment = e.id
LEFT JOIN deployments d ON d.environment = e.id
ON CONFLICT DO NOTHING;

-- name: MetricRoll :exec
-- Puts the minutes of hours that ended before $1 together. $1 is the beginning of an hour.
WITH old AS (DELETE FROM metric WHERE NOT hourly AND at < $1 RETURNING *)
INSERT INTO metric (environment, at, hourly, samples, deploying, undefined, skipped_for_undefined, available, skipped, failed,
                    non_compliant, deployed, agents_up, agents_down, agents_paused, compiles_waiting, compiles,
                    compile_seconds, waits, wait_seconds, deploys, deploys_failed, deploy_seconds)
SELECT o.environment, to_timestamp(floor(extract(epoch FROM o.at) / 3600) * 3600), true, count(*), avg(o.deploying),
       avg(o.undefined), avg(o.skipped_for_undefined), avg(o.available), avg(o.skipped), avg(o.failed),
       avg(o.non_compliant), avg(o.deployed), avg(o.agents_up), avg(o.agents_down), avg(o.agents_paused),
       avg(o.compiles_waiting), sum(o.compiles), sum(o.compile_seconds), sum(o.waits), sum(o.wait_seconds),
       sum(o.deploys), sum(o.deploys_failed), sum(o.deploy_seconds)
FROM old o JOIN environment e ON e.id = o.environment
GROUP BY o.environment, 2
ON CONFLICT DO NOTHING;

-- name: MetricDelete :exec
-- Deletes the samples of each environment of $1 from before the time of the same place in $2.
DELETE FROM metric m USING unnest($1::uuid[], $2::timestamptz[]) AS x(environment, before)
WHERE m.environment = x.environment AND m.at < x.before;

-- name: MetricBuckets :many
-- What was between two times, in $4 intervals of the same length that are counted from 1; without those of which there
-- is no sample.
SELECT width_bucket(extract(epoch FROM at), extract(epoch FROM $2::timestamptz), extract(epoch FROM $3::timestamptz), $4) AS place,
       sum(deploying::float8 * samples) / sum(samples) AS deploying,
       sum(undefined::float8 * samples) / sum(samples) AS undefined,
       sum(skipped_for_undefined::float8 * samples) / sum(samples) AS skipped_for_undefined,
       sum(available::float8 * samples) / sum(samples) AS available,
       sum(skipped::float8 * samples) / sum(samples) AS skipped,
       sum(failed::float8 * samples) / sum(samples) AS failed,
       sum(non_compliant::float8 * samples) / sum(samples) AS non_compliant,
       sum(deployed::float8 * samples) / sum(samples) AS deployed,
       sum(agents_up::float8 * samples) / sum(samples) AS agents_up,
       sum(agents_down::float8 * samples) / sum(samples) AS agents_down,
       sum(agents_paused::float8 * samples) / sum(samples) AS agents_paused,
       sum(compiles_waiting::float8 * samples) / sum(samples) AS compiles_waiting,
       sum(compiles)::int AS compiles, sum(compile_seconds) AS compile_seconds,
       sum(waits)::int AS waits, sum(wait_seconds) AS wait_seconds,
       sum(deploys)::int AS deploys, sum(deploys_failed)::int AS deploys_failed, sum(deploy_seconds) AS deploy_seconds
FROM metric
WHERE environment = $1 AND at >= $2 AND at < $3
GROUP BY 1 ORDER BY 1;

-- name: ClearMetrics :exec
DELETE FROM metric WHERE environment = $1;
