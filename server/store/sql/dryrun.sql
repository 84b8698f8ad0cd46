-- name: DryRunCreate :exec
INSERT INTO dryrun (id, environment, version, date, total, todo, asked, compile, filter, base, resource_filter, context, chosen)
VALUES ($1, $2, NULLIF($3::int, 0), $4, $5, $6, $7, $8, $9, $10, $11::json, $12::json, $13::text[]);

-- name: DryRunChosen :one
SELECT chosen FROM dryrun WHERE environment = $1 AND id = $2;

-- name: DryRunGet :one
SELECT id, environment, coalesce(version, 0) AS version, date, total, todo, asked, compile, filter, base, resource_filter, context, ended, ending, reason,
       (SELECT count(*) FROM dryrun_diff x WHERE x.dryrun = d.id AND x.kind IN ('agent_down', 'unknown')) AS unknown
FROM dryrun d WHERE environment = $1 AND id = $2;

-- name: DryRunLock :one
SELECT ended FROM dryrun WHERE environment = $1 AND id = $2 FOR UPDATE;

-- name: DryRunList :many
-- The dry runs of a version, or with 0 the newest of all.
SELECT id, environment, coalesce(version, 0) AS version, date, total, todo, asked, compile, filter, base, resource_filter, context, ended, ending, reason,
       (SELECT count(*) FROM dryrun_diff x WHERE x.dryrun = d.id AND x.kind IN ('agent_down', 'unknown')) AS unknown
FROM dryrun d WHERE environment = $1 AND ($2::int = 0 OR version = $2) ORDER BY date DESC, id LIMIT 1000;

-- name: DryRunOpen :many
SELECT id, environment, coalesce(version, 0) AS version, date, total, todo, asked, compile, filter, base, resource_filter, context, ended, ending, reason, 0::bigint AS unknown
FROM dryrun WHERE environment = $1 AND ended IS NULL ORDER BY date, id;

-- name: DryRunAdd :exec
INSERT INTO dryrun_diff (dryrun, resource, kind, attributes, reason)
SELECT $1, d.resource, d.kind, d.attributes::json, d.reason
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS d(resource, kind, attributes, reason)
ON CONFLICT (dryrun, resource) DO NOTHING;

-- name: DryRunCount :exec
UPDATE dryrun SET todo = todo - $2::int WHERE id = $1;

-- name: DryRunVersion :exec
-- Recorded once the commit of the dry run is compiled.
UPDATE dryrun SET version = $3, total = $4, todo = $4 WHERE environment = $1 AND id = $2 AND version IS NULL AND ended IS NULL;

-- name: DryRunBehind :exec
UPDATE dryrun_diff x SET behind = b.behind
FROM unnest($2::text[], $3::text[]) AS b(resource, behind)
WHERE x.dryrun = $1 AND x.resource = b.resource;

-- name: DryRunEnd :exec
UPDATE dryrun SET ended = GREATEST($5, date), ending = $3, reason = $4 WHERE environment = $1 AND id = $2;

-- name: DryRunKinds :many
SELECT kind, count(*) AS count FROM dryrun_diff WHERE dryrun = $1 GROUP BY kind;

-- name: DryRunDiffs :many
SELECT resource, kind, attributes, reason, behind FROM dryrun_diff WHERE dryrun = $1 ORDER BY resource;

-- name: VersionGone :many
-- The resources that one version has and another does not have.
SELECT r.id
FROM (SELECT c.resource FROM version v, unnest(v.contents) AS k JOIN resource_content c ON c.key = k WHERE v.environment = $1 AND v.number = $2
      EXCEPT
      SELECT c.resource FROM version v, unnest(v.contents) AS k JOIN resource_content c ON c.key = k WHERE v.environment = $1 AND v.number = $3) AS gone
JOIN resource r ON r.key = gone.resource
ORDER BY r.id;
