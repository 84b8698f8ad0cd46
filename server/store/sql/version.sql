-- name: VersionGet :one
SELECT environment, number, created, released, status, total, undefined, provenance, hold, confirmed, preview FROM version WHERE environment = $1 AND number = $2;

-- name: VersionActive :one
SELECT environment, number, created, released, status, total, undefined, provenance, hold, confirmed, preview FROM version WHERE environment = $1 AND status = 'active';

-- name: VersionNewest :one
SELECT number, unknowns, provenance FROM version WHERE environment = $1 AND NOT preview ORDER BY number DESC LIMIT 1;

-- name: VersionRows :list
SELECT environment, number, created, released, status, total, undefined, provenance, hold, confirmed, preview FROM version WHERE environment = $1;

-- name: VersionOfCompile :one
SELECT number FROM version WHERE environment = $1 AND compile = $2;

-- name: VersionCreate :exec
WITH counted AS (
    UPDATE environment SET last_version = greatest(last_version, $2) WHERE id = $1
)
INSERT INTO version (environment, number, created, status, total, compile, provenance, unknowns, undefined, code, contents, origins, preview)
VALUES ($1, $2, $3, 'candidate', $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: VersionReserve :exec
WITH counted AS (
    UPDATE environment SET last_version = $2 WHERE id = $1
)
INSERT INTO version_reservation (environment, number) VALUES ($1, $2);

-- name: VersionReservationsForget :exec
-- Numbers below that of the active version are refused.
DELETE FROM version_reservation r USING version v
WHERE r.environment = $1 AND v.environment = $1 AND v.status = 'active' AND r.number < v.number;

-- name: VersionReservationUse :exec
DELETE FROM version_reservation WHERE environment = $1 AND number = $2;

-- name: VersionOrigins :one
SELECT origins FROM version WHERE environment = $1 AND number = $2;

-- name: VersionResources :many
-- In no order: callers that need one sort.
SELECT r.id, r.type, r.agent, r.value, c.attributes, c.attribute_hash, c.requires, c.resource_set, c.undefined,
       c.send_event, c.receive_events, c.purged,
       CASE WHEN c.purged THEN (SELECT s.kept_requires FROM resource_state s WHERE s.resource = r.key) END AS kept_requires
FROM version v, unnest(v.contents) AS k(key), resource_content c, resource r
WHERE v.environment = $1 AND v.number = $2 AND c.key = k.key AND r.key = c.resource;

-- name: VersionChanges :many
-- As VersionResources, for the resources that version $3 has and version $2 has not, and for those of $4 that it has:
-- what a purged resource required when it was kept is not a part of versions.
WITH after AS (
    SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $3
)
SELECT r.id, r.type, r.agent, r.value, c.attributes, c.attribute_hash, c.requires, c.resource_set, c.undefined,
       c.send_event, c.receive_events, c.purged,
       CASE WHEN c.purged THEN (SELECT s.kept_requires FROM resource_state s WHERE s.resource = r.key) END AS kept_requires
FROM (
    SELECT k FROM after WHERE k NOT IN (SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $2)
    UNION
    SELECT c.key
    FROM unnest($4::text[]) AS x(id), LATERAL (SELECT key FROM resource WHERE environment = $1 AND id = x.id OFFSET 0) r, resource_content c
    WHERE c.resource = r.key AND c.key IN (SELECT k FROM after)
) AS d(key), resource_content c, resource r
WHERE c.key = d.key AND r.key = c.resource;

-- name: VersionActiveTotal :one
SELECT coalesce((SELECT total FROM version WHERE environment = $1 AND status = 'active'), 0) AS total;

-- name: VersionTotal :one
SELECT total FROM version WHERE environment = $1 AND number = $2;

-- name: VersionResourceRows :list
SELECT r.id, r.type, r.agent, r.value, c.attributes, c.attribute_hash, c.requires, c.resource_set, c.undefined,
       c.send_event, c.receive_events, c.purged
FROM version v, unnest(v.contents) AS k(key), resource_content c, resource r
WHERE v.environment = $1 AND v.number = $2 AND c.key = k.key AND r.key = c.resource;

-- name: VersionContents :one
SELECT contents FROM version WHERE environment = $1 AND number = $2;

-- name: VersionMemberRows :list
-- The resources of a version, with what became of them: the status of those that are deployed as this version has them;
-- other: another version's content is what is deployed; absent: the deployed version does not have them. The contents
-- of the version are $2, for otherwise the planner takes them for ten.
SELECT r.id, r.type, r.agent, r.value,
       CASE WHEN s.resource IS NULL OR s.orphaned > 0 THEN 'absent' WHEN s.content <> c.key THEN 'other' ELSE s.status END AS standing
FROM unnest($2::bigint[]) AS k(key) JOIN resource_content c ON c.key = k.key
JOIN resource r ON r.key = c.resource AND r.environment = $1
LEFT JOIN resource_state s ON s.resource = r.key AND s.environment = $1;

-- name: VersionMark :one
-- The mark changes when anything is written to the row of the version.
SELECT xmin::text AS mark, total FROM version WHERE environment = $1 AND number = $2;

-- name: VersionMarked :one
SELECT xmin::text AS mark, contents, lower('ABCDEFGHIJKLMNOPQRSTUVWXYZ') = 'abcdefghijklmnopqrstuvwxyz' AS lowerable
FROM version WHERE environment = $1 AND number = $2;

-- name: VersionMemberNames :many
-- The resources of a version, whose contents are $2, with the places of their names among all of them. In no order.
SELECT r.key AS resource, k.key AS content, r.id, r.type, r.agent, r.value,
       dense_rank() OVER (ORDER BY r.type) AS type_rank,
       dense_rank() OVER (ORDER BY r.agent) AS agent_rank,
       dense_rank() OVER (ORDER BY r.value) AS value_rank
FROM unnest($2::bigint[]) AS k(key) JOIN resource_content c ON c.key = k.key
JOIN resource r ON r.key = c.resource AND r.environment = $1;

-- name: StatesByStatus :many
-- All states but those of orphans, in few rows.
SELECT status, array_agg(resource) AS resources, array_agg(content) AS contents
FROM resource_state WHERE environment = $1 AND orphaned = 0 GROUP BY status;

-- name: VersionResource :one
SELECT r.id, r.type, r.agent, r.value, c.attributes, c.attribute_hash, c.requires, c.resource_set, c.undefined,
       c.send_event, c.receive_events, c.purged
FROM resource r
JOIN resource_content c ON c.resource = r.key
JOIN version v ON v.environment = r.environment AND v.number = $2 AND c.key = ANY (v.contents)
WHERE r.environment = $1 AND r.id = $3;

-- name: VersionCode :one
SELECT c.document FROM version v JOIN code c ON c.hash = v.code WHERE v.environment = $1 AND v.number = $2;

-- name: VersionOld :many
SELECT number FROM version
WHERE environment = $1 AND status IN ('retired', 'skipped_candidate')
ORDER BY number DESC
OFFSET $2;

-- name: VersionDelete :many
-- Returns the contents that no other version has.
WITH gone AS (
    DELETE FROM version WHERE environment = $1 AND number = ANY ($2::int[]) RETURNING contents
)
SELECT DISTINCT k FROM gone, unnest(gone.contents) AS k
EXCEPT
SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number <> ALL ($2::int[]);

-- name: OrphanCollect :exec
DELETE FROM resource_state WHERE environment = $1 AND orphaned > 0 AND content = ANY ($2::bigint[]);

-- name: ContentCollect :exec
-- Orphans keep their last content until they are forgotten.
DELETE FROM resource_content c USING resource r
WHERE r.key = c.resource AND r.environment = $1 AND c.key = ANY ($2::bigint[])
  AND NOT EXISTS (SELECT FROM resource_state s WHERE s.resource = c.resource AND s.content = c.key);

-- name: ResourceCollect :exec
DELETE FROM resource r
WHERE r.environment = $1
  AND NOT EXISTS (SELECT FROM resource_content c WHERE c.resource = r.key)
  AND NOT EXISTS (SELECT FROM resource_state s WHERE s.resource = r.key);

-- name: ContentFind :many
SELECT i.ord, r.key AS resource, c.key AS content
FROM unnest($2::text[], $3::uuid[]) WITH ORDINALITY AS i(id, digest, ord)
JOIN resource r ON r.environment = $1 AND r.id = i.id
LEFT JOIN resource_content c ON c.resource = r.key AND c.digest = i.digest;

-- name: KeysTake :many
-- OFFSET 0 makes the planner look the sequence up once instead of for each key.
SELECT nextval(s.name) FROM (SELECT pg_get_serial_sequence($1::text, 'key')::regclass AS name OFFSET 0) AS s, generate_series(1, $2::int);

-- name: CodeLockShared :exec
SELECT pg_advisory_xact_lock_shared($1, 0);

-- name: CodeLockAlone :one
SELECT pg_try_advisory_xact_lock($1, 0);

-- name: CodeStore :exec
INSERT INTO code (hash, document) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING;

-- name: CodeCollect :exec
DELETE FROM code c WHERE NOT EXISTS (SELECT FROM version v WHERE v.code = c.hash);

-- name: DiffContents :many
-- The contents that one of two versions has and the other does not have.
WITH before AS (
    SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $2
), after AS (
    SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $3
), changed AS (
    (SELECT k, false AS newer FROM before EXCEPT SELECT k, false FROM after)
    UNION ALL
    (SELECT k, true FROM after EXCEPT SELECT k, true FROM before)
)
SELECT r.id, d.newer, c.attributes, c.requires
FROM changed d JOIN resource_content c ON c.key = d.k JOIN resource r ON r.key = c.resource
ORDER BY r.id, d.newer;

-- name: FilePut :exec
INSERT INTO file (sha1, content) VALUES ($1, $2) ON CONFLICT (sha1) DO NOTHING;

-- name: FileReader :exec
INSERT INTO file_reader (sha1, project)
SELECT f, p FROM unnest($1::text[]) AS f, unnest($2::uuid[]) AS p ON CONFLICT DO NOTHING;

-- name: FileReaderMove :exec
-- The new project of an environment may read what the old one may read.
INSERT INTO file_reader (sha1, project)
SELECT r.sha1, $2 FROM environment e JOIN file_reader r ON r.project = e.project WHERE e.id = $1 AND e.project <> $2
ON CONFLICT DO NOTHING;

-- name: FileGet :one
SELECT content FROM file WHERE sha1 = $1;

-- name: FileReadable :many
-- Those of the files that the members of one of the projects may read.
SELECT f.sha1 FROM file f WHERE f.sha1 = ANY($1::text[]) AND (
    EXISTS (SELECT FROM file_reader r WHERE r.sha1 = f.sha1 AND r.project = ANY($2::uuid[])) OR
    NOT EXISTS (SELECT FROM file_reader r WHERE r.sha1 = f.sha1));

-- name: FileMissing :many
SELECT i.sha1 FROM unnest($1::text[]) WITH ORDINALITY AS i(sha1, ord)
WHERE NOT EXISTS (SELECT FROM file f WHERE f.sha1 = i.sha1)
ORDER BY i.ord;
