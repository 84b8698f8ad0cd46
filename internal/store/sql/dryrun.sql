-- name: DryRunCreate :exec
INSERT INTO dryrun (id, environment, version, date, total, todo) VALUES ($1, $2, $3, $4, $5, $6);

-- name: DryRunGet :one
SELECT id, environment, version, date, total, todo FROM dryrun WHERE environment = $1 AND id = $2;

-- name: DryRunLock :one
SELECT id, environment, version, date, total, todo FROM dryrun WHERE environment = $1 AND id = $2 FOR UPDATE;

-- name: DryRunList :many
SELECT id, environment, version, date, total, todo FROM dryrun WHERE environment = $1 AND version = $2 ORDER BY date DESC, id;

-- name: DryRunAdd :exec
INSERT INTO dryrun_diff (dryrun, resource, kind, attributes)
SELECT $1, d.resource, d.kind, d.attributes::json
FROM unnest($2::text[], $3::text[], $4::text[]) AS d(resource, kind, attributes)
ON CONFLICT (dryrun, resource) DO NOTHING;

-- name: DryRunCount :exec
UPDATE dryrun SET todo = todo - $2::int WHERE id = $1;

-- name: DryRunDiffs :many
SELECT resource, kind, attributes FROM dryrun_diff WHERE dryrun = $1 ORDER BY resource;
