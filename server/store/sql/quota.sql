-- name: QuotaOf :many
SELECT kind, most FROM project_quota WHERE project = $1;

-- name: QuotaClear :exec
DELETE FROM project_quota WHERE project = $1 AND kind <> ALL ($2::text[]);

-- name: QuotaSet :exec
INSERT INTO project_quota (project, kind, most) VALUES ($1, $2, $3)
ON CONFLICT (project, kind) DO UPDATE SET most = excluded.most;

-- name: QuotaLock :one
-- One writer at a time counts what the project has and adds to it.
SELECT q.most, p.name FROM project_quota q JOIN project p ON p.id = q.project WHERE q.project = $1 AND q.kind = $2 FOR UPDATE OF q;

-- name: QuotaLockOf :one
-- As QuotaLock, for the project of an environment.
SELECT q.most, p.name, p.id FROM environment e JOIN project p ON p.id = e.project JOIN project_quota q ON q.project = p.id
WHERE e.id = $1 AND q.kind = $2 FOR UPDATE OF q;

-- name: QuotaUse :one
-- What a project uses, as far as the database knows. An environment has the resources of its newest or of its active
-- version, whichever has more.
SELECT (SELECT count(*) FROM environment e WHERE e.project = $1) AS environments,
       (SELECT coalesce(sum((SELECT max(v.total) FROM version v
                WHERE v.environment = e.id AND NOT v.preview AND (v.status = 'active' OR v.number = (
                    SELECT number FROM version WHERE environment = e.id AND NOT preview ORDER BY number DESC LIMIT 1)))), 0)::bigint
        FROM environment e WHERE e.project = $1) AS resources,
       (SELECT count(*) FROM compile c JOIN environment e ON e.id = c.environment
        WHERE e.project = $1 AND c.started IS NOT NULL AND c.completed IS NULL) AS compiles;

-- name: QuotaResourcesOf :one
-- The resources of one environment, as QuotaUse counts them.
SELECT coalesce(max(v.total), 0)::bigint FROM version v
WHERE v.environment = $1 AND NOT v.preview AND (v.status = 'active' OR v.number = (
    SELECT number FROM version WHERE environment = $1 AND NOT preview ORDER BY number DESC LIMIT 1));
