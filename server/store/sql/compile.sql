-- name: CompileEnqueue :exec
INSERT INTO compile (id, environment, requested, trigger_type, trigger_message, metadata, update_source, reinstall, export, variables, partial, removed_sets)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (id) DO NOTHING;

-- name: CompilePreview :exec
-- Runs beside the queue: it starts at once, and starts again where a killed server left it.
INSERT INTO compile (id, environment, requested, started, trigger_type, trigger_message, metadata, update_source, reinstall, export, variables, preview)
VALUES ($1, $2, $3, $3, $4, $5, $6, true, false, true, '{}', true)
ON CONFLICT (id) DO NOTHING;

-- name: CompileStartOver :one
-- The run that a killed server left open, and the requests that it answers, start over, at the commit that the run
-- had chosen.
WITH run AS (
    SELECT id FROM compile
    WHERE environment = $1 AND started IS NOT NULL AND completed IS NULL AND substitute IS NULL AND NOT preview
), answered AS (
    UPDATE compile SET started = $2 FROM run WHERE compile.substitute = run.id AND compile.completed IS NULL
)
UPDATE compile SET started = $2 FROM run WHERE compile.id = run.id
RETURNING compile.id, environment, requested, started, completed, trigger_type, trigger_message, metadata, update_source,
          reinstall, export, variables, partial, removed_sets, success, version, revision, substitute, diagnostics, superseded_by, cancelled_by, cancelled_why, cancelled_at;

-- name: CompileStartNext :one
UPDATE compile SET started = $2
WHERE id = (SELECT id FROM compile WHERE environment = $1 AND started IS NULL ORDER BY requested, id LIMIT 1)
RETURNING id, environment, requested, started, completed, trigger_type, trigger_message, metadata, update_source,
          reinstall, export, variables, partial, removed_sets, success, version, revision, substitute, diagnostics, superseded_by, cancelled_by, cancelled_why, cancelled_at;

-- name: CompileMerge :exec
-- Waiting requests that ask for nothing more than the run does are answered by it.
UPDATE compile SET started = $2, substitute = run.id
FROM compile run
WHERE run.id = $1
  AND compile.environment = run.environment AND compile.started IS NULL AND compile.requested <= $2
  AND compile.export = run.export AND compile.reinstall = run.reinstall AND compile.variables = run.variables
  AND compile.partial = run.partial AND compile.removed_sets = run.removed_sets
  AND (run.update_source OR NOT compile.update_source);

-- name: CompileRevision :exec
UPDATE compile SET revision = $2 WHERE id = $1 OR substitute = $1;

-- name: CompileFinish :exec
UPDATE compile SET
    success = CASE WHEN completed IS NULL THEN $2 ELSE success END,
    version = CASE WHEN completed IS NULL THEN $3 ELSE version END,
    diagnostics = CASE WHEN completed IS NULL THEN $4 ELSE diagnostics END,
    superseded_by = CASE WHEN completed IS NULL THEN $6::uuid ELSE superseded_by END,
    -- One that ended by itself before it could be cancelled was not cancelled.
    cancelled_by = CASE WHEN completed IS NULL AND NOT $7 THEN '' ELSE cancelled_by END,
    cancelled_why = CASE WHEN completed IS NULL AND NOT $7 THEN '' ELSE cancelled_why END,
    cancelled_at = CASE WHEN completed IS NULL AND NOT $7 THEN NULL ELSE cancelled_at END,
    completed = COALESCE(completed, $5)
WHERE id = $1 OR substitute = $1;

-- name: CompileElsewhere :exec
-- A compile that ran on another machine has ended when it is recorded.
UPDATE compile SET started = $2, completed = $3, success = true, version = $4 WHERE id = $1;

-- name: CompileGet :one
SELECT id, environment, requested, started, completed, trigger_type, trigger_message, metadata, update_source,
       reinstall, export, variables, partial, removed_sets, success, version, revision, substitute, diagnostics, superseded_by, cancelled_by, cancelled_why, cancelled_at
FROM compile WHERE id = $1;

-- name: CompileRows :list
SELECT id, environment, requested, started, completed, trigger_type, trigger_message, metadata, update_source,
       reinstall, export, variables, partial, removed_sets, success, version, revision, substitute, diagnostics, superseded_by, cancelled_by, cancelled_why, cancelled_at
FROM compile WHERE environment = $1;

-- name: CompileOpen :many
SELECT id, environment, requested, started, completed, trigger_type, trigger_message, metadata, update_source,
       reinstall, export, variables, partial, removed_sets, success, version, revision, substitute, diagnostics, superseded_by, cancelled_by, cancelled_why, cancelled_at
FROM compile WHERE environment = $1 AND completed IS NULL AND NOT preview
ORDER BY requested, id;

-- name: CompileLast :one
SELECT id, environment, requested, started, completed, trigger_type, trigger_message, metadata, update_source,
       reinstall, export, variables, partial, removed_sets, success, version, revision, substitute, diagnostics, superseded_by, cancelled_by, cancelled_why, cancelled_at
FROM compile WHERE environment = $1 AND completed IS NOT NULL AND revision IS NOT NULL AND substitute IS NULL AND NOT preview AND superseded_by IS NULL
ORDER BY completed DESC, requested DESC, id DESC
LIMIT 1;

-- name: CompileCancelWaiting :exec
-- A request that waits ends without having run.
UPDATE compile SET started = $3, completed = $3, success = false, cancelled_by = $4, cancelled_why = $5, cancelled_at = $3
WHERE id = $1 AND environment = $2 AND started IS NULL;

-- name: CompileCancel :exec
-- A run that is under way, and the requests that it answers, are to end.
UPDATE compile SET cancelled_by = $4, cancelled_why = $5, cancelled_at = $3
WHERE (id = $1 OR substitute = $1) AND environment = $2 AND started IS NOT NULL AND completed IS NULL AND cancelled_by = '';

-- name: CompileDelete :exec
DELETE FROM compile WHERE completed < $1;

-- name: StageStart :exec
INSERT INTO stage (id, compile, name, command, started) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO NOTHING;

-- name: StageGrow :one
-- Makes room in both streams, and returns where the new bytes begin.
UPDATE stage SET out_bytes = out_bytes + $2, err_bytes = err_bytes + $3
WHERE id = $1
RETURNING out_bytes - $2 AS out_start, err_bytes - $3 AS err_start;

-- name: StageOutputAdd :exec
INSERT INTO stage_output (stage, stream, start, bytes)
SELECT $1, $2, start, bytes FROM unnest($3::bigint[], $4::bytea[]) AS piece(start, bytes);

-- name: StageOutputDrop :exec
DELETE FROM stage_output WHERE stage = $1 AND stream = $2 AND start >= $3 AND start + length(bytes) <= $4;

-- name: StageFinish :exec
UPDATE stage SET completed = $4, return_code = $3, command = COALESCE(NULLIF($2, ''), command) WHERE id = $1;

-- name: StageList :many
SELECT id, compile, name, command, started, completed, return_code FROM stage WHERE compile = $1 ORDER BY position;

-- name: StageOutputList :many
SELECT o.stage, o.stream, o.start, o.bytes
FROM stage_output o JOIN stage s ON s.id = o.stage
WHERE s.compile = $1
ORDER BY o.stage, o.stream, o.start;
