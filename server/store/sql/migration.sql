-- name: Ping :one
SELECT 1;

-- name: ServerVersion :one
SELECT current_setting('server_version_num')::int;

-- name: MigrationLock :exec
SELECT pg_advisory_xact_lock($1, 0);

-- name: MigrationTable :exec
CREATE TABLE IF NOT EXISTS migration (
    number   integer PRIMARY KEY,
    name     text NOT NULL,
    checksum text NOT NULL,
    applied  timestamptz NOT NULL DEFAULT now()
);

-- name: MigrationSince :exec
ALTER TABLE migration ADD COLUMN IF NOT EXISTS since integer;

-- name: MigrationList :many
SELECT number, name, checksum, since FROM migration ORDER BY number;

-- name: MigrationDone :exec
INSERT INTO migration (number, name, checksum, since) VALUES ($1, $2, $3, $4);
