-- name: ClusterResourceLock :exec
-- One writer at a time of what a project has, or of what is shared.
SELECT pg_advisory_xact_lock(hashtextextended('cluster resources of ' || coalesce($1::uuid::text, 'all'), 0));

-- name: ClusterContentLock :exec
-- A content is not deleted while a version that has it is added.
SELECT pg_advisory_xact_lock(hashtextextended('cluster content ' || $1::text, 0));

-- name: ClusterResourceUse :one
SELECT count(*) AS versions, coalesce(sum(size), 0)::bigint AS bytes FROM cluster_resource
WHERE project IS NOT DISTINCT FROM $1;

-- name: ClusterResourceNumber :one
-- The next number of a version. Numbers of deleted versions are not used again.
INSERT INTO cluster_resource_number AS n (project, kind, plugin, type, name, last) VALUES ($1, $2, $3, $4, $5, 1)
ON CONFLICT (COALESCE(project, '00000000-0000-0000-0000-000000000000'), kind, plugin, type, name) DO UPDATE SET last = n.last + 1
RETURNING last;

-- name: ClusterResourceAdd :one
INSERT INTO cluster_resource (project, kind, plugin, type, name, version, size, hash, made_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
RETURNING made;

-- name: ClusterResourceRows :many
-- Versions of a project, and the shared ones too if $7 is set; without a project, the shared ones.
SELECT project, kind, plugin, type, name, version, size, hash, live, slated, made, made_by FROM cluster_resource
WHERE (project IS NOT DISTINCT FROM $1 OR $7::boolean AND project IS NULL)
  AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR plugin = $3) AND ($4::text IS NULL OR type = $4)
  AND ($5::text IS NULL OR name = $5) AND ($6::int IS NULL OR version = $6)
  AND ($8::boolean IS NULL OR live = $8) AND ($9::boolean IS NULL OR slated = $9)
ORDER BY kind, plugin, type, name, project NULLS LAST, version DESC;

-- name: ClusterResourceUnslate :exec
-- What else is slated of the name no longer is.
UPDATE cluster_resource SET slated = false
WHERE project IS NOT DISTINCT FROM $1 AND kind = $2 AND plugin = $3 AND type = $4 AND name = $5 AND version <> $6 AND slated;

-- name: ClusterResourceSlate :exec
UPDATE cluster_resource SET slated = $7
WHERE project IS NOT DISTINCT FROM $1 AND kind = $2 AND plugin = $3 AND type = $4 AND name = $5 AND version = $6;

-- name: ClusterResourceRetire :many
-- recalled ─▶ inactive
UPDATE cluster_resource SET live = false WHERE project IS NOT DISTINCT FROM $1 AND live AND NOT slated
RETURNING project, kind, plugin, type, name, version, size, hash, live, slated, made, made_by;

-- name: ClusterResourceEnliven :many
-- staged ─▶ active. Before it, ClusterResourceRetire makes room.
UPDATE cluster_resource SET live = true WHERE project IS NOT DISTINCT FROM $1 AND slated AND NOT live
RETURNING project, kind, plugin, type, name, version, size, hash, live, slated, made, made_by;

-- name: ClusterResourceDelete :exec
DELETE FROM cluster_resource
WHERE project IS NOT DISTINCT FROM $1 AND kind = $2 AND plugin = $3 AND type = $4 AND name = $5 AND version = $6;

-- name: ClusterResourceLive :many
-- What a plug-in may use for a project: what a project has of its own hides what is shared.
SELECT DISTINCT ON (type, name) project, kind, plugin, type, name, version, size, hash, live, slated, made, made_by
FROM cluster_resource
WHERE live AND (project = $1 OR project IS NULL) AND kind = $2 AND plugin = $3
ORDER BY type, name, project NULLS LAST;

-- name: ClusterContentLive :one
SELECT size FROM cluster_resource WHERE hash = $2 AND live AND (project = $1 OR project IS NULL) LIMIT 1;

-- name: ClusterContentsUsed :many
SELECT DISTINCT hash FROM cluster_resource WHERE hash = ANY ($1::text[]);
