-- name: ClusterEntityNewest :many
-- The newest versions of a project's entities and of the shared ones, without those that were deleted.
SELECT project, kind, name, version, content, sealed, made, made_by
FROM (SELECT DISTINCT ON (project, kind, name) * FROM cluster_entity
      WHERE project = $1 OR project IS NULL ORDER BY project, kind, name, version DESC) AS newest
WHERE content IS NOT NULL ORDER BY kind, name, project;

-- name: ClusterEntityVersions :many
SELECT version, content IS NULL AS deleted, made, made_by
FROM cluster_entity WHERE project IS NOT DISTINCT FROM $1 AND kind = $2 AND name = $3 ORDER BY version DESC LIMIT $4;

-- name: ClusterEntityGet :one
SELECT project, kind, name, version, content, sealed, made, made_by
FROM cluster_entity WHERE project IS NOT DISTINCT FROM $1 AND kind = $2 AND name = $3 AND version = $4 AND content IS NOT NULL;

-- name: ClusterEntityPinned :many
-- Versions of a project's entities and of shared ones, by kind, name and version. A number stands for one version only:
-- see ClusterEntityAdd.
SELECT e.project, e.kind, e.name, e.version, e.content, e.sealed, e.made, e.made_by
FROM unnest($2::text[], $3::text[], $4::integer[]) AS pin(kind, name, version)
JOIN cluster_entity e ON e.kind = pin.kind AND e.name = pin.name AND e.version = pin.version
WHERE (e.project = $1 OR e.project IS NULL) AND e.content IS NOT NULL;

-- name: ClusterEntityStamp :one
-- When the newest version was written of what a project may use; without a project, of anything. Deleting old versions
-- changes nothing, and the newest version of an entity is never deleted.
SELECT coalesce(CASE WHEN $1::uuid IS NULL THEN (SELECT max(made) FROM cluster_entity)
       ELSE greatest((SELECT max(made) FROM cluster_entity WHERE project = $1),
                     (SELECT max(made) FROM cluster_entity WHERE project IS NULL)) END::text, '');

-- name: ClusterEntityLock :exec
-- One writer at a time; readers do not wait.
LOCK TABLE cluster_entity IN SHARE ROW EXCLUSIVE MODE;

-- name: ClusterEntityCount :one
SELECT count(*) FROM cluster_entity WHERE project IS NOT DISTINCT FROM $1;

-- name: ClusterEntityAdd :one
-- A new version. Its number is above those of the shared entity of the name, and of a shared one above those of all
-- projects, so that for a project a number always means one version. Its time is after that of all others, even if the
-- clock was set back.
INSERT INTO cluster_entity (project, kind, name, version, content, sealed, made, made_by)
SELECT $1, $2, $3, 1 + coalesce(max(version), 0), $4, $5,
       greatest(clock_timestamp(), (SELECT max(made) + interval '1 microsecond' FROM cluster_entity)), $6
FROM cluster_entity WHERE kind = $2 AND name = $3 AND ($1::uuid IS NULL OR project = $1 OR project IS NULL)
RETURNING version;

-- name: ClusterEntityDeleteVersion :exec
DELETE FROM cluster_entity WHERE project IS NOT DISTINCT FROM $1 AND kind = $2 AND name = $3 AND version = $4;

-- name: ClusterEntityProjects :many
SELECT DISTINCT project FROM cluster_entity WHERE project IS NOT NULL ORDER BY project;

-- name: ClusterEntityUsed :many
-- Live clusters that use an entity, or with a version that version of it: by their manifests, or on their machines.
-- Without a project the entity is a shared one, which a project with an entity of that name does not use.
SELECT c.name AS cluster, e.name AS environment, p.name AS project
FROM cluster c JOIN environment e ON e.id = c.environment JOIN project p ON p.id = e.project
WHERE c.state <> 'terminated'
  AND CASE WHEN $1::uuid IS NOT NULL THEN e.project = $1 ELSE NOT EXISTS (
      SELECT FROM (SELECT content FROM cluster_entity o WHERE o.project = e.project AND o.kind = $2 AND o.name = $3
                   ORDER BY version DESC LIMIT 1) AS own WHERE own.content IS NOT NULL) OR $4::integer IS NOT NULL END
  AND CASE WHEN $4::integer IS NOT NULL THEN
          c.wanted -> 'catalogue' -> $2 ->> $3 = $4::integer::text OR c.applied -> 'catalogue' -> $2 ->> $3 = $4::integer::text
      ELSE
          $2 = 'clustertemplates' AND (c.wanted ->> 'template' = $3 OR c.applied ->> 'template' = $3)
          OR jsonb_exists(c.wanted -> 'catalogue' -> $2, $3) OR jsonb_exists(c.applied -> 'catalogue' -> $2, $3)
          OR EXISTS (SELECT FROM cluster_node n WHERE n.cluster = c.id AND n.state <> 'gone' AND CASE $2
                     WHEN 'providers' THEN n.provider = $3 WHEN 'hardwaretypes' THEN n.hardware = $3
                     WHEN 'imagetypes' THEN n.image = $3 WHEN 'services' THEN jsonb_exists(n.services, $3) END)
      END
ORDER BY project, environment, cluster LIMIT 10;

-- name: ClusterTenantList :many
-- All projects, with what they may use of the cluster service, and what they use.
SELECT p.id AS project, p.name, t.project IS NOT NULL AS set, coalesce(t.workers, $2::integer) AS workers, t.max_clusters,
       t.max_nodes, use.clusters, use.nodes
FROM project p LEFT JOIN cluster_tenant t ON t.project = p.id CROSS JOIN LATERAL (
    SELECT count(DISTINCT c.id) AS clusters, count(n.number) AS nodes
    FROM environment e JOIN cluster c ON c.environment = e.id AND c.state <> 'terminated'
    LEFT JOIN cluster_node n ON n.cluster = c.id AND n.state <> 'gone' WHERE e.project = p.id) AS use
WHERE $1::uuid IS NULL OR p.id = $1 ORDER BY p.name, p.id;

-- name: ClusterTenantLock :one
-- The project does not get other limits, or go, until this transaction ends.
SELECT id FROM project WHERE id = $1 FOR UPDATE;

-- name: ClusterTenantSet :exec
INSERT INTO cluster_tenant (project, workers, max_clusters, max_nodes) VALUES ($1, $2, $3, $4)
ON CONFLICT (project) DO UPDATE SET
    workers = excluded.workers, max_clusters = excluded.max_clusters, max_nodes = excluded.max_nodes;
