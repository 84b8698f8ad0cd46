-- name: ReplicaBeat :exec
INSERT INTO replica (id, name, roles, version, address, started, seen, owned, wanted)
VALUES ($1, $2, $3, $4, $5, $6, now(), $7, $8)
ON CONFLICT (id) DO UPDATE
SET roles = excluded.roles, address = excluded.address, seen = now(), owned = excluded.owned, wanted = excluded.wanted;

-- name: ReplicaList :many
SELECT id, name, roles, version, address, started, seen, owned, wanted FROM replica
WHERE seen > now() - make_interval(secs => $1) ORDER BY started, id;

-- name: ReplicaGone :exec
DELETE FROM replica WHERE id = $1;

-- name: ReplicaEndStale :many
-- Ends the connection that holds the locks of each replica that was not seen lately, and forgets it.
WITH stale AS (DELETE FROM replica WHERE seen < now() - make_interval(secs => $1) RETURNING id, name)
SELECT stale.name, count(pg_terminate_backend(a.pid)) AS ended
FROM stale LEFT JOIN pg_stat_activity a
  ON a.application_name = 'ordain locks ' || stale.id AND a.datname = current_database()
GROUP BY stale.name;

-- name: LocksHeld :many
-- The keys of all locks of a class that any session holds.
SELECT DISTINCT objid::bigint FROM pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 2
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid = ($1::bigint)::oid;

-- name: EnvironmentIDs :many
SELECT id FROM environment ORDER BY number;

-- name: InstallationSet :one
-- A process with another key replaces the fingerprint only when no other process lives.
INSERT INTO installation (id, key_fingerprint) VALUES (gen_random_uuid(), $1)
ON CONFLICT (one) DO UPDATE SET key_fingerprint = CASE
    WHEN EXISTS (SELECT FROM replica WHERE seen > now() - make_interval(secs => $2)) THEN installation.key_fingerprint
    ELSE excluded.key_fingerprint END
RETURNING id, key_fingerprint;

-- name: InstallationKey :one
SELECT key_fingerprint FROM installation;
