-- name: OwnNext :one
UPDATE environment SET owner_generation = owner_generation + 1 WHERE id = $1 RETURNING owner_generation;

-- name: OwnWriting :exec
SELECT pg_advisory_xact_lock_shared($1, $2);

-- name: OwnGeneration :one
-- The lock keeps the environment from being deleted before what is being written for it is there.
SELECT owner_generation FROM environment WHERE id = $1 FOR KEY SHARE;

-- name: OwnedElsewhere :one
-- Whether a session other than ours holds the environment.
SELECT EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = ($1::bigint)::oid AND objid = ($2::bigint)::oid
      AND pid <> $3);
