-- name: ClusterRows :many
SELECT id, environment, number, name, state, owner, made, ended, wanted, wanted_at, applied, applied_at, expires, noticed,
    paused, may_delete > now() AS may_delete, retry, problem
FROM cluster
WHERE ($1::uuid IS NULL OR environment = $1) AND ($2::text IS NULL OR name = $2) AND ($3::uuid IS NULL OR id = $3)
  AND ($4 OR state <> 'terminated')
ORDER BY environment, number;

-- name: ClusterAdd :exec
INSERT INTO cluster (id, environment, name, state, owner, wanted, wanted_at, expires)
VALUES ($1, $2, $3, 'pending', $4, $5, $6, $7);

-- name: ClusterWant :exec
UPDATE cluster SET wanted = $2, wanted_at = $3, expires = $4, noticed = CASE WHEN expires IS DISTINCT FROM $4 THEN NULL ELSE noticed END,
    may_delete = CASE WHEN $2::jsonb IS NULL THEN may_delete ELSE '-infinity' END
WHERE id = $1 AND state <> 'terminated';

-- name: ClusterSettle :exec
-- How a cluster is after a job, or when there was nothing to do.
UPDATE cluster SET state = $2, problem = $3, retry = false,
    ended = CASE WHEN $2 = 'terminated' THEN now() END,
    applied = CASE WHEN $4 THEN $5 ELSE applied END, applied_at = CASE WHEN $4 THEN $6 ELSE applied_at END
WHERE id = $1 AND state <> 'terminated';

-- name: ClusterProblem :exec
UPDATE cluster SET problem = $2 WHERE id = $1 AND problem <> $2;

-- name: ClusterPause :exec
UPDATE cluster SET paused = $2 WHERE id = $1 AND state <> 'terminated';

-- name: ClusterMayDelete :exec
UPDATE cluster SET may_delete = CASE WHEN $2 THEN now() + interval '7 days' ELSE '-infinity' END WHERE id = $1 AND state <> 'terminated';

-- name: ClusterRetry :exec
UPDATE cluster SET retry = true WHERE id = $1 AND state <> 'terminated';

-- name: ClusterNoticed :exec
UPDATE cluster SET noticed = now() WHERE id = $1;

-- name: ClusterBusy :many
-- The environments where something may have to be done: a cluster that is not as wanted, whose lease is over or soon, or
-- that the active version wants and nobody has seen yet.
SELECT environment FROM cluster
WHERE state <> 'terminated' AND (state <> 'active' OR wanted IS DISTINCT FROM applied OR retry
    OR expires < now() + interval '1 day')
UNION
SELECT v.environment FROM version v JOIN version_clusters c ON c.environment = v.environment AND c.version = v.number
CROSS JOIN LATERAL jsonb_each(c.manifests) AS m
WHERE v.status = 'active' AND NOT EXISTS (
    SELECT FROM cluster k WHERE k.environment = v.environment AND k.name = m.key AND k.state <> 'terminated' AND k.wanted = m.value);

-- name: ClustersOf :one
-- How much of the cluster service a project uses.
SELECT count(DISTINCT c.id) AS clusters, count(n.number) AS nodes
FROM cluster c JOIN environment e ON e.id = c.environment
LEFT JOIN cluster_node n ON n.cluster = c.id AND n.state <> 'gone'
WHERE e.project = $1 AND c.state <> 'terminated';

-- name: ClusterUsing :many
-- The clusters whose wanted or applied manifest pins an entity, or any version of it.
SELECT c.name FROM cluster c JOIN environment e ON e.id = c.environment
WHERE c.state <> 'terminated' AND ($1::uuid IS NULL OR e.project = $1)
  AND ((c.wanted -> 'catalogue' -> $2::text) ? $3::text OR (c.applied -> 'catalogue' -> $2::text) ? $3::text)
  AND ($4::int IS NULL OR (c.wanted -> 'catalogue' -> $2::text ->> $3::text)::int = $4
       OR (c.applied -> 'catalogue' -> $2::text ->> $3::text)::int = $4)
