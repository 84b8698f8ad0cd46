-- name: GitStateSet :exec
-- since stays while the kind and the commit do.
INSERT INTO git_state (environment, kind, commit, message, advice, since, checked, reason)
VALUES ($1, $2, $3, $4, $5, $6, $6, $7)
ON CONFLICT (environment) DO UPDATE SET
    since = CASE WHEN git_state.kind = EXCLUDED.kind AND git_state.commit = EXCLUDED.commit THEN git_state.since ELSE EXCLUDED.since END,
    kind = EXCLUDED.kind, commit = EXCLUDED.commit, message = EXCLUDED.message, advice = EXCLUDED.advice, checked = EXCLUDED.checked, reason = EXCLUDED.reason;

-- name: GitStateGet :one
SELECT kind, commit, message, advice, since, checked, reason FROM git_state WHERE environment = $1;

-- name: GitAccept :exec
INSERT INTO git_acceptance (environment, commit, by, reason, at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (environment, commit) DO UPDATE SET by = EXCLUDED.by, reason = EXCLUDED.reason, at = EXCLUDED.at;

-- name: GitAcceptance :one
SELECT commit, by, reason, at FROM git_acceptance WHERE environment = $1 AND commit = $2;

-- name: GitCommits :many
-- The newest compiles with a commit, and what became of them.
SELECT c.id AS compile, c.requested, c.started, c.completed, c.success, c.trigger_type, c.trigger_message, c.revision,
       c.superseded_by IS NOT NULL AS superseded, c.cancelled_by <> '' AND c.completed IS NOT NULL AS cancelled, v.number AS version, v.status, v.released, v.hold IS NOT NULL AND v.status = 'candidate' AS held
FROM compile c LEFT JOIN version v ON v.environment = c.environment AND v.number = c.version
WHERE c.environment = $1 AND c.revision IS NOT NULL AND c.substitute IS NULL AND NOT c.preview
ORDER BY c.requested DESC, c.id LIMIT $2;

-- name: GitBlockAdd :exec
INSERT INTO git_block (environment, commit, by, reason, at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (environment, commit) WHERE ended IS NULL DO NOTHING;

-- name: GitBlockEnd :exec
UPDATE git_block SET ended = GREATEST($3, at) WHERE environment = $1 AND commit = $2 AND ended IS NULL;

-- name: GitBlockGet :one
SELECT commit, by, reason, at FROM git_block WHERE environment = $1 AND commit = $2 AND ended IS NULL;

-- name: GitBlocks :many
SELECT commit, by, reason, at FROM git_block WHERE environment = $1 AND ended IS NULL ORDER BY id DESC;

-- name: GitUsed :many
-- The commits that an environment may compare with or go back to.
SELECT v.environment, c.commit
FROM version v CROSS JOIN LATERAL (VALUES (v.provenance->>'commit'), (v.provenance->'rolled_back'->>'branch'), (v.provenance->'pushed'->>'after')) AS c(commit)
WHERE v.released IS NOT NULL AND c.commit <> ''
UNION SELECT environment, commit FROM git_block WHERE ended IS NULL
ORDER BY environment, commit;

-- name: RollbackTarget :one
-- The newest version before $2 that was the intent, of another commit than $3, and of none that is blocked.
SELECT v.number FROM version v
WHERE v.environment = $1 AND v.released IS NOT NULL AND v.number < $2 AND ($3 = '' OR v.provenance->>'commit' IS DISTINCT FROM $3)
  AND NOT EXISTS (SELECT FROM git_block b WHERE b.environment = v.environment AND b.commit = v.provenance->>'commit' AND b.ended IS NULL)
ORDER BY v.number DESC LIMIT 1;

-- name: RollbackPending :one
-- A rollback from $2 to $3 that waits for a confirmation.
SELECT number FROM version
WHERE environment = $1 AND status = 'candidate' AND number > $2
  AND (provenance->'rolled_back'->>'from')::int = $2 AND (provenance->'rolled_back'->>'to')::int = $3
ORDER BY number DESC LIMIT 1;

-- name: VersionCopy :exec
-- Copies the content of version $2 into the new version $3, which belongs to no compile.
WITH counted AS (
    UPDATE environment SET last_version = $3 WHERE id = $1
)
INSERT INTO version (environment, number, created, status, total, provenance, unknowns, undefined, code, contents, origins)
SELECT environment, $3, $4, 'candidate', total, $5, unknowns, undefined, code, contents, origins FROM version WHERE environment = $1 AND number = $2;