ORDER BY c.name LIMIT 20;

-- name: ClusterLive :one
SELECT count(*) FROM cluster c
WHERE c.environment = $1 AND c.state <> 'terminated'
  AND EXISTS (SELECT FROM cluster_node n WHERE n.cluster = c.id AND n.state = 'made');

-- name: ClearClusters :exec
DELETE FROM cluster WHERE environment = $1;

-- name: ClearLoans :exec
DELETE FROM cluster_loan l USING cluster c WHERE c.id = l.cluster AND c.environment = $1;

-- name: VersionClustersAdd :exec
INSERT INTO version_clusters (environment, version, manifests) VALUES ($1, $2, $3)
ON CONFLICT (environment, version) DO UPDATE SET manifests = EXCLUDED.manifests;

-- name: VersionClustersCopy :exec
INSERT INTO version_clusters (environment, version, manifests)
SELECT environment, $3, manifests FROM version_clusters WHERE environment = $1 AND version = $2;

-- name: VersionClusters :one
SELECT manifests FROM version_clusters WHERE environment = $1 AND version = $2;

-- name: VersionClustersActive :one
SELECT c.version, c.manifests, v.provenance FROM version v JOIN version_clusters c ON c.environment = v.environment AND c.version = v.number
WHERE v.environment = $1 AND v.status = 'active';

-- name: ClusterSecretSet :exec
INSERT INTO cluster_secret (environment, cluster, field, sealed) VALUES ($1, $2, $3, $4)
ON CONFLICT (environment, cluster, field) DO UPDATE SET sealed = EXCLUDED.sealed, made = now();

-- name: ClusterSecrets :many
SELECT field, sealed FROM cluster_secret WHERE environment = $1 AND cluster = $2 ORDER BY field;

-- name: ClusterSecretsDelete :exec
DELETE FROM cluster_secret WHERE environment = $1 AND cluster = $2;

-- name: ClusterNodes :many
SELECT cluster, number, hostname, hardware, image, provider, services, state, ready, automators, facts, sealed, made, gone
FROM cluster_node WHERE cluster = ANY ($1::uuid[]) AND ($2 OR state <> 'gone') ORDER BY cluster, number;

-- name: ClusterNodePlan :exec
INSERT INTO cluster_node (cluster, number, hostname, hardware, image, provider, state)
VALUES ($1, $2, $3, $4, $5, $6, 'planned')
ON CONFLICT (cluster, number) DO UPDATE SET hostname = EXCLUDED.hostname, hardware = EXCLUDED.hardware,
    image = EXCLUDED.image, provider = EXCLUDED.provider
WHERE cluster_node.state = 'planned';

-- name: ClusterNodeForget :exec
-- Nodes that were planned, never made, and are not wanted any more.
DELETE FROM cluster_node WHERE cluster = $1 AND state = 'planned' AND number <> ALL ($2::int[]);

-- name: ClusterNodeSettle :exec
-- The same, when a cluster is as its applied manifest says: what a change that was rolled back had planned.
DELETE FROM cluster_node n USING cluster c
WHERE c.id = $1 AND n.cluster = c.id AND n.state = 'planned' AND NOT EXISTS (
    SELECT FROM jsonb_array_elements(coalesce(c.applied -> 'nodes', '[]')) AS w WHERE (w ->> 'number')::int = n.number);

-- name: ClusterTenant :one
SELECT workers, max_clusters, max_nodes FROM cluster_tenant WHERE project = $1;

-- name: PoolLoans :many
SELECT machine, cluster, node FROM cluster_loan WHERE machine = ANY ($1::text[]) OR cluster = $2 AND node = $3;

-- name: PoolLend :exec
INSERT INTO cluster_loan (project, provider, machine, cluster, node) VALUES ($1, $2, $3, $4, $5);

-- name: PoolLock :exec
SELECT pg_advisory_xact_lock(hashtextextended('cluster pools', 0));
